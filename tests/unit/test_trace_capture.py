"""The capture's life: which record stands for a step after each host moment (spec/trace §4)."""

from typing import Any

import attrs
import pytest

from tapster.engine.trace import (
    AssemblyPart,
    AuditFacts,
    Begin,
    CaptureEvent,
    CaptureState,
    HostEventLogged,
    ObservedRequest,
    OfficialAssembly,
    RequestFailed,
    RequestStarting,
    SessionView,
    StepFailed,
    StreamObserved,
    TraceRecord,
    Unloading,
    next_attempt,
    step,
)

SYSTEM = {"id": "m1", "role": "system", "content": [{"type": "text", "text": "Base"}]}
EVENTS = ({"seq": 0, "type": "system/message", "data": {"message": SYSTEM}},)
SESSION = SessionView("s", 3, 111, 1, EVENTS, (0,))
ASSEMBLY = OfficialAssembly((AssemblyPart("base", "Base"),))
FAILED = {"turn": 1, "step": 0, "stream": [{"type": "chunk", "chunk": {"type": "finish", "reason": None}}]}


def begin(capture_id: str = "c1", *, turn: object = 1, step_number: object = 0, attempt: int = 1) -> Begin:
    facts = AuditFacts("s", capture_id, 1, 0, attempt, 5, profile_text="Base")
    return Begin(capture_id, "s", turn, step_number, attempt, 5, ASSEMBLY, audit=facts)


def observed() -> StreamObserved:
    return StreamObserved(ObservedRequest([SYSTEM], provider="p", model="m"), SESSION)


def logged(kind: str, data: object, *, seq: int = 7, next_seq: int = 8) -> HostEventLogged:
    event = {"seq": seq, "type": kind, "data": data}
    return HostEventLogged(event, attrs.evolve(SESSION, seq=next_seq, events=(*EVENTS, event)), now=9)


def attempt_failed() -> HostEventLogged:
    reason = {"kind": "error", "failure": {"code": "busy", "message": "later"}}
    stream = [{"type": "chunk", "chunk": {"type": "finish", "reason": reason}}]
    return logged("assistant/attempt", {"turn": 1, "step": 0, "stream": stream})


def turn_ended(kind: str = "completed") -> HostEventLogged:
    reason = {"kind": kind, **({"error": {"code": "X", "message": "x"}} if kind == "error" else {})}
    return logged("turn/end", {"turn": 1, "reason": reason})


def run(*events: CaptureEvent) -> tuple[CaptureState, dict[str, TraceRecord]]:
    state = CaptureState()
    stored: dict[str, TraceRecord] = {}
    for event in events:
        result = step(state, event)
        state = result.state
        stored |= {record.id: record for record in result.records}
    return state, stored


REPLY = logged("assistant/message", {"turn": 1, "step": 0, "message": {}})
AGENT_ERROR = StepFailed("e1", "s", 1, 0, 1, 6)


@pytest.mark.parametrize(
    ("events", "statuses"),
    [
        ([begin()], {"c1": "assembled"}),
        ([begin(), observed()], {"c1": "request-observed"}),
        ([begin(), RequestStarting()], {"c1": "superseded-unconfirmed"}),
        ([begin(), begin("c2", attempt=2)], {"c1": "superseded-unconfirmed", "c2": "assembled"}),
        ([begin(), observed(), begin("c2", attempt=2)], {"c1": "request-observed", "c2": "assembled"}),
        ([begin(), AGENT_ERROR], {"c1": "request-failed-before-observation"}),
        ([begin(), observed(), AGENT_ERROR], {"c1": "request-observed"}),
        ([AGENT_ERROR], {"e1": "assembly-or-preparation-failed"}),
        ([begin(), observed(), REPLY, AGENT_ERROR], {"c1": "request-observed", "e1": "assembly-or-preparation-failed"}),
        ([begin(), RequestFailed(1, 0, is_retry=False)], {"c1": "request-failed-before-observation"}),
        ([begin(), REPLY], {"c1": "request-unconfirmed"}),
        ([begin(), turn_ended()], {"c1": "request-unconfirmed"}),
        ([begin(), Unloading()], {"c1": "unloaded-unconfirmed"}),
        ([begin(), observed(), Unloading()], {"c1": "request-observed"}),
        ([begin(turn=1.5)], {}),
        ([begin(step_number=None)], {}),
        ([StepFailed("e1", "s", None, 0, 1, 6)], {}),
    ],
)
def test_status_after_host_moments(events: list[CaptureEvent], statuses: dict[str, str]) -> None:
    _, stored = run(*events)
    assert {record.id: record.status for record in stored.values()} == statuses


