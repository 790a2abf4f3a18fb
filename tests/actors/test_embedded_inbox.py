"""Inbox splices, claims and cancels (spec/dsh_host §4, §7)."""

from typing import Any

import pytest
import trio

from tapster.actors.hosts.embedded import InboxError, StepContext, Tool, ToolExecution, ToolRegistry
from tapster.actors.providers import ScriptedProvider
from tapster.actors.providers.scripted import Pause, calls, says
from tapster.engine.ecma import Json
from tapster.engine.errors import RequestError
from tapster.engine.projection.events import INBOX_SPLICED
from tests.support.hosts import Rig, open_rig


def splices(rig: Rig, since: int = 0) -> list[str]:
    found = []
    for event in rig.events()[since:]:
        if event.type == INBOX_SPLICED:
            data = event.data
            inserted = ",".join(message["content"][0]["text"] for message in data["inserted"])
            removed = data.get("removedCount", 0)
            found.append(
                f"{data['target']} {data['start']} -{removed} +[{inserted}] {data.get('outcome', '')}".rstrip()
            )
    return found


def texts(messages: Any) -> list[str]:
    return [message["content"][0].get("text", "") for message in messages]


async def test_input_while_a_tool_runs_is_spliced_and_claimed_as_in_the_recording(autojump_clock: object) -> None:
    provider = ScriptedProvider()
    provider.add(calls(("c-1", "read", "{}"), ("c-2", "read", "{}")))
    steps: list[list[str]] = []
    started = trio.Event()

    async def body(execution: ToolExecution) -> str:
        started.set()
        await trio.sleep(1)
        return "page"

    async def pre_step(value: Any, context: StepContext, following: Any) -> Any:
        steps.append(texts(value.messages))
        return await following()

    tools = ToolRegistry()
    tools.add(Tool("read", "Reads.", {"type": "object"}, body))
    async with open_rig(provider, tools=tools) as rig:
        rig.host.hooks.pre_step.add(pre_step)
        handle = await rig.host.create("s")
        await handle.followup("read")
        await started.wait()
        mark = len(rig.events())
        await handle.steer("steer")
        await handle.inject({"content": [{"type": "text", "text": "note"}], "source": {"kind": "plugin"}})
        await handle.followup("q1")
        second = await handle.followup("q2")
        third = await handle.followup("q3")
        await handle.replace(second["id"], "q2'")
        await handle.remove(third["id"])
        await handle.prepend("next-step", "pre")
        await handle.when_idle()
        assert splices(rig, mark) == [
            "next-step 0 -0 +[steer]",
            "next-step 1 -0 +[note]",
            "next-turn 0 -0 +[q1]",
            "next-turn 1 -0 +[q2]",
            "next-turn 2 -0 +[q3]",
            "next-turn 1 -1 +[q2'] canceled",
            "next-turn 2 -1 +[] canceled",
            "next-step 0 -0 +[pre]",
            "next-step 0 -3 +[]",
            "next-turn 0 -1 +[]",
            "next-turn 0 -1 +[]",
        ]
        turns = [event.data["turn"] for event in rig.events() if event.type == "turn/start"]
    assert steps == [["read"], ["pre", "steer", "note"], ["q1"], ["q2'"]]
    assert turns == [1, 2, 3]


async def test_a_steer_during_a_plain_answer_makes_a_second_step(autojump_clock: object) -> None:
    provider = ScriptedProvider()
    provider.add([Pause(1), *says("first")], says("second"))
    stopped: list[int] = []

    async def stopping(context: StepContext) -> None:
        stopped.append(context.step)

    async with open_rig(provider) as rig:
        rig.host.hooks.turn_stopping.add(stopping)
        handle = await rig.host.create("s")
        await handle.followup("a")
        await handle.send("b")
        await handle.when_idle()
        steps = [event.data for event in rig.events() if event.type == "step/start"]
    assert steps == [{"turn": 1, "step": 1}, {"turn": 1, "step": 2}]
    assert stopped == [2]


async def test_an_injected_message_waits_for_whatever_wakes(autojump_clock: object) -> None:
    async with open_rig() as rig:
        handle = await rig.host.create("s")
        await handle.inject("note")
        await handle.when_idle()
        assert rig.types() == [INBOX_SPLICED]
        await handle.steer("wake")
        await handle.when_idle()
        assert texts(rig.provider.requests[0].messages) == ["note", "wake"]
        await handle.inject("note 2")
        await handle.followup("question")
        await handle.when_idle()
        assert splices(rig)[-2:] == ["next-step 0 -1 +[]", "next-turn 0 -1 +[]"]


