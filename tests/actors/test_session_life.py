"""Sessions sleep when nobody uses them, come back with everything they knew, and make room for others."""

import gc
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tapster.actors.hosts.embedded.actor import Subscribe
from tapster.actors.introspection import kind_of, read_runtime
from tapster.actors.providers import ScriptedProvider
from tapster.actors.providers.scripted import Item, Pause, says
from tapster.actors.session.embedded import embedded_key
from tapster.actors.store import MemoryEngine, StoreConfig
from tapster.actors.tapster import AgentRunning, Tapster, TapsterConfig, open_tapster
from tapster.runtime import ActorGone, Overloaded, Quarantined, simulated_threads
from tests.support.cancel import task_count


@asynccontextmanager
async def open_small(
    provider: ScriptedProvider | None = None,
    engine: MemoryEngine | None = None,
    *,
    idle_s: float | None = 60.0,
    max_live: int = 100,
) -> AsyncIterator[Tapster]:
    """A whole Tapster in memory."""
    config = TapsterConfig(StoreConfig(Path("nowhere"), "memory"), idle_s=idle_s, max_live_sessions=max_live)
    kept = engine or MemoryEngine()
    with simulated_threads(lambda pool: (0.0, 0.0)):
        async with open_tapster(config, provider=provider or ScriptedProvider(), engine=lambda: kept) as tapster:
            yield tapster


def scripted(*answers: list[Item]) -> ScriptedProvider:
    """A model that gives these answers."""
    provider = ScriptedProvider()
    provider.add(*answers)
    return provider


def awake(tapster: Tapster) -> list[str]:
    """The actors of sessions that live."""
    names = (actor.name for actor in tapster.roster.readings())
    return sorted(name for name in names if kind_of(name) in ("agent", "session"))


async def test_an_idle_session_sleeps_and_a_message_brings_it_back(autojump_clock: MockClock) -> None:
    async with open_small() as tapster:
        tasks = task_count()
        handle = await tapster.create_session("s")
        await handle.send("Is the lamp lit?")
        await handle.when_idle()
        assert awake(tapster) == ["agent:s", "session:embedded/s"]
        await trio.sleep(200)
        assert awake(tapster) == []
        assert task_count() == tasks
        await handle.send("And now?")
        await handle.when_idle()
        assert awake(tapster) == ["agent:s", "session:embedded/s"]
        events = (await tapster.history("s")).events
        told = [str(event.data) for event in events if event.type == "user/message"]
        assert [sum(text in one for one in told) for text in ("Is the lamp lit?", "And now?")] == [1, 1]
        assert [event.seq for event in events] == list(range(len(events)))


async def test_a_session_that_nobody_ever_asks_sleeps_too(autojump_clock: MockClock) -> None:
    async with open_small() as tapster:
        await tapster.create_session("s")
        await trio.sleep(200)
        assert awake(tapster) == []


async def test_a_running_turn_and_a_listener_keep_a_session_awake(autojump_clock: MockClock) -> None:
    provider = scripted([Pause(500), *says("Late.")])
    async with open_small(provider) as tapster:
        handle = await tapster.create_session("s")
        await handle.send("Wait for me.")
        await trio.sleep(400)
        assert awake(tapster)
        await handle.when_idle()
        subscription = await handle.subscribe()
        await trio.sleep(1000)
        assert awake(tapster)
        subscription.close()
        await trio.sleep(200)
        assert awake(tapster) == []


async def test_a_full_house_puts_the_longest_unused_to_sleep(autojump_clock: MockClock) -> None:
    async with open_small(idle_s=None, max_live=3) as tapster:
        for name in ("a", "b", "c"):
            await tapster.create_session(name)
            await trio.sleep(1)
        await (await tapster.open_session("a")).flush()
        await tapster.create_session("d")
        await wait_all_tasks_blocked()
        assert {name for name in awake(tapster) if kind_of(name) == "agent"} == {"agent:a", "agent:c", "agent:d"}
        await (await tapster.open_session("b")).send("Are you awake?")


async def test_a_house_full_of_work_refuses_for_a_moment(autojump_clock: MockClock) -> None:
    provider = scripted([Pause(100), *says("Done.")], [Pause(100), *says("Done.")])
    async with open_small(provider, idle_s=None, max_live=2) as tapster:
        for name in ("a", "b"):
            await (await tapster.create_session(name)).send("Work.")
        with pytest.raises(Overloaded):
            await tapster.create_session("c")
        await trio.sleep(200)
        await tapster.create_session("c")


async def test_a_rush_never_fills_the_house_beyond_its_limit(autojump_clock: MockClock) -> None:
    async with open_small(idle_s=None, max_live=4) as tapster:
        most, outcomes = 0, []

        async def come(number: int) -> None:
            try:
                await tapster.create_session(f"s{number}")
                outcomes.append("in")
            except Overloaded:
                outcomes.append("refused")

        async with trio.open_nursery() as nursery:
            for number in range(40):
                nursery.start_soon(come, number)
                await trio.sleep(0 if number % 3 else 0.01)
                most = max(most, len(tapster.host._actors))
        assert most <= 4
        assert len(outcomes) == 40
        assert outcomes.count("in") >= 4
        await tapster.create_session("later")


