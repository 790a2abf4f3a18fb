"""A suite that any author of a source can run.

Subclass ``SourceSuite``, say how to make the source, and let pytest with pytest-trio collect it::

    @pytest.mark.trio
    class TestMySource(SourceSuite):
        def make_source(self) -> object:
            return MySource(path)

Each test opens sources of its own. Nothing here needs a network, and no test takes over ``GRACE_S`` seconds for a
source that keeps the contract. Without pytest, ``await SourceSuite.run_all()`` runs them too.

Source: spec/assembler §4-§6, §20.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import trio

from tapster.actors.sources import GRACE_S, Home, Sources, assemble, definition_of, open_sources
from tapster.engine.assembly import AssemblyResult, RequestContext, SourceDefinition, freeze_context, normalise_preset
from tapster.engine.ecma import Json, stringify
from tapster.engine.errors import TapsterError

_HEAD = {"format": "dsh-tavern-request-assembly", "version": 1, "name": "Source suite"}


class SourceSuite:
    """What every source must hold; override what describes yours."""

    text = "Plain text, {{ not a macro of anyone }}."
    """Hand-written text a parser is tried with."""
    bad_texts: tuple[str, ...] = ()
    """Texts your parser refuses; each must be an error, never plain text."""
    may_be_empty = False
    """Whether your source may have nothing to say to the suite's session."""

    def make_source(self) -> object:
        """A fresh source."""
        raise NotImplementedError

    def make_dependencies(self) -> tuple[object, ...]:
        """Sources yours depends on."""
        return ()

    def make_context(self, *, preview: bool = False, step: int = 1, **preset: Json) -> RequestContext:
        """A request for your source alone; override it to give the assets and messages it needs."""
        return freeze_context(
            normalise_preset({**_HEAD, "rules": [self.make_rule()], **preset}),
            [{"id": "u1", "role": "user", "content": [{"type": "text", "text": "Hello"}], "source": {"kind": "user"}}],
            input_ids=["u1"],
            session_id="suite",
            turn=1,
            step=step,
            preview=preview,
        )

    def make_rule(self) -> dict[str, Json]:
        """The rule that asks for your source: its module, or its parser when it has no module."""
        definition = self.definition()
        rule: dict[str, Json] = {"id": "suite", "kind": definition.id, "role": definition.roles[0]}
        if definition.resolve is None:
            rule |= {"inputMode": "text", "text": self.text}
        return rule

    def state(self) -> object:
        """Whatever your source could change outside a request; a preview must leave it equal."""
        return None

    def change(self) -> None:
        """Make what was resolved stale, as an edit would; only needed with ``validate_resolved``."""
        raise NotImplementedError

    def definition(self) -> SourceDefinition:
        """The definition of a fresh source."""
        return definition_of(self.make_source())

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[tuple[Sources, Home]]:
        """Sources with yours registered."""
        async with open_sources() as sources:
            for dependency in self.make_dependencies():
                sources.add(dependency)
            async with sources.registered(self.make_source()) as home:
                yield sources, home

    async def test_it_registers_and_describes_itself(self) -> None:
        """It fits the contract and can be withdrawn."""
        async with self.opened() as (sources, home):
            described = [each for each in sources.registry.descriptors("suite") if each["id"] == home.source_id]
            assert len(described) == 1, "the source isn't listed once"
            assert stringify(described), "the descriptor isn't JSON"

    async def test_its_blocks_are_accepted_and_stand_in_the_request(self) -> None:
        """What it resolves is a valid output with provenance for each character."""
        async with self.opened() as (sources, home):
            result = await assemble(sources, self.make_context())
            nodes = [node for node in result.nodes if node.module == home.source_id]
            assert nodes or self.may_be_empty, "the source contributed nothing"
            for node in nodes:
                assert node.source["plugin"] == home.plugin_id
                assert not node.text or node.spans, f"{node.id} has text of unknown origin"

    async def test_the_same_frozen_request_gives_the_same_bytes(self) -> None:
        """Asking twice with one context is the same as asking once."""
        async with self.opened() as (sources, _):
            context = self.make_context()
            first, second = await assemble(sources, context), await assemble(sources, context)
            assert _bytes(first) == _bytes(second), "two resolves of one request differ"

    async def test_it_is_asked_again_at_each_step(self) -> None:
        """It is evaluated for every request, whatever step it belongs to."""
        async with self.opened() as (sources, home):
            for step in (1, 2, 3):
                await assemble(sources, self.make_context(step=step))
            assert home.calls == 3, "the source wasn't asked once a step"

    async def test_a_preview_changes_nothing(self) -> None:
        """A preview, and several at once, leave the source's state as it was."""
        async with self.opened() as (sources, _):
            before = self.state()
            async with trio.open_nursery() as nursery:
                for _ in range(3):
                    nursery.start_soon(assemble, sources, self.make_context(preview=True))
            assert self.state() == before, "a preview changed the source's state"

    async def test_hand_written_text_is_parsed_or_refused(self) -> None:
        """A parser turns text into blocks; bad text is an error of its own."""
        definition = self.definition()
        if definition.parse_text is None:
            return
        rule = {"id": "typed", "kind": definition.id, "role": definition.roles[0], "inputMode": "text"}
        async with self.opened() as (sources, _):
            await assemble(sources, self.make_context(rules=[{**rule, "text": self.text}]))
            for text in self.bad_texts:
                context = self.make_context(rules=[{**rule, "text": text}])
                error = await _refusal(sources, context)
                assert error is not None, f"bad text was taken: {text!r}"
                assert error.code != "SOURCE_FAILED", f"bad text crashed the parser: {text!r}"

    async def test_it_ends_when_it_is_cancelled(self) -> None:
        """Wherever it is cancelled, it ends within the grace and leaves nothing running."""
        async with self.opened() as (sources, home):
            for checkpoints in range(12):
                with trio.CancelScope() as scope:
                    async with trio.open_nursery() as nursery:
                        nursery.start_soon(assemble, sources, self.make_context())
                        await trio.lowlevel.checkpoint()
                        for _ in range(checkpoints):
                            await trio.lowlevel.checkpoint()
                        scope.cancel(reason="suite")
                assert home.statistics().strays == 0, f"the source didn't end within {GRACE_S:g} s of a cancel"
                assert home.statistics().running == 0
            assert await _refusal(sources, self.make_context()) is None, "the source is broken after a cancel"

    async def test_unloading_ends_it(self) -> None:
        """Withdrawing it refuses the requests that wait for it and leaves nothing behind."""
        refused: list[TapsterError | None] = []
        async with open_sources() as sources, trio.open_nursery() as nursery:
            for dependency in self.make_dependencies():
                sources.add(dependency)

            async def ask() -> None:
                refused.append(await _refusal(sources, self.make_context()))

            async with sources.registered(self.make_source()) as home:
                nursery.start_soon(ask)
                await trio.lowlevel.checkpoint()
            assert home.statistics().running == 0, "a call outlived its registration"
        assert len(refused) == 1

    async def test_a_changed_lease_refuses_the_request(self) -> None:
        """What is stale by the end of a request isn't sent."""
        if self.definition().validate_resolved is None:
            return
        async with self.opened() as (sources, _):
            changed: list[bool] = []

            def lease() -> None:
                if not changed:
                    changed.append(True)
                    self.change()

            error = await _refusal(sources, self.make_context(), lease)
            assert error is not None, "stale content was sent"

    @classmethod
    async def run_all(cls) -> None:
        """Run every test, for those without pytest."""
        for name in dir(cls):
            if name.startswith("test_"):
                await getattr(cls(), name)()


def _bytes(result: AssemblyResult) -> str:
    value: Any = result.to_json()
    return stringify(value)


async def _refusal(
    sources: Sources, context: RequestContext, lease: Callable[[], None] | None = None
) -> TapsterError | None:
    try:
        await assemble(sources, context, lease=lease)
    except TapsterError as error:
        return error
    return None
