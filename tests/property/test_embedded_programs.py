"""Programs of messages, cancels, waits, faults and restarts against one session, checked against its log."""

from collections import Counter
from collections.abc import Sequence

import attrs
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from tapster.actors.hosts import MemorySessionLog
from tapster.actors.hosts.embedded import AgentHandle, Tool, ToolExecution, ToolRegistry
from tapster.actors.hosts.embedded.inbox import replay
from tapster.actors.providers import ScriptedProvider
from tapster.actors.providers.scripted import Item, Pause, calls, fails, says
from tapster.engine.ecma import Json
from tapster.engine.errors import StoreError
from tapster.engine.projection import Event, derive_messages, fork_cut, open_turn
from tests.support.cancel import task_count
from tests.support.hosts import Rig, open_rig


@attrs.frozen
class Say:
    """Send a message by one of the ways in."""

    way: str


@attrs.frozen
class Stop:
    keep_inbox: bool


@attrs.frozen
class Wait:
    seconds: float


@attrs.frozen
class Reopen:
    """Close the session and open it again."""


@attrs.frozen
class BreakStore:
    writes: int


@attrs.frozen
class Fork:
    """Fork it and let the child speak once."""


Command = Say | Stop | Wait | Reopen | BreakStore | Fork
STORY = says("The storm came over the western reef")
ANSWERS: Sequence[list[Item]] = [
    calls(("c-1", "read", "{}"), ("c-2", "read", "{}"), text="Let me look."),
    [Pause(0.5), *STORY[:4], Pause(2), *STORY[4:]],
    says("Aye."),
    calls(("c-3", "nobody", "{")),
    fails("SERVER", status=503),
    fails("INVALID_REQUEST", status=400),
]
COMMANDS = st.one_of(
    st.builds(Say, st.sampled_from(["followup", "steer", "inject", "send"])),
    st.builds(Say, st.sampled_from(["followup", "steer", "inject", "send"])),
    st.builds(Stop, st.booleans()),
    st.builds(Wait, st.sampled_from([0.1, 0.6, 1.5, 30.0])),
    st.builds(Reopen),
    st.builds(BreakStore, st.integers(1, 3)),
    st.builds(Fork),
)


@settings(max_examples=100, deadline=None)
@given(st.lists(COMMANDS, max_size=14), st.lists(st.sampled_from(ANSWERS), max_size=8))
def test_no_program_breaks_a_log(program: list[Command], answers: list[list[Item]]) -> None:
    trio.run(run, program, answers, clock=trio.testing.MockClock(autojump_threshold=0))


async def run(program: list[Command], answers: list[list[Item]]) -> None:
    provider = ScriptedProvider()
    provider.add(*answers)
    log = MemorySessionLog(delay_s=0.01)
    tasks = task_count()
    accepted: list[str] = []
    async with open_rig(provider, log, tools()) as rig:
        handle = await rig.host.create("s")
        for number, command in enumerate(program):
            handle = await obey(rig, log, handle, command, number, accepted)
        await trio.sleep(600)
        log.failing = 0
        for live in rig.host.live:
            agent = rig.agent(live.id)
            assert replay(agent.own_events()) == agent.queues
    assert task_count() == tasks
    assert provider.active == 0
    for header in await log.headers():
        stored = await log.read(header.id)
        check_order(stored.events)
        check_calls(stored.events)
        if header.id == "s":
            check_messages(stored.events, accepted)


def tools() -> ToolRegistry:
    async def body(execution: ToolExecution) -> str:
        await trio.sleep(1)
        return "page"

    registry = ToolRegistry()
    registry.add(Tool("read", "Reads.", {"type": "object"}, body))
    return registry


async def obey(
    rig: Rig, log: MemorySessionLog, handle: AgentHandle, command: Command, number: int, accepted: list[str]
) -> AgentHandle:
    match command:
        case Say(way):
            await say(handle, way, number, accepted)
        case Stop(keep_inbox):
            try:
                await handle.cancel(keep_inbox=keep_inbox)
            except StoreError:
                assert handle.is_live
        case Wait(seconds):
            await trio.sleep(seconds)
        case BreakStore(writes):
            log.failing = writes
        case Reopen():
            log.failing = 0
            await handle.close()
            return await rig.host.open("s")
        case Fork():
            log.failing = 0
            child = await handle.fork(f"child-{number}")
            await child.followup("and here?")
    return handle


async def say(handle: AgentHandle, way: str, number: int, accepted: list[str]) -> None:
    message: Json = {"id": f"u-{number}", "content": [{"type": "text", "text": f"line {number}"}]}
    try:
        await getattr(handle, way)(message)
    except StoreError:
        # Not acknowledged; the splice still is in memory and goes with the next flush.
        assert handle.is_live
    else:
        accepted.append(message["id"])


def check_order(events: Sequence[Event]) -> None:
    assert [event.seq for event in events] == list(range(len(events)))
    assert open_turn(events) is None
    depth: list[str] = []
    for event in events:
        if event.type in ("turn/start", "step/start"):
            depth.append(event.type)
            assert depth in (["turn/start"], ["turn/start", "step/start"])
        elif event.type in ("turn/end", "step/end"):
            assert depth.pop() == event.type.replace("end", "start")
        elif event.type in ("user/message", "assistant/message", "tool/call", "tool/result", "system/message"):
            assert depth == ["turn/start", "step/start"], event.type
    assert depth == []
    turns = [event.data["turn"] for event in events if event.type == "turn/start"]
    assert turns == list(range(1, len(turns) + 1))
    assert fork_cut(events) == len(events) - 1


def check_calls(events: Sequence[Event]) -> None:
    called = [event.seq for event in events if event.type == "tool/call"]
    answered = [event.source_event_seqs for event in events if event.type == "tool/result"]
    assert answered == [(seq,) for seq in called]
    blocks = [block for message in derive_messages(events) for block in message["content"]]
    kinds = Counter(block["type"] for block in blocks)
    assert kinds["tool-call"] == kinds["tool-result"] == len(called)


def check_messages(events: Sequence[Event], accepted: list[str]) -> None:
    splices = [event.data for event in events if event.type == "agent/inbox/spliced"]
    inserted = Counter(message["id"] for data in splices for message in data["inserted"])
    removed = sum(data.get("removedCount", 0) for data in splices)
    assert max(inserted.values(), default=1) == 1
    assert set(accepted) <= set(inserted), "an acknowledged message is in the log"
    assert removed <= len(inserted)
    said = Counter(message["id"] for message in derive_messages(events) if message["id"].startswith("u-"))
    assert max(said.values(), default=1) == 1, "no message is taken twice"
    assert set(said) <= set(inserted)
