"""Every way in which a request by a strategy can be cut short, while its sources are quick, slow or deaf.

After each, no source runs for it, nothing was sent, no evidence or state is left, and the next request goes through.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from tapster.actors.session import Assemble, CancelAssembly
from tapster.actors.sources import Output, Source
from tapster.engine.assembly import RequestContext, Rule
from tapster.runtime import unbounded_shield
from tests.support.strategies import INPUT, RULES, Stage, open_stage

Json = Any
SLOW = {"id": "slow", "kind": "slow", "role": "system"}
LORE = {"id": "worldbook", "kind": "worldbook", "role": "system"}


@attrs.define(eq=False)
class Slow(Source):
    """Waits to be let, listening to cancellation or not for a while."""

    shielded_s: float = 0.0
    open: bool = False
    asked: trio.Event = attrs.field(factory=trio.Event)
    running: int = 0
    id = "slow"
    plugin_id = "test.plugin"
    name = "Slow"

    async def resolve(self, context: RequestContext, rule: Rule) -> Output:
        self.running += 1
        self.asked.set()
        try:
            if not self.open:
                with unbounded_shield():
                    await trio.sleep(self.shielded_s)
                await trio.sleep_forever()
            return {"blocks": [{"type": "text", "id": "t", "text": "At last."}]}
        finally:
            self.running -= 1


async def by_turn(stage: Stage) -> None:
    await (await stage.tapster.open_session("s")).cancel()


async def by_message(stage: Stage) -> None:
    await stage.tapster.sessions.ask(stage.key("s"), stage.agent().session, CancelAssembly("enough"))


async def by_newer(stage: Stage) -> None:
    with trio.move_on_after(5):
        await stage.tapster.sessions.ask(stage.key("s"), stage.agent().session, Assemble(1, 1))


async def by_closing(stage: Stage) -> None:
    await stage.tapster.sessions.close(stage.key("s"))


Origin = Callable[[Stage], Awaitable[None]]


@pytest.mark.parametrize("shielded_s", [0.0, 0.2], ids=["listens", "shielded"])
@pytest.mark.parametrize("backend", ["native", "core"])
@pytest.mark.parametrize("origin", [by_turn, by_message, by_newer, by_closing])
async def test_a_cancelled_request_leaves_nothing(
    tmp_path: Path, origin: Origin, backend: str, shielded_s: float
) -> None:
    slow = Slow(shielded_s)
    async with open_stage(tmp_path) as stage, stage.tapster.sources.registered(slow):
        await stage.begin()
        await stage.use(backend, SLOW, LORE, *RULES, INPUT)
        with trio.fail_after(20):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(stage.say, "a bell")
                await slow.asked.wait()
                await origin(stage)
        assert slow.running == 0
        assert stage.provider.requests == []
        assert not [event for event in stage.agent().log.events if event.type == "request/assembly"]
        assert [
            each.running + each.strays for each in stage.tapster.sources.statistics() if each.source_id == "slow"
        ] == [0]
        slow.open = True
        request = await stage.say("again, a bell")
        assert "At last." in request[0][1]
        assert "A bell lies under the reef." in request[0][1]


@pytest.mark.parametrize("shielded_s", [0.0, 0.2], ids=["listens", "shielded"])
async def test_a_preview_that_nobody_waits_for_ends(tmp_path: Path, shielded_s: float) -> None:
    slow = Slow(shielded_s)
    async with open_stage(tmp_path) as stage, stage.tapster.sources.registered(slow):
        await stage.begin()
        await stage.use("native", SLOW, *RULES, INPUT)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stage.tapster.preview_request, "s", "hi")
            await slow.asked.wait()
            nursery.cancel_scope.cancel()
        assert slow.running == 0


async def test_closing_everything_ends_what_is_under_way(tmp_path: Path) -> None:
    slow = Slow()
    with trio.fail_after(20):
        async with trio.open_nursery() as nursery:
            async with open_stage(tmp_path) as stage, stage.tapster.sources.registered(slow):
                await stage.begin()
                await stage.use("native", SLOW, *RULES, INPUT)
                handle = await stage.tapster.open_session("s")
                await handle.followup("hi")
                await slow.asked.wait()
            nursery.cancel_scope.cancel()
    assert slow.running == 0
