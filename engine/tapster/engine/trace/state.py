"""The life of one session's capture, as a pure state machine.

``step(state, event)`` gives the next state and what to write. Nothing here waits, stores or reads a clock; a session's
owner feeds it the host's moments in order.

Source: spec/trace §4.
"""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import attrs

from tapster.engine.ecma import Json, is_safe_integer

from .audit import AuditFacts
from .audit_state import AuditStatus, PendingAudit, audit_after_event, ended
from .delivery import ObservedRequest, observe
from .failure import failure_ref, is_failure_candidate
from .host import SessionView, member
from .record import Status, TraceRecord
from .render import OfficialAssembly, record_assembly
from .sections import NamedPart


@attrs.frozen
class RequestStarting:
    """Start of ``agent/request``."""


@attrs.frozen
class Begin:
    """End of ``agent/request``: the call config is merged and the assembly is known.

    Attributes:
        now: epoch milliseconds.
        attempt: of the retained records, see `next_attempt`.
        audit: what the v1 audit of this step is made from; its ``attempt`` is filled in here.
    """

    capture_id: str
    session_id: str
    turn: Json
    step: Json
    attempt: int
    now: int
    assembly: OfficialAssembly | None
    known_parts: Sequence[NamedPart] = ()
    selection: Mapping[str, Json] = attrs.Factory(dict)
    audit: AuditFacts | None = None
    extras: Mapping[str, Json] = attrs.Factory(dict)


@attrs.frozen
class StreamObserved:
    """``llm/stream`` with this session's id."""

    request: ObservedRequest
    session: SessionView | None


@attrs.frozen
class StepFailed:
    """``agent/error``; the ids are used when the failure gets a record of its own."""

    capture_id: str
    session_id: str
    turn: Json
    step: Json
    attempt: int
    now: int


@attrs.frozen
class RequestFailed:
    """``agent/request-error`` and whether its answer was to retry."""

    turn: Json
    step: Json
    is_retry: bool
    now: int = 0


@attrs.frozen
class HostEventLogged:
    """An event was appended to the session's log."""

    event: Json
    session: SessionView
    now: int = 0


@attrs.frozen
class Unloading:
    """The recorder goes away."""


CaptureEvent: TypeAlias = (
    RequestStarting | Begin | StreamObserved | StepFailed | RequestFailed | HostEventLogged | Unloading
)


@attrs.frozen
class CaptureState:
    """The latest record of a session.

    Attributes:
        record: the active record, to which late failures attach; None when nothing is active.
        is_pending: whether the record still waits for its request.
    """

    record: TraceRecord | None = None
    is_pending: bool = False
    audit: PendingAudit | None = None


@attrs.frozen
class Step:
    """The next state, the records to write and the v1 audits to write, in this order."""

    state: CaptureState
    records: tuple[TraceRecord, ...] = ()
    audits: tuple[Mapping[str, Json], ...] = ()


def step(state: CaptureState, event: CaptureEvent) -> Step:
    """Apply one host moment to a session's capture."""
    match event:
        case RequestStarting():
            return _cleared(_closed(state, "superseded-unconfirmed"))
        case Begin():
            return _begin(state, event)
        case StreamObserved():
            if state.record is None or not state.is_pending:
                return Step(state)
            record = observe(state.record, event.request, event.session)
            return Step(attrs.evolve(state, record=record, is_pending=False), (record,))
        case StepFailed():
            return _step_failed(state, event)
        case RequestFailed():
            return _request_failed(state, event)
        case HostEventLogged():
            return _host_event(state, event)
        case Unloading():
            return _cleared(_closed(state, "unloaded-unconfirmed"))


def next_attempt(rows: Sequence[Mapping[str, Json]], turn: int, step_number: int, capture_id: str) -> int:
    """One more than the highest attempt that the session's retained records hold for this turn and step."""
    attempts: list[Json] = [
        row.get("attempt")
        for row in rows
        if row.get("turn") == turn and row.get("step") == step_number and row.get("id") != capture_id
    ]
    return 1 + max((int(value) for value in attempts if is_safe_integer(value)), default=0)


def _begin(state: CaptureState, event: Begin) -> Step:
    if not is_safe_integer(event.turn) or not is_safe_integer(event.step):
        return Step(state)
    closed = _closed(state, "superseded-unconfirmed")
    attempt = _attempt(closed.state, event)
    audit = PendingAudit.begin(attrs.evolve(event.audit, attempt=attempt)) if event.audit else None
    record = TraceRecord(
        id=event.capture_id,
        session_id=event.session_id,
        turn=int(event.turn),
        step=int(event.step),
        attempt=attempt,
        recorded_at=event.now,
        status="assembled",
        selection=event.selection,
        audit=audit.record if audit else {},
        assembly=record_assembly(event.assembly, event.known_parts),
        extras=event.extras,
    )
    superseded = _audit_ended(closed.state, "superseded-unconfirmed", event.now)
    return Step(CaptureState(record, is_pending=True, audit=audit), (*closed.records, record), superseded.audits)


