"""A request that nobody waits for any more: its computation ends at a checkpoint and gives its thread back."""

from collections.abc import Callable

import attrs
import pytest
import trio

from tapster.actors.scripts import open_regex_engine
from tapster.actors.session import Preview, Superseded
from tapster.actors.session.compute import FrozenInput, compute
from tapster.actors.session.embedded import embedded_key
from tapster.actors.session.messages import Assemble
from tapster.actors.session.rolls import RollSeed
from tapster.engine.formats.presets import parse_preset
from tapster.engine.projection import PendingInput
from tapster.runtime import Threads
from tests.support.tavern import MemoryLibrary, open_tavern_rig

KEY = embedded_key("s")
PROMPTS = 3_000
MACROS = "{{random::a,b,c}} {{char}} " * 1_200


def endless_preset(library: MemoryLibrary) -> None:
    """Give the library a preset whose rendering takes 15 s and more."""
    names = [f"p{number}" for number in range(PROMPTS)]
    raw = {
        "name": "Endless",
        "prompts": [{"identifier": name, "role": "system", "content": MACROS} for name in names],
        "prompt_order": [{"character_id": 100001, "order": [{"identifier": name, "enabled": True} for name in names]}],
    }
    preset = parse_preset(raw, id="p1", now="2026-01-01T00:00:00.000Z")
    resources = attrs.evolve(library._bound.resources, preset=preset)
    library._bound = attrs.evolve(library._bound, resources=resources)


async def until_computing(threads: Threads, count: int = 1) -> None:
    with trio.fail_after(12):
        while threads.statistics().used < count:  # noqa: ASYNC110 - a thread starts in its own time
            await trio.sleep(0.002)


@pytest.mark.slow
async def test_cancelled_previews_give_their_threads_back_at_once() -> None:
    library = MemoryLibrary()
    endless_preset(library)
    async with open_tavern_rig(library) as tavern:
        handle = await tavern.rig.host.create("s")
        threads = tavern.sessions._ports.threads
        for _ in range(3):
            async with trio.open_nursery() as nursery:
                for _ in range(5):
                    nursery.start_soon(tavern.sessions.ask, KEY, handle.session, Preview("a bell"))
                await until_computing(threads, 2)
                await trio.sleep(0.05)
                assert threads.statistics().used == 2
                left = trio.current_time()
                nursery.cancel_scope.cancel()
            assert trio.current_time() - left < 5
            assert threads.statistics().used == 0


@pytest.mark.slow
async def test_a_superseded_assembly_is_not_waited_out() -> None:
    library = MemoryLibrary()
    quick = library._bound
    endless_preset(library)
    async with open_tavern_rig(library) as tavern:
        handle = await tavern.rig.host.create("s")

        async def older() -> None:
            with pytest.raises(Superseded):
                await tavern.sessions.ask(KEY, handle.session, Assemble(1, 1))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(older)
            await until_computing(tavern.sessions._ports.threads)
            library._bound = quick
            with trio.fail_after(5):
                assembled = await tavern.sessions.ask(KEY, handle.session, Assemble(1, 2))
        assert "You are Mira." in assembled.snapshot.system_text


def test_every_book_and_prompt_is_a_checkpoint_that_can_end_the_computation() -> None:
    class Left(Exception):
        pass

    def leave_at(number: int) -> Callable[[], None]:
        steps = iter(range(number))

        def checkpoint() -> None:
            if next(steps, None) is None:
                raise Left

        return checkpoint

    frozen = FrozenInput(
        "s", PendingInput(), (), MemoryLibrary()._bound, RollSeed("s", 0, 0), {}, draft="a bell, a ferry"
    )
    regex = open_regex_engine()
    ended = 0
    while True:
        try:
            compute(frozen, regex, leave_at(ended))
        except Left:
            ended += 1
        else:
            break
    # One book, its two entries, and four prompts without lore and with it.
    assert ended == 1 + 2 + 2 * 4