def test_observed_twice_writes_once() -> None:
    state, _ = run(begin(), observed())
    assert step(state, observed()).records == ()


def test_only_a_retry_clears_what_late_failures_attach_to() -> None:
    kept, _ = run(begin(), observed(), RequestFailed(1, 0, is_retry=False))
    cleared, _ = run(begin(), observed(), RequestFailed(1, 0, is_retry=True))
    assert kept.record is not None
    assert cleared.record is None


def test_the_first_failure_wins_and_stays_with_its_record() -> None:
    _, stored = run(begin(), observed(), attempt_failed(), turn_ended("error"))
    failure = stored["c1"].failure
    assert failure is not None
    assert failure.event_type == "assistant/attempt"
    assert failure.session.log_cut_seq == failure.event_seq == 7


@pytest.mark.parametrize(
    "event",
    [
        turn_ended("aborted"),
        logged("assistant/attempt", {**FAILED, "step": 1}),
        logged("assistant/attempt", FAILED),
        logged("turn/end", {"turn": 2, "reason": {"kind": "error", "error": {"code": "X"}}}),
        attrs.evolve(attempt_failed(), session=attrs.evolve(SESSION, seq=7)),
        attrs.evolve(attempt_failed(), session=attrs.evolve(SESSION, seq=8, version=9)),
    ],
)
def test_what_is_no_failure_of_this_step(event: HostEventLogged) -> None:
    _, stored = run(begin(), observed(), event)
    assert stored["c1"].failure is None


def test_a_failure_after_success_attaches_to_nothing() -> None:
    state, stored = run(begin(), observed(), REPLY)
    assert step(state, turn_ended("error")).records == ()
    assert stored["c1"].failure is None


def test_attempt_counts_this_step_only() -> None:
    rows = [{"id": "a", "turn": 1, "step": 0, "attempt": 3}, {"id": "b", "turn": 1, "step": 1, "attempt": 9}]
    assert next_attempt(rows, 1, 0, "new") == 4
    assert next_attempt(rows, 1, 0, "a") == 1


def test_attempt_does_not_repeat_while_the_last_record_is_not_stored_yet() -> None:
    _, stored = run(begin(), observed(), begin("c2", attempt=1))
    assert stored["c2"].attempt == 2


@pytest.mark.parametrize(
    ("event", "status"),
    [
        (logged("request/header", {"header": {"config": {}, "system": "x"}, "reason": "change"}), "header-observed"),
        (logged("assistant/chunk", {"turn": 1, "step": 0}), "header-reused-or-observed"),
        (turn_ended(), "request-not-confirmed"),
        (RequestFailed(1, 0, is_retry=False), "request-error"),
        (begin("c2"), "superseded-unconfirmed"),
    ],
)
def test_audit_status(event: CaptureEvent, status: str) -> None:
    state, _ = run(begin(), observed())
    assert [audit["status"] for audit in step(state, event).audits] == [status]


def test_audit_authority_says_whether_the_profile_left() -> None:
    state, _ = run(begin())
    header = {"header": {"config": {"temperature": 1}}, "reason": "initial"}
    (audit,) = step(state, logged("request/header", header)).audits
    assert audit["authority"]["tavernProfilePresent"] is True
    assert audit["authority"]["systemSource"] == "system/message"
    assert audit["authority"]["headerReused"] is False


@pytest.mark.parametrize("changes", [{"seq": 0}, {"version": 9}, {"version": None}, {"created_at": None}, {"seq": 1.5}])
def test_an_unusable_session_gives_no_references(changes: dict[str, Any]) -> None:
    state, _ = run(begin())
    session = attrs.evolve(SESSION, **changes)
    (record,) = step(state, StreamObserved(ObservedRequest([SYSTEM]), session)).records
    stored = record.to_json()
    assert stored["delivery"]["assemblyVerified"] is True
    assert stored["delivery"]["historyVerified"] is False
    assert stored["delivery"]["logCutSeq"] is None
    assert not {"sessionRef", "systemMessageRefs"} & set(stored)
    assert "reference" not in stored["sections"][0]