def _attempt(state: CaptureState, event: Begin | StepFailed) -> int:
    """The attempt that the store gave, or a later one when the active record isn't in the store yet."""
    last = state.record
    if last is None or (last.turn, last.step) != (event.turn, event.step) or last.id == event.capture_id:
        return event.attempt
    return max(event.attempt, last.attempt + 1)


def _step_failed(state: CaptureState, event: StepFailed) -> Step:
    if not is_safe_integer(event.turn) or not is_safe_integer(event.step):
        return Step(state)
    if state.is_pending:
        return _closed(state, "request-failed-before-observation")
    if _is_active(state, event.turn, event.step):
        return Step(state)
    record = TraceRecord(
        id=event.capture_id,
        session_id=event.session_id,
        turn=int(event.turn),
        step=int(event.step),
        attempt=_attempt(state, event),
        recorded_at=event.now,
        status="assembly-or-preparation-failed",
        is_minimal=True,
    )
    return Step(CaptureState(record, audit=state.audit), (record,))


def _request_failed(state: CaptureState, event: RequestFailed) -> Step:
    if not is_safe_integer(event.turn) or not is_safe_integer(event.step):
        return Step(state)
    audited = Step(state)
    if state.audit is not None and state.audit.is_step(event.turn, event.step):
        audited = _audit_ended(state, "request-error", event.now)
    closed = _closed(audited.state, "request-failed-before-observation")
    result = Step(closed.state, closed.records, audited.audits)
    return _cleared(result) if event.is_retry else result


def _host_event(state: CaptureState, event: HostEventLogged) -> Step:
    audited = _audit_event(state, event)
    result = _record_event(audited.state, event)
    return attrs.evolve(result, audits=audited.audits)


def _record_event(state: CaptureState, event: HostEventLogged) -> Step:
    kind, data = member(event.event, "type"), member(event.event, "data")
    if kind == "assistant/message" and _is_active(state, member(data, "turn"), member(data, "step")):
        return _cleared(_closed(state, "request-unconfirmed"))
    attached = _attach_failure(state, event)
    if kind != "turn/end":
        return attached
    closed = _closed(attached.state, "request-unconfirmed")
    # One write is enough when the same record was attached to and then closed.
    return _cleared(closed if closed.records else attrs.evolve(closed, records=attached.records))


def _attach_failure(state: CaptureState, event: HostEventLogged) -> Step:
    record = state.record
    if record is None or record.failure is not None or not is_failure_candidate(event.event, record.turn, record.step):
        return Step(state)
    reference = failure_ref(event.event, event.session)
    if reference is None:
        return Step(state)
    failed = attrs.evolve(record, failure=reference)
    return Step(attrs.evolve(state, record=failed), (failed,))


def _audit_event(state: CaptureState, event: HostEventLogged) -> Step:
    if state.audit is None:
        return Step(state)
    changed = audit_after_event(state.audit, event.event, event.session, event.now)
    return Step(state) if changed is None else _with_audit(state, changed)


def _audit_ended(state: CaptureState, status: AuditStatus, now: int) -> Step:
    return Step(state) if state.audit is None else _with_audit(state, ended(state.audit, status, now))


def _with_audit(state: CaptureState, audit: Mapping[str, Json]) -> Step:
    """The finished audit as a write of its own, and in the record if it is still the active one."""
    record = state.record
    if record is not None and record.id == audit.get("captureId"):
        record = attrs.evolve(record, audit=audit)
    return Step(attrs.evolve(state, record=record, audit=None), audits=(audit,))


def _is_active(state: CaptureState, turn: Json, step_number: Json) -> bool:
    return state.record is not None and (state.record.turn, state.record.step) == (turn, step_number)


def _closed(state: CaptureState, status: Status) -> Step:
    """The state with a pending record closed; a record that is not pending stands as it is."""
    if state.record is None or not state.is_pending:
        return Step(state)
    record = attrs.evolve(state.record, status=status)
    return Step(attrs.evolve(state, record=record, is_pending=False), (record,))


def _cleared(result: Step) -> Step:
    """The result with nothing active; an audit that still waits for its header stays."""
    return attrs.evolve(result, state=CaptureState(audit=result.state.audit))
