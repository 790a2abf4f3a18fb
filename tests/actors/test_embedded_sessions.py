"""Session start, fork, resume, repair, delegation, subscribers and compaction (spec/dsh_host §9)."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import trio

from tapster.actors.hosts import MemorySessionLog, SessionExists, SessionNotFound
from tapster.actors.hosts.embedded import (
    AgentCreated,
    AgentHandle,
    EmbeddedHost,
    LiveChunk,
    LiveItem,
    Subscription,
    Tool,
    ToolExecution,
    ToolRegistry,
)
from tapster.actors.hosts.stored_log import StoredSessionLog
from tapster.actors.providers import ScriptedProvider
from tapster.actors.providers.scripted import Pause, calls, says
from tapster.actors.store import SessionKey, StoreConfig, open_store
from tapster.engine.errors import FormatError, RequestError, StoreError, TapsterError
from tapster.engine.projection import Event, SessionForkError, SessionHeader, derive_messages
from tapster.runtime import ActorGone, Draining, Quarantined
from tests.support.cancel import cancel_everywhere, task_count
from tests.support.hosts import Rig, TrioClock, open_rig


async def talk(handle: AgentHandle, *lines: str) -> None:
    for line in lines:
        await handle.followup(line)
        await handle.when_idle()


async def begin(host: EmbeddedHost, origin: str, session_id: str = "child") -> AgentHandle:
    if origin == "new":
        return await host.create(session_id)
    if origin == "fork":
        return await host.fork("parent", session_id)
    if origin == "delegate":
        return await host.delegate("parent", session_id)
    return await host.open("parent")


ORIGINS = ["new", "fork", "resume", "delegate"]


@pytest.mark.parametrize("origin", ORIGINS)
async def test_session_start_is_awaited_in_order_before_anything_is_served(autojump_clock: object, origin: str) -> None:
    heard: list[str] = []

    def hook(name: str) -> Any:
        async def listener(created: AgentCreated) -> None:
            await trio.sleep(5)
            inspection = await created.agent.session.inspect()
            heard.append(f"{name} {created.source} {created.origin} {len(inspection.events)}")

        return listener

    async with open_rig() as rig:
        await talk(await rig.host.create("parent"), "hello")
        await rig.host.close("parent")
        count = len((await rig.log.read("parent")).events)
        rig.host.hooks.agent_created.add(hook("first"))
        rig.host.hooks.agent_created.add(hook("second"))
        start = trio.current_time()
        handle = await begin(rig.host, origin)
        assert trio.current_time() - start == pytest.approx(10)
        await talk(handle, "more")
        assert rig.last_end(handle.id) == {"kind": "completed"}
    source = "resume" if origin == "resume" else "startup"
    events = {"new": 0, "delegate": 0}.get(origin, count + 1)
    assert heard == [f"first {source} {origin} {events}", f"second {source} {origin} {events}"]


@pytest.mark.parametrize("origin", ORIGINS)
@pytest.mark.parametrize("position", [0, 1, 2])
async def test_a_failing_part_of_the_start_fails_the_open_call_and_leaves_nothing(
    autojump_clock: object, origin: str, position: int
) -> None:
    heard: list[int] = []
    broken = [True]

    def hook(index: int) -> Any:
        async def listener(created: AgentCreated) -> None:
            heard.append(index)
            if index == position and broken[0]:
                raise StoreError("selection unreadable") if index else RuntimeError("boom")

        return listener

    async with open_rig() as rig:
        await talk(await rig.host.create("parent"), "hello")
        await rig.host.close("parent")
        before = await rig.log.read("parent")
        tasks = task_count()
        for index in range(3):
            rig.host.hooks.agent_created.add(hook(index))
        with pytest.raises(TapsterError) as caught:
            await begin(rig.host, origin)
        assert caught.value.code == ("STORE_FAILED" if position else "SESSION_START_FAILED")
        assert heard == list(range(position + 1))
        assert rig.host.live == ()
        assert await rig.log.read("parent") == before
        assert [header.id for header in await rig.log.headers()] == ["parent"]
        assert task_count() == tasks
        broken[0] = False
        await talk(await begin(rig.host, origin), "now it works")


async def test_a_store_that_refuses_the_first_write_fails_the_open_call(autojump_clock: object) -> None:
    log = MemorySessionLog(failing=1)
    async with open_rig(log=log) as rig:
        with pytest.raises(StoreError):
            await rig.host.create("s")
        assert rig.host.live == ()
        await talk(await rig.host.create("s"), "hello")


async def test_ids_are_taken_once_and_unknown_sessions_are_named(autojump_clock: object) -> None:
    async with open_rig() as rig:
        await rig.host.create("s")
        with pytest.raises(SessionExists):
            await rig.host.create("s")
        await rig.host.close("s")
        with pytest.raises(SessionExists):
            await rig.host.create("s")
        for call in (rig.host.open, rig.host.fork, rig.host.delegate):
            with pytest.raises(SessionNotFound):
                await call("nobody")


async def test_a_session_is_opened_once_for_all_who_wait(autojump_clock: object) -> None:
    starts: list[str] = []

    async def slow(created: AgentCreated) -> None:
        starts.append(created.source)
        await trio.sleep(1)

    async with open_rig() as rig:
        await rig.host.create("s")
        await rig.host.close("s")
        rig.host.hooks.agent_created.add(slow)
        handles: list[AgentHandle] = []

        async def open_it() -> None:
            handles.append(await rig.host.open("s"))

        async with trio.open_nursery() as nursery:
            for _ in range(10):
                nursery.start_soon(open_it)
        assert len({id(handle) for handle in handles}) == 1
    assert starts == ["resume"]


async def test_a_fork_copies_events_and_not_what_waits(autojump_clock: object) -> None:
    async with open_rig() as rig:
        parent = await rig.host.create("parent", cwd="/demo")
        await talk(parent, "one", "two")
        first_end = next(event.seq for event in rig.events("parent") if event.type == "turn/end")
        await parent.inject("waits in the parent")
        child = await parent.fork("child", at_seq=2)
        stored = await rig.log.read("child")
        assert stored.header.parent_session == "parent"
        assert stored.header.cwd == "/demo"
        length = stored.header.seed_length
        assert stored.header.is_seeded
        assert length >= first_end + 1
        assert stored.events[:length] == tuple(rig.events("parent")[:length])
        assert stored.events[length].type == "session/end-seed"
        assert rig.agent("child").queues == type(rig.agent("child").queues)()
        rig.provider.add(says("in the branch"))
        await talk(child, "and here?")
        turns = [event.data["turn"] for event in rig.events("child") if event.type == "turn/start"]
        assert turns == [1, 2]
        texts = [message["content"][0]["text"] for message in rig.provider.requests[-1].messages]
        assert texts == ["one", "All is well.", "and here?"]
        assert len(rig.events("parent")) == len((await rig.log.read("parent")).events)


async def test_the_first_header_after_a_fork_or_resume_that_differs_says_resume(autojump_clock: object) -> None:
    temperature = [0.1]

    async def request(value: Any, context: Any, following: Any) -> Any:
        return {**await following(), "temperature": temperature[0]}

    def reasons(rig: Rig, session_id: str) -> list[str]:
        return [event.data["reason"] for event in rig.events(session_id) if event.type == "request/header"]

    async with open_rig() as rig:
        rig.host.hooks.request.add(request)
        await talk(await rig.host.create("s"), "a")
        await rig.host.close("s")
        temperature[0] = 0.2
        await talk(await rig.host.open("s"), "b")
        temperature[0] = 0.3
        await talk(await rig.host.fork("s", "child"), "c")
        temperature[0] = 0.4
        await talk(await rig.host.open("child"), "d")
        assert reasons(rig, "s") == ["initial", "resume"]
        assert reasons(rig, "child") == ["initial", "resume", "resume", "change"]


async def test_a_fork_within_a_turn_is_refused(autojump_clock: object) -> None:
    provider = ScriptedProvider()
    provider.add([Pause(60)])
    async with open_rig(provider) as rig:
        parent = await rig.host.create("parent")
        await parent.followup("hello")
        await trio.sleep(1)
        with pytest.raises(SessionForkError) as caught:
            await rig.host.fork("parent", "child", cut=rig.agent("parent").seq - 1)
        assert caught.value.code == "OPEN_TURN"
        child = await parent.fork("child")
        assert [event.type for event in rig.events("child")] == ["agent/inbox/spliced", "session/end-seed"]
        assert child.is_live


async def test_a_killed_session_is_repaired_when_it_comes_back(autojump_clock: object) -> None:
    provider = ScriptedProvider()
    provider.add(calls(("c-1", "look", "{}"), ("c-2", "look", "{}")))
    log = MemorySessionLog()
    killed: list[Event] = []

    async def body(execution: ToolExecution) -> str:
        killed.extend((await log.read("s")).events)
        raise RuntimeError("the copy is taken")

    tools = ToolRegistry()
    tools.add(Tool("look", "Looks.", {"type": "object"}, body))
    async with open_rig(provider, log, tools) as rig:
        handle = await rig.host.create("s")
        await handle.followup("look around")
        await handle.when_idle()
    cut = next(event.seq for event in killed if event.type == "tool/call")
    header = (await log.read("s")).header
    crashed = MemorySessionLog()
    await crashed.create(header, killed[: cut + 1])
    async with open_rig(log=crashed) as rig:
        cold = await rig.host.session("s").inspect()
        handle = await rig.host.open("s")
        stored = (await crashed.read("s")).events
        assert cold.events == stored[:-1]
        assert [event.type for event in stored[cut + 1 :]] == [
            "tool/result",
            "tool/call",
            "tool/result",
            "step/end",
            "turn/end",
            "session/end-seed",
        ]
        codes = [event.data["error"]["code"] for event in stored if event.type == "tool/result"]
        assert codes == ["TOOL_OUTCOME_UNKNOWN", "TOOL_ABORTED_BEFORE_DISPATCH"]
        assert stored[cut + 5].data["reason"] == {"kind": "interrupted"}
        await talk(handle, "carry on")
        assert [message["role"] for message in rig.provider.requests[0].messages] == [
            "user",
            "assistant",
            "user",
            "user",
            "user",
        ]


async def test_pending_input_survives_a_restart(autojump_clock: object) -> None:
    log = MemorySessionLog()
    async with open_rig(log=log) as rig:
        handle = await rig.host.create("s")
        await handle.inject("note")
        await handle.prepend("next-turn", "queued")
    async with open_rig(log=log, first_id=100) as rig:
        handle = await rig.host.open("s")
        await talk(handle, "wake")
        await handle.when_idle()
        assert [message["content"][0]["text"] for message in rig.provider.requests[0].messages] == ["note", "queued"]
        assert len(rig.provider.requests) == 2


async def test_shutting_down_aborts_the_turn_and_writes_its_end(autojump_clock: object) -> None:
    provider = ScriptedProvider()
    script = says("The storm came over the reef")
    provider.add([*script[:3], Pause(600), *script[3:]])
    log = MemorySessionLog()
    async with open_rig(provider, log) as rig:
        handle = await rig.host.create("s")
        await handle.followup("tell")
        await trio.sleep(1)
    events = (await log.read("s")).events
    assert [event.type for event in events[-3:]] == ["assistant/message", "step/end", "turn/end"]
    assert events[-3].data["message"]["content"][0]["text"] == "The storm "
    assert events[-1].data["reason"] == {"kind": "aborted", "reason": {"kind": "disposed"}}
    assert provider.active == 0


async def test_a_host_that_closes_starts_no_more_agents(autojump_clock: object) -> None:
    async with open_rig() as rig:
        handle = await rig.host.create("s")
    with pytest.raises(Draining):
        await handle.followup("too late")
    with pytest.raises(Draining):
        await rig.host.create("t")


async def test_an_old_log_is_readable_and_not_written_to(autojump_clock: object) -> None:
    log = MemorySessionLog()
    await log.create(SessionHeader("old", 5, version=0), [])
    async with open_rig(log=log) as rig:
        assert (await rig.host.session("old").inspect()).meta["version"] == 0
        with pytest.raises(FormatError):
            await rig.host.open("old")


async def test_cancelling_a_parent_cancels_its_subagents(autojump_clock: object) -> None:
    provider = ScriptedProvider()
    provider.add([Pause(60)], [Pause(60)], [Pause(60)])
    async with open_rig(provider) as rig:
        parent = await rig.host.create("parent")
        child = await rig.host.delegate("parent", "child")
        other = await rig.host.create("other")
        for handle in (parent, child, other):
            await handle.followup("work")
        await trio.sleep(1)
        await parent.cancel()
        await parent.when_idle()
        await child.when_idle()
        assert rig.last_end("child") == {"kind": "aborted", "reason": {"kind": "parent"}}
        assert rig.agent("other").open_turn == 1
        header = await child.session.header()
        assert (header.origin, header.delegation_depth, header.parent_session) == ("subagent", 1, "parent")


async def test_a_subscriber_gets_the_backlog_then_chunks_and_events(autojump_clock: object) -> None:
    async with open_rig() as rig:
        handle = await rig.host.create("s")
        await talk(handle, "one")
        backlog = rig.agent().seq
        subscription = await handle.subscribe(after=1)
        rig.provider.add(says("two words"))
        await talk(handle, "two")
        items = [await subscription.receive() for _ in range(backlog - 2)]
        assert [item.seq for item in items if isinstance(item, Event)] == list(range(2, backlog))
        live = []
        while not (isinstance(item := await subscription.receive(), Event) and item.type == "turn/end"):
            live.append(item)
        words = [
            item.chunk.to_json()["text"] for item in live if isinstance(item, LiveChunk) and hasattr(item.chunk, "text")
        ]
        assert words == ["two ", "words"]
        subscription.close()
        assert rig.agent().log.subscriber_count == 0


async def test_a_slow_subscriber_is_ended_and_resumes_by_seq(autojump_clock: object) -> None:
    async with open_rig() as rig:
        handle = await rig.host.create("s")
        slow = await handle.subscribe()
        rig.provider.add(says(" ".join(["word"] * 400)))
        await talk(handle, "a long one")
        assert rig.agent().log.subscriber_count == 0
        seen = await drain(slow)
        assert len(seen) == 256
        last = max(item.seq for item in seen if isinstance(item, Event))
        again = await handle.subscribe(after=last)
        assert len(again.backlog) == rig.agent().seq - 1 - last
        await rig.host.close("s")
        rest = [item.seq for item in await drain(again) if isinstance(item, Event)]
        assert rest[0] == last + 1


async def drain(subscription: Subscription) -> list[LiveItem]:
    items: list[LiveItem] = []
    with suppress(trio.EndOfChannel):
        for _ in range(10_000):
            items += [await subscription.receive()]
    return items


async def test_a_compaction_replaces_history_and_keeps_the_events(autojump_clock: object) -> None:
    async with open_rig() as rig:
        rig.host.prompt.section("base", "Be kind.")
        handle = await rig.host.create("s")
        await talk(handle, "one", "two")
        nodes = [node.seq for node in rig.agent().log.surface.nodes]
        with pytest.raises(RequestError) as caught:
            await handle.replace_surface(nodes[0], nodes[2], "all of it")
        assert caught.value.code == "INVALID_SURFACE_RANGE"
        event = await handle.replace_surface(nodes[1], nodes[3], "what went before")
        assert event.source_event_seqs == tuple(nodes[1:4])
        await talk(handle, "three")
        roles = [(message["role"], message["content"][0]["text"]) for message in rig.provider.requests[-1].messages]
        assert roles == [
            ("system", "Be kind."),
            ("user", "what went before"),
            ("assistant", "All is well."),
            ("user", "three"),
        ]
        stored = (await rig.log.read("s")).events
        assert derive_messages(stored) == rig.agent().derive_messages()


async def test_an_unused_agent_passivates_and_the_next_message_brings_it_back(autojump_clock: object) -> None:
    async with open_rig(idle_s=60) as rig:
        handle = await rig.host.create("s", cwd="/demo")
        await handle.inject("note")
        subscription = await handle.subscribe()
        await trio.sleep(600)
        assert rig.host.agent("s") is not None, "someone listens"
        subscription.close()
        await trio.sleep(600)
        assert rig.host.agent("s") is None
        assert rig.host.live == ()
        await talk(handle, "wake")
        assert [message["content"][0]["text"] for message in rig.provider.requests[0].messages] == ["note", "wake"]
        assert rig.agent().options.cwd == "/demo"
        await trio.sleep(600)
        assert rig.host.live == ()
        async with trio.open_nursery() as nursery:
            for text in ("a", "b", "c"):
                nursery.start_soon(handle.followup, text)
        await handle.when_idle()
        await handle.close()
        with pytest.raises(ActorGone):
            await handle.followup("nobody brings a closed one back")
        assert (await rig.log.read("s")).events[-1].type == "turn/end"


async def test_a_message_that_meets_a_passivating_agent_is_not_lost(autojump_clock: object) -> None:
    log = MemorySessionLog()
    async with open_rig(log=log, idle_s=60) as rig:
        handle = await rig.host.create("s")
        await handle.inject("starts the watch")
        ref = await handle.child.ref()
        log.delay_s = 3
        rig.agent().log.append("session/title", {"title": "unsaved"})
        ref.stop()
        await trio.sleep(1)
        assert handle.is_live, "it is still writing"
        log.delay_s = 0
        await talk(handle, "arrives now")
        stored = (await log.read("s")).events
        assert [event.seq for event in stored] == list(range(len(stored)))
        assert "session/title" in {event.type for event in stored}


async def test_an_agent_that_crashes_comes_back_from_its_log(autojump_clock: object) -> None:
    provider = ScriptedProvider()
    script = says("The storm came over")
    provider.add([*script[:3], Pause(60), *script[3:]])
    async with open_rig(provider) as rig:
        handle = await rig.host.create("s")
        await handle.followup("tell")
        await trio.sleep(1)
        with pytest.raises(ActorGone):
            await handle.subscribe("not a number")  # type: ignore[arg-type]
        await talk(handle, "and then?")
        reasons = [event.data["reason"]["kind"] for event in rig.events() if event.type == "turn/end"]
        assert reasons == ["aborted", "completed"]
        assert "session/end-seed" in rig.types()
        for _ in range(3):
            with suppress(ActorGone):
                await handle.subscribe("not a number")  # type: ignore[arg-type]
        with pytest.raises(Quarantined):
            await handle.followup("too often")
        handle.child.reset()
        await talk(handle, "after the reset")
        assert rig.last_end() == {"kind": "completed"}


async def test_pages_and_call_configs_of_a_session(autojump_clock: object) -> None:
    async with open_rig() as rig:
        handle = await rig.host.create("s")
        await talk(handle, "one")
        await rig.host.close("s")
        session = rig.host.session("s")
        whole = (await session.inspect()).events
        newest = await session.page(limit=3)
        older = await session.page(before=newest.events[0].seq, limit=100)
        assert (newest.has_more, older.has_more) == (True, False)
        assert older.events + newest.events == whole
        with pytest.raises(TapsterError) as caught:
            await session.resolve_call_config({"provider": "nope"})
        assert caught.value.code == "NO_ADAPTER"
        with pytest.raises(TapsterError) as caught:
            await session.resolve_call_config({"provider": "prov", "model": "m", "reasoningEffort": "ultra"})
        assert caught.value.code == "UNSUPPORTED_REASONING_EFFORT"
        with pytest.raises(TapsterError) as caught:
            await session.set_sandbox("read-only")
        assert caught.value.code == "SESSION_NOT_LIVE"


@pytest.mark.parametrize("any_task", [False, True])
async def test_a_whole_life_cancelled_at_every_step_leaves_nothing_open(autojump_clock: object, any_task: bool) -> None:
    tasks = task_count()
    log = MemorySessionLog()
    providers: list[ScriptedProvider] = []

    async def body(execution: ToolExecution) -> str:
        await trio.sleep(0.1)
        return "page"

    async def waits(value: Any, context: Any, following: Any) -> Any:
        await trio.sleep(0.1)
        return await following()

    async def life() -> None:
        nonlocal log
        log = MemorySessionLog(delay_s=0.01)
        provider = ScriptedProvider()
        provider.add(calls(("c-1", "read", "{}"), text="Let me look."), says("Fog."))
        providers.append(provider)
        tools = ToolRegistry()
        tools.add(Tool("read", "Reads.", {"type": "object"}, body))
        async with open_rig(provider, log, tools) as rig:
            rig.host.hooks.assemble.add(waits)
            handle = await rig.host.create("s")
            await handle.followup("look")
            await handle.when_idle()

    async def check(was_cancelled: bool) -> None:
        assert task_count() == tasks
        assert providers[-1].active == 0
        for header in await log.headers():
            events = (await log.read(header.id)).events
            assert [event.seq for event in events] == list(range(len(events)))
            starts = [event.type for event in events if event.type in ("turn/start", "turn/end")]
            assert starts in ([], ["turn/start", "turn/end"])
            opened = [event.type for event in events if event.type in ("step/start", "step/end")]
            assert opened == ["step/start", "step/end"] * (len(opened) // 2)
            called = [event for event in events if event.type == "tool/call"]
            assert len(called) == len([event for event in events if event.type == "tool/result"])

    runs = await cancel_everywhere(life, check, any_task=any_task)
    assert runs >= 10, runs


@pytest.mark.slow
async def test_a_session_over_the_real_store_comes_back_whole(tmp_path: Path) -> None:
    config = StoreConfig(tmp_path)
    provider = ScriptedProvider()
    async with open_store(config, clock=TrioClock()) as store, open_rig(provider, StoredSessionLog(store)) as rig:
        parent = await rig.host.create("s", first_events=[("sandbox/mode", {"mode": "read-only"})])
        await talk(parent, "one")
        await talk(await parent.fork("child"), "two")
        written = rig.events("child")
        with pytest.raises(SessionExists):
            await rig.host.create("child")
        assert (await store.session_head(SessionKey("embedded", "child"))) is not None
    async with (
        open_store(config, clock=TrioClock()) as store,
        open_rig(provider, StoredSessionLog(store), first_id=100) as rig,
    ):
        handle = await rig.host.open("child")
        assert rig.events("child")[:-1] == written
        await talk(handle, "three")
        assert {header.id for header in await rig.host.headers()} == {"s", "child"}
        with pytest.raises(SessionNotFound):
            await rig.host.open("nobody")


async def test_fifty_sessions_at_once_each_get_their_own_answers(autojump_clock: object) -> None:
    provider = ScriptedProvider(fallback="Aye.")

    async def slowly(value: Any, context: Any, following: Any) -> Any:
        await trio.sleep(1)
        return await following()

    async with open_rig(provider) as rig:
        rig.host.hooks.assemble.add(slowly)
        rig.host.prompt.section("who", lambda context: f"You serve {context.agent.id}.")

        async def one(number: int) -> None:
            handle = await rig.host.create(f"s-{number}")
            await talk(handle, f"question {number}", f"again {number}")

        start = trio.current_time()
        async with trio.open_nursery() as nursery:
            for number in range(50):
                nursery.start_soon(one, number)
        assert trio.current_time() - start == pytest.approx(2)
        for number in range(50):
            said = [message["content"][0]["text"] for message in rig.agent(f"s-{number}").derive_messages()]
            assert said == [f"You serve s-{number}.", f"question {number}", "Aye.", f"again {number}", "Aye."]
