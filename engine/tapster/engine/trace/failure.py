"""Why a step failed, as the host's own events tell it.

Source: spec/trace §7.
"""

from tapster.engine.ecma import Json, is_safe_integer

from .delivery import session_ref
from .digest import digest
from .host import SessionView, is_supported, member
from .record import FailureRef

FAILURE_EVENTS = frozenset({"assistant/attempt", "turn/end"})


def failure_of(event: Json) -> dict[str, Json] | None:
    """The ``{code, message}`` inside a failure event, or None when it tells of none (a plain cancel)."""
    kind = member(event, "type")
    failure: Json = None
    if kind == "assistant/attempt":
        reason = _finish_reason(event)
        if member(reason, "kind") in {"error", "aborted"}:
            failure = member(reason, "failure")
    elif kind == "turn/end" and member(event, "data", "reason", "kind") == "error":
        failure = member(event, "data", "reason", "error")
    code, message = member(failure, "code"), member(failure, "message")
    if not isinstance(code, str) and not isinstance(message, str):
        return None
    return {
        "code": code if isinstance(code, str) else None,
        "message": message if isinstance(message, str) else None,
    }


def _finish_reason(event: Json) -> Json:
    stream = member(event, "data", "stream")
    finishes = [
        item
        for item in (stream if isinstance(stream, list) else [])
        if member(item, "type") == "chunk" and member(item, "chunk", "type") == "finish"
    ]
    return member(finishes[-1], "chunk", "reason") if finishes else None


def is_failure_candidate(event: Json, turn: int, step: int) -> bool:
    """Whether an event can tell of a failure of this turn and step."""
    if member(event, "type") not in FAILURE_EVENTS or member(event, "data", "turn") != turn:
        return False
    return member(event, "type") == "turn/end" or bool(member(event, "data", "step") == step)


def failure_ref(event: Json, session: SessionView) -> FailureRef | None:
    """A reference to a failure event, or None when it holds no failure or lies outside the session."""
    seq = member(event, "seq")
    if not is_safe_integer(seq) or not is_safe_integer(session.seq) or not 0 <= seq < session.seq:
        return None
    if not is_supported(session.version) or session.created_at is None or failure_of(event) is None:
        return None
    return FailureRef(int(seq), event["type"], digest(event["data"]), session_ref(session, cut=int(seq)))