async def test_a_listener_at_the_turns_end_may_steer(autojump_clock: object) -> None:
    async def stopping(context: StepContext) -> None:
        if context.step == 1:
            context.agent.steer("one more thing")

    async with open_rig() as rig:
        rig.host.hooks.turn_stopping.add(stopping)
        handle = await rig.host.create("s")
        await handle.followup("a")
        await handle.when_idle()
        assert len(rig.provider.requests) == 2
        assert rig.types().count("turn/start") == 1


async def test_a_message_is_pending_once_and_must_be_whole(autojump_clock: object) -> None:
    async with open_rig() as rig:
        handle = await rig.host.create("s")
        message = await handle.inject("a")
        with pytest.raises(InboxError) as caught:
            await handle.inject(message)
        assert caught.value.code == "DUPLICATE_MESSAGE"
        with pytest.raises(InboxError) as caught:
            await handle.remove("nobody")
        assert caught.value.code == "MESSAGE_NOT_PENDING"
        for bad in ({"content": "text"}, 7, {"role": "tool", "content": []}):
            with pytest.raises(RequestError) as refused:
                await handle.followup(bad)
            assert refused.value.code == "INVALID_MESSAGE"
        assert rig.types() == [INBOX_SPLICED]


def slow(text: str = "The storm came over the reef") -> ScriptedProvider:
    provider = ScriptedProvider()
    script = says(text)
    provider.add([*script[:4], Pause(60), *script[4:]])
    return provider


async def test_a_cancel_in_mid_stream_keeps_what_was_read(autojump_clock: object) -> None:
    provider = slow()
    async with open_rig(provider) as rig:
        handle = await rig.host.create("s")
        await handle.followup("tell")
        await trio.sleep(1)
        await handle.followup("queued")
        await handle.inject("note")
        mark = len(rig.events())
        await handle.cancel()
        await handle.when_idle()
        assert splices(rig, mark) == ["next-step 0 -1 +[] canceled", "next-turn 0 -1 +[] canceled"]
        assert rig.types(since=mark)[2:] == ["assistant/message", "step/end", "turn/end"]
        message = rig.events()[mark + 2].data
        assert message["interrupted"] is True
        assert message["message"]["content"] == [{"type": "text", "text": "The storm came "}]
        assert rig.last_end() == {"kind": "aborted", "reason": {"kind": "user"}}
        assert rig.provider.active == 0
        assert trio.current_time() < 2


async def test_a_cancel_may_keep_the_inbox_and_the_driver_still_goes_idle(autojump_clock: object) -> None:
    provider = slow()
    async with open_rig(provider) as rig:
        handle = await rig.host.create("s")
        await handle.followup("tell")
        await trio.sleep(1)
        await handle.followup("queued")
        await handle.cancel({"kind": "hook", "reason": "test"}, keep_inbox=True)
        await handle.when_idle()
        assert rig.last_end() == {"kind": "aborted", "reason": {"kind": "hook", "reason": "test"}}
        assert len(rig.agent().queues.next_turn) == 1
        await handle.followup("more")
        await handle.when_idle()
        assert rig.types().count("turn/start") == 3


async def test_before_any_text_a_cancelled_stream_leaves_no_message(autojump_clock: object) -> None:
    provider = ScriptedProvider()
    provider.add([Pause(60), *says("late")])
    async with open_rig(provider) as rig:
        handle = await rig.host.create("s")
        await handle.followup("tell")
        await trio.sleep(1)
        await handle.cancel()
        await handle.when_idle()
        assert "assistant/message" not in rig.types()
        assert rig.last_end()["kind"] == "aborted"


@pytest.mark.parametrize("hook", ["assemble", "pre_step"])
async def test_a_cancel_before_the_step_loses_the_claimed_input(autojump_clock: object, hook: str) -> None:
    async def waits(value: Any, context: Any, following: Any) -> Any:
        await trio.sleep(60)
        return await following()

    async with open_rig() as rig:
        getattr(rig.host.hooks, hook).add(waits)
        handle = await rig.host.create("s")
        await handle.followup("tell")
        await trio.sleep(1)
        await handle.cancel()
        await handle.when_idle()
        assert rig.types() == [INBOX_SPLICED, "turn/start", INBOX_SPLICED, "turn/end"]
        assert rig.agent().queues.next_turn == ()


