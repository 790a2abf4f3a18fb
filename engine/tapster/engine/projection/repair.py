"""Events that close what a crash left open: tool calls without result, a step, a turn.

A pure function of the log, so that a cold read shows the same closers a resume will write.

Source: spec/dsh_host §9.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from tapster.engine.ecma import Json

from .events import (
    APPEND,
    ASSISTANT_MESSAGE,
    STEP_END,
    STEP_START,
    TOOL_CALL,
    TOOL_RESULT,
    TURN_END,
    TURN_START,
    Event,
    SurfaceOp,
)
from .session_log import open_turn

OUTCOME_UNKNOWN: Final = {"name": "ToolOutcomeUnknownError", "code": "TOOL_OUTCOME_UNKNOWN"}
ABORTED_BEFORE_DISPATCH: Final = {"name": "ToolAbortedError", "code": "TOOL_ABORTED_BEFORE_DISPATCH"}
OUTCOME_UNKNOWN_TEXT: Final = (
    "This call was started, but the program stopped before a result was recorded: nobody knows whether it took "
    "effect. Repeat it only if repeating does no harm; otherwise look at the outside state first, or ask the user."
)
ABORTED_BEFORE_DISPATCH_TEXT: Final = "This call was never started: the turn ended before its place came."


def tool_result_message(message_id: str, call_id: str, text: str, *, is_error: bool) -> Json:
    """A tool result as a message of the surface."""
    block = {
        "type": "tool-result",
        "toolCallId": call_id,
        "content": [{"type": "text", "text": text}],
        "isError": is_error,
    }
    return {"id": message_id, "role": "user", "source": {"kind": "tool", "callId": call_id}, "content": [block]}


def tool_calls(message: Json) -> list[Json]:
    """The tool-call blocks of an assistant message, in model order."""
    content = message.get("content") if isinstance(message, dict) else None
    return [block for block in content or () if isinstance(block, dict) and block.get("type") == "tool-call"]


def closers(events: Sequence[Event]) -> tuple[Event, ...]:
    """The events that close an interrupted log; empty when it ended in order.

    Their time is that of the last event: nothing is known of when the crash happened.
    """
    turn = open_turn(events)
    if turn is None:
        return ()
    start = max(index for index, event in enumerate(events) if event.type == TURN_START)
    return tuple(_close(events[start:], turn, _Writer(len(events), events[-1].time_ms)))


@attrs.define
class _Writer:
    seq: int
    time_ms: int

    def event(
        self, kind: str, data: Json, op: SurfaceOp | None = None, sources: tuple[int, ...] | None = None
    ) -> Event:
        event = Event(kind, self.seq, self.time_ms, data, op, sources)
        self.seq += 1
        return event


def _close(tail: Sequence[Event], turn: int, writer: _Writer) -> Iterator[Event]:
    step = _open_step(tail)
    if step is not None:
        yield from _close_calls(tail, turn, step, writer)
        yield writer.event(STEP_END, {"turn": turn, "step": step})
    yield writer.event(TURN_END, {"turn": turn, "reason": {"kind": "interrupted"}})


def _open_step(tail: Sequence[Event]) -> int | None:
    for event in reversed(tail):
        if event.type == STEP_END:
            return None
        if event.type == STEP_START:
            return int(event.data["step"])
    return None


def _close_calls(tail: Sequence[Event], turn: int, step: int, writer: _Writer) -> Iterator[Event]:
    place = {"turn": turn, "step": step}
    started = {event.data["callId"]: event.seq for event in tail if event.type == TOOL_CALL and _in(event, step)}
    ended = {_result_call(event) for event in tail if event.type == TOOL_RESULT}
    for call_id, seq in started.items():
        if call_id not in ended:
            message_id = f"interrupted-tool-result-{call_id}-{writer.seq}"
            message = tool_result_message(message_id, call_id, OUTCOME_UNKNOWN_TEXT, is_error=True)
            data = {**place, "message": message, "error": dict(OUTCOME_UNKNOWN)}
            yield writer.event(TOOL_RESULT, data, APPEND, (seq,))
    for block in _calls_of_step(tail, step):
        if block["id"] not in started:
            call = {**place, "callId": block["id"], "name": block["name"], "arguments": block["arguments"]}
            yield (logged := writer.event(TOOL_CALL, call))
            message_id = f"interrupted-tool-result-{block['id']}-{writer.seq}"
            message = tool_result_message(message_id, block["id"], ABORTED_BEFORE_DISPATCH_TEXT, is_error=True)
            data = {**place, "message": message, "error": dict(ABORTED_BEFORE_DISPATCH)}
            yield writer.event(TOOL_RESULT, data, APPEND, (logged.seq,))


def _calls_of_step(tail: Sequence[Event], step: int) -> list[Json]:
    answers = [event for event in tail if event.type == ASSISTANT_MESSAGE and _in(event, step)]
    return tool_calls(answers[-1].data["message"]) if answers else []


def _in(event: Event, step: int) -> bool:
    return bool(event.data.get("step") == step)


def _result_call(event: Event) -> str | None:
    source = event.data["message"].get("source")
    return source.get("callId") if isinstance(source, dict) else None