async def test_listeners_of_a_session_are_bounded(autojump_clock: MockClock) -> None:
    async with open_small() as tapster:
        handle = await tapster.create_session("s")
        listeners = [await handle.subscribe() for _ in range(64)]
        with pytest.raises(Overloaded):
            await handle.subscribe()
        listeners.pop().close()
        await handle.subscribe()


async def test_crashes_rebuild_a_session_until_they_are_too_many(autojump_clock: MockClock) -> None:
    async with open_small(idle_s=None) as tapster:
        handle = await tapster.create_session("s")
        await handle.send("Remember the bell.")
        await handle.when_idle()
        for _ in range(3):
            with pytest.raises(ActorGone):
                await (await handle.child.ref()).ask(Subscribe("not a seq"))  # type: ignore[arg-type]
            await handle.flush()
            texts = [event for event in (await tapster.history("s")).events if event.type == "user/message"]
            assert "Remember the bell." in str([event.data for event in texts])
        with pytest.raises(ActorGone):
            await (await handle.child.ref()).ask(Subscribe("not a seq"))  # type: ignore[arg-type]
        with pytest.raises(Quarantined):
            await handle.flush()
        handle.child.reset()
        await handle.flush()


async def test_a_crashed_session_actor_comes_back_with_the_next_request(autojump_clock: MockClock) -> None:
    async with open_small(idle_s=None) as tapster:
        handle = await tapster.create_session("s")
        tapster.sessions.tell(embedded_key("s"), "nothing that it knows")
        await wait_all_tasks_blocked()
        await handle.send("Still there?")
        await handle.when_idle()
        ends = [event.data["reason"] for event in (await tapster.history("s")).events if event.type == "turn/end"]
        assert [reason["kind"] for reason in ends] == ["completed"]
        assert sum(actor.restarts for actor in tapster.roster.readings()) == 1


async def test_a_child_inherits_and_is_then_its_own(autojump_clock: MockClock) -> None:
    async with open_small() as tapster:
        preset = await tapster.library.presets.create("Harbour")
        other = await tapster.library.presets.create("Reef")
        parent = await tapster.create_session("parent")
        await tapster.select("parent", {"presetId": preset["id"]})
        await parent.send("Once.")
        await parent.when_idle()
        await parent.fork("fork")
        await tapster.host.delegate("parent", "helper")
        for child in ("fork", "helper"):
            assert (await tapster.library.selections.get(embedded_key(child))).preset_id == preset["id"]
        await tapster.select("parent", {"presetId": other["id"]})
        await tapster.select("fork", {"presetId": None})
        found = {name: (await tapster.library.selections.get(embedded_key(name))).preset_id for name in
                 ("parent", "fork", "helper")}  # fmt: skip
        assert found == {"parent": other["id"], "fork": None, "helper": preset["id"]}


async def test_what_changes_the_library_never_waits_for_a_running_agent(autojump_clock: MockClock) -> None:
    """Template apply, edits, deletion and relations keep their success answers (spec/loader §4)."""
    provider = scripted([Pause(50), *says("Long.")])
    async with open_small(provider) as tapster:
        library = tapster.library
        first, second = await library.presets.create("First"), await library.presets.create("Second")
        book = await library.world_books.create("Harbour")
        handle = await tapster.create_session("s")
        await tapster.select("s", {"presetId": first["id"], "worldBookIds": [book["id"]]})
        template = await library.templates.create("As it is", "s")
        await handle.send("Go on.")
        await trio.sleep(1)
        assert tapster.is_running("s")
        with pytest.raises(AgentRunning):
            await tapster.select("s", {"presetId": second["id"]})
        source = {"mode": "template", "templateId": template["id"]}
        assert (await library.templates.apply("s", source))["selection"]["presetId"] == first["id"]
        assert (await library.presets.update(first["id"], {**first, "name": "Renamed"}))["name"] == "Renamed"
        assert await library.relations.set_books("preset", first["id"], [book["id"]]) is not None
        await library.world_books.delete(book["id"])
        await library.presets.delete(first["id"])
        assert tapster.is_running("s")
        assert (await library.selections.get(embedded_key("s"))).preset_id is None
        await handle.when_idle()
        ends = [event.data["reason"]["kind"] for event in (await tapster.history("s")).events
                if event.type == "turn/end"]  # fmt: skip
        assert ends == ["completed"]
        assert (await tapster.preview("s")).snapshot.resources.preset is None


async def test_many_sessions_need_no_more_than_those_awake(autojump_clock: MockClock) -> None:
    count, max_live = 200, 16
    async with open_small(idle_s=None, max_live=max_live) as tapster:
        for number in range(max_live):
            await tapster.create_session(f"first-{number}")
        store = tapster.store.statistics().writes
        tasks = task_count()
        for number in range(count):
            await tapster.create_session(f"s-{number}")
        assert tapster.store.statistics().writes > store
        assert task_count() <= tasks + 10
        reading = read_runtime(tapster)
        assert reading.live <= max_live
        assert len(tapster.host._live) <= max_live
        assert len(tapster.sessions._entries) <= max_live


async def test_an_idle_session_takes_less_than_64_kib(autojump_clock: MockClock) -> None:
    async with open_small(idle_s=None, max_live=2000) as tapster:
        for number in range(20):
            await tapster.create_session(f"warm-{number}")
        gc.collect()
        tracemalloc.start()
        before, _ = tracemalloc.get_traced_memory()
        for number in range(40):
            await tapster.create_session(f"s-{number}")
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert (after - before) / 40 < 64 * 1024