async def test_a_deaf_listener_delays_the_end_and_still_ends_aborted(autojump_clock: object) -> None:
    async def deaf(value: Any, context: Any, following: Any) -> Any:
        with trio.CancelScope(shield=True):
            await trio.sleep(5)
        return await following()

    async with open_rig() as rig:
        rig.host.hooks.assemble.add(deaf)
        handle = await rig.host.create("s")
        await handle.followup("tell")
        await trio.sleep(1)
        await handle.cancel()
        late = await handle.steer("after the abort")
        assert rig.agent().queues.next_turn == (late,), "what comes after an abort waits for the next turn"
        await trio.sleep(3)
        assert rig.agent().open_turn == 1
        await handle.when_idle()
        assert rig.types().count("turn/end") == 2


async def test_cancelled_tools_get_results(autojump_clock: object) -> None:
    provider = ScriptedProvider()
    provider.add(calls(("c-1", "read", "{}"), ("c-2", "read", "{}"), ("c-3", "read", "{}")))

    async def body(execution: ToolExecution) -> str:
        if execution.call_id == "c-2":
            await trio.sleep(60)
        return "page"

    tools = ToolRegistry()
    tools.add(Tool("read", "Reads.", {"type": "object"}, body))
    async with open_rig(provider, tools=tools) as rig:
        handle = await rig.host.create("s")
        await handle.followup("read")
        await trio.sleep(1)
        await handle.cancel()
        await handle.when_idle()
        results = [event.data for event in rig.events() if event.type == "tool/result"]
        started = [event.data["callId"] for event in rig.events() if event.type == "tool/call"]
    codes: list[Json] = [result.get("error", {}).get("code") for result in results]
    assert codes == [None, "TOOL_ABORTED", "TOOL_ABORTED_BEFORE_DISPATCH"]
    assert started == ["c-1", "c-2", "c-3"]


async def test_a_guard_that_cancels_the_turn_still_gives_its_reason(autojump_clock: object) -> None:
    provider = ScriptedProvider()
    provider.add(calls(("c-1", "read", "{}"), ("c-2", "read", "{}")))

    def guard(execution: ToolExecution) -> str:
        execution.agent.cancel({"kind": "hook", "reason": "blocked"}, keep_inbox=True)
        return "locked"

    async with open_rig(provider) as rig:
        rig.host.tools.guard(guard)
        handle = await rig.host.create("s")
        await handle.followup("read")
        await handle.when_idle()
        results = [event.data for event in rig.events() if event.type == "tool/result"]
        assert rig.last_end() == {"kind": "aborted", "reason": {"kind": "hook", "reason": "blocked"}}
    assert results[0]["message"]["content"][0]["content"] == [{"type": "text", "text": "Error: locked"}]
    assert results[1]["error"]["code"] == "TOOL_ABORTED_BEFORE_DISPATCH"


async def test_what_a_tool_did_before_a_cancel_is_kept(autojump_clock: object) -> None:
    provider = ScriptedProvider()
    provider.add(calls(("c-1", "read", "{}")))

    async def body(execution: ToolExecution) -> str:
        execution.agent.cancel()
        return "page"

    tools = ToolRegistry()
    tools.add(Tool("read", "Reads.", {"type": "object"}, body))
    async with open_rig(provider, tools=tools) as rig:
        handle = await rig.host.create("s")
        await handle.followup("read")
        await handle.when_idle()
        results = [event.data for event in rig.events() if event.type == "tool/result"]
        assert rig.last_end()["kind"] == "aborted"
    assert results[0]["message"]["content"][0]["content"] == [{"type": "text", "text": "page"}]


async def test_an_idle_agent_can_be_cancelled(autojump_clock: object) -> None:
    async with open_rig() as rig:
        handle = await rig.host.create("s")
        await handle.inject("note")
        await handle.cancel()
        assert splices(rig) == ["next-step 0 -0 +[note]", "next-step 0 -1 +[] canceled"]
        await handle.followup("go on")
        await handle.when_idle()
        assert rig.last_end() == {"kind": "completed"}
