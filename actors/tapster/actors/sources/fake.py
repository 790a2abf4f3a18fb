"""A source that misbehaves on request, shipped with the interface so that others can test against it."""

import attrs
import trio

from tapster.engine import limits
from tapster.engine.assembly import RequestContext, Rule
from tapster.engine.ecma import Json
from tapster.runtime import unbounded_shield

from .interface import SOURCE_DEADLINE_S, Output


@attrs.define(eq=False)
class FakeSource:
    """A source with one text block and any number of bad habits.

    Attributes:
        delay: seconds before it answers.
        fail_at: the number of the call that raises, counted from 1; 0 raises at each.
        hang: never answer, but listen to cancellation.
        deaf: ignore cancellation, for ever or until ``release`` is called.
        shielded_s: ignore cancellation for so many seconds.
        huge: answer more than a source may.
        lying: answer something that isn't an output.
        error: what it raises.
    """

    id: str = "fake"
    text: str = "fake"
    plugin_id: str = "tapster.fake"
    name: str = "Fake source"
    delay: float = 0.0
    fail_at: int | None = None
    hang: bool = False
    deaf: bool = False
    shielded_s: float = 0.0
    huge: bool = False
    lying: bool = False
    error: Exception = attrs.field(factory=lambda: ValueError("fake failure"))
    deadline_s: float = SOURCE_DEADLINE_S
    dependencies: tuple[str, ...] = ()
    calls: int = 0
    ended: int = 0
    _release: trio.Event = attrs.field(factory=trio.Event)

    async def resolve(self, context: RequestContext, rule: Rule) -> Output:
        """Do what the attributes say."""
        self.calls += 1
        try:
            return await self._answer()
        finally:
            self.ended += 1

    async def parse_text(self, context: RequestContext, rule: Rule) -> Output:
        """As ``resolve``, with the rule's text."""
        output: Json = await self.resolve(context, rule)
        return {"blocks": [{**output["blocks"][0], "text": rule.text}]}

    async def _answer(self) -> Output:
        if self.deaf:
            with unbounded_shield():
                await self._release.wait()
        if self.shielded_s:
            with unbounded_shield():
                await trio.sleep(self.shielded_s)
        if self.hang:
            await trio.sleep_forever()
        await trio.sleep(self.delay)
        if self.fail_at == 0 or self.fail_at == self.calls:
            raise self.error
        if self.lying:
            return {"blocks": "none of your business"}
        text = "x" * limits.SOURCE_OUTPUT_BYTES if self.huge else self.text
        return {"blocks": [{"type": "text", "id": "text", "text": text}]}

    def release(self) -> None:
        """Let deaf calls end."""
        self._release.set()
