"""A record's detail: every text proved against the host's history, or the exact reason why not.

Source: spec/trace §8.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias

import attrs

from tapster.engine.ecma import Json, is_safe_integer, utf16_length, utf16_slice

from .digest import content_hash, digest, message_text
from .failure import failure_of
from .host import FIRST_SYSTEM_MESSAGE_VERSION, event_message, is_context_snapshot, is_supported, member
from .record import BODY_STORAGE

ReferenceError_: TypeAlias = Literal[
    "unverified",
    "history-unavailable",
    "history-read-failed",
    "format-mismatch",
    "session-mismatch",
    "cut-unavailable",
    "event-unavailable",
    "identity-mismatch",
    "hash-mismatch",
    "range-mismatch",
]
UNAVAILABLE = "reference-unavailable"
_GONE_CODES = frozenset({"SESSION_NOT_FOUND", "PLAY_SESSION_NOT_FOUND"})
_KEPT_STATUSES = frozenset({"assembly-unavailable", "omitted-size-limit"})


@attrs.frozen
class Inspection:
    """One cold look at a session's log, as the host gave it."""

    meta: Mapping[str, Json]
    events: Sequence[Json]
    by_seq: Mapping[int, Json] = attrs.field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        index = {event["seq"]: event for event in self.events if is_safe_integer(member(event, "seq"))}
        object.__setattr__(self, "by_seq", index)

    @property
    def last_seq(self) -> int:
        """Seq of the last event, or -1 of an empty log."""
        seq: Json = member(self.events[-1], "seq") if self.events else None
        return int(seq) if is_safe_integer(seq) else -1


@attrs.frozen
class NoHistory:
    """Why there was no look at the history."""

    error: Literal["history-unavailable", "history-read-failed"] = "history-unavailable"


History: TypeAlias = Inspection | NoHistory


def inspect_failed(name: str, code: Json) -> NoHistory:
    """What a host's failing ``inspect`` means, by the error's name and code."""
    is_gone = name == "ApiSessionNotFound" or (isinstance(code, str) and code in _GONE_CODES)
    return NoHistory("history-unavailable" if is_gone else "history-read-failed")


def needs_history(record: Mapping[str, Json]) -> bool:
    """Whether a detail of this record has anything to look up, so the host has to be asked once."""
    return record.get("bodyStorage") == BODY_STORAGE and _reference_session(record) is not None


def referenced_seqs(record: Mapping[str, Json]) -> tuple[int, ...]:
    """Seqs of every event that a detail of this record looks at, besides the log's last one."""
    parts = [member(part, "reference") for key in ("sections", "contexts") for part in record.get(key) or ()]
    references = [*parts, *(record.get("systemMessageRefs") or ()), record.get("failureRef")]
    seqs: list[Json] = [member(reference, "eventSeq") for reference in references]
    seqs.append(member(record.get("requestAssemblyRef"), "seq"))
    return tuple(sorted({int(seq) for seq in seqs if is_safe_integer(seq) and seq >= 0}))


class _Refused(Exception):
    """One reference can't be read; only ever caught in this module."""

    def __init__(self, error: ReferenceError_) -> None:
        super().__init__(error)
        self.error = error


def _require(condition: bool, error: ReferenceError_) -> None:
    if not condition:
        raise _Refused(error)


def verified_detail(record: Mapping[str, Json], history: History) -> dict[str, Json]:
    """The record with every text that history proves; nothing is written back.

    Args:
        history: one inspection of the record's session; not looked at when `needs_history` says no.
    """
    detail = dict(record)
    if record.get("bodyStorage") != BODY_STORAGE:
        return detail
    reference = _reference_session(record)
    unread: ReferenceError_ | None = None
    if reference is None:
        unread = "unverified"
    elif isinstance(history, NoHistory):
        unread = history.error
    inspection = history if isinstance(history, Inspection) and unread is None else None
    if "failureRef" in record:
        detail |= _failure(record, inspection, unread)
    overall = unread or _overall_error(record, reference, inspection)
    reader = _Reader(member(record, "sessionRef"), inspection) if overall is None and inspection else None
    for key in ("sections", "contexts"):
        if key in record:
            detail[key] = [_part(part, reader, overall) for part in record[key]]
    detail |= _request(record, reader)
    if overall is not None:
        detail["referenceError"] = overall
    detail["contentStatus"] = _content_status(detail)
    return detail


def _reference_session(record: Mapping[str, Json]) -> Json:
    reference = record.get("sessionRef")
    return reference if isinstance(reference, Mapping) else member(record, "failureRef", "sessionRef")


def _is_same_session(record: Mapping[str, Json], reference: Json, inspection: Inspection) -> bool:
    session_id = inspection.meta.get("id")
    return bool(
        session_id == record.get("sessionId")
        and session_id == member(reference, "sessionId")
        and inspection.meta.get("createdAt") == member(reference, "sessionCreatedAt")
    )


def _overall_error(
    record: Mapping[str, Json], reference: Json, inspection: Inspection | None
) -> ReferenceError_ | None:
    if inspection is None:
        return None
    if inspection.meta.get("version") != member(reference, "sessionFormatVersion"):
        return "format-mismatch"
    if not _is_same_session(record, reference, inspection):
        return "session-mismatch"
    cut = member(reference, "logCutSeq")
    if not is_safe_integer(cut) or cut < 0 or inspection.last_seq < cut:
        return "cut-unavailable"
    return None


def _failure(
    record: Mapping[str, Json], inspection: Inspection | None, unread: ReferenceError_ | None
) -> dict[str, Json]:
    try:
        _require(inspection is not None, unread or "history-unavailable")
        assert inspection is not None
        failure = _read_failure(record, record["failureRef"], inspection)
    except _Refused as refused:
        return {"failureStatus": UNAVAILABLE, "failureReferenceError": refused.error}
    return {"failureStatus": "available", "failure": failure}


def _read_failure(record: Mapping[str, Json], reference: Json, inspection: Inspection) -> dict[str, Json]:
    session = member(reference, "sessionRef")
    _require(_is_same_session(record, session, inspection), "session-mismatch")
    version = inspection.meta.get("version")
    _require(version == member(session, "sessionFormatVersion") and is_supported(version), "format-mismatch")
    cut, seq = member(session, "logCutSeq"), member(reference, "eventSeq")
    _require(is_safe_integer(cut) and inspection.last_seq >= cut, "cut-unavailable")
    _require(is_safe_integer(seq) and 0 <= seq <= cut and seq in inspection.by_seq, "event-unavailable")
    event = inspection.by_seq[seq]
    _require(member(event, "type") == member(reference, "eventType"), "event-unavailable")
    is_attempt = member(event, "type") == "assistant/attempt"
    is_same = member(event, "data", "turn") == record.get("turn") and (
        not is_attempt or member(event, "data", "step") == record.get("step")
    )
    _require(is_same, "identity-mismatch")
    _require(digest(member(event, "data")) == member(reference, "eventHash"), "hash-mismatch")
    failure = failure_of(event)
    if failure is None:
        raise _Refused("event-unavailable")
    return failure


def _part(part: Json, reader: "_Reader | None", overall: ReferenceError_ | None) -> dict[str, Json]:
    try:
        if reader is None:
            raise _Refused(overall or "unverified")
        text = reader.text(member(part, "reference"))
        _require(digest(text) == member(part, "hash"), "hash-mismatch")
    except _Refused as refused:
        return {**part, "contentStatus": UNAVAILABLE, "referenceError": refused.error}
    return {**part, "text": text, "contentStatus": "available"}


def _request(record: Mapping[str, Json], reader: "_Reader | None") -> dict[str, Json]:
    """The members that say what of the whole request could be proved."""
    found: dict[str, Json] = {}
    references = record.get("systemMessageRefs")
    if isinstance(references, Sequence) and references:
        try:
            if reader is None:
                raise _Refused("unverified")
            found["systemMessages"] = [reader.text(reference) for reference in references]
        except _Refused:
            found["requestContentStatus"] = UNAVAILABLE
    assembly = reader.request_assembly(record.get("requestAssemblyRef")) if reader else None
    if assembly is not None:
        found |= {"requestAssembly": assembly, "requestContentStatus": "available"}
    return found


def _content_status(detail: Mapping[str, Json]) -> Json:
    if detail.get("contentStatus") in _KEPT_STATUSES:
        return detail["contentStatus"]
    parts = [*(detail.get("sections") or ()), *(detail.get("contexts") or ())]
    available = sum(1 for part in parts if part["contentStatus"] == "available")
    if not available:
        return UNAVAILABLE
    return "available" if available == len(parts) else "partially-available"


@attrs.frozen
class _Reader:
    """Reads references of one record in one inspection, up to the record's log cut."""

    session: Json
    inspection: Inspection

    def text(self, reference: Json) -> str:
        """The text a reference points at; raises the first check that fails."""
        _require(isinstance(reference, Mapping), "unverified")
        event = self._event(reference)
        read = _READERS.get(member(reference, "kind"))
        if read is None:
            raise _Refused("identity-mismatch")
        text = read(self, reference, event)
        return _ranged(text, reference["range"]) if "range" in reference else text

    def request_assembly(self, reference: Json) -> Json:
        """The data of the referenced ``request/assembly`` event when its hash holds, else None."""
        seq = member(reference, "seq")
        if not self._is_within(seq):
            return None
        event = self.inspection.by_seq.get(seq)
        data = member(event, "data")
        is_proved = member(event, "type") == "request/assembly" and digest(data) == member(reference, "hash")
        return data if is_proved else None

    def _is_within(self, seq: Json) -> bool:
        cut = member(self.session, "logCutSeq")
        return is_safe_integer(seq) and is_safe_integer(cut) and 0 <= seq <= cut

    def _event(self, reference: Json) -> Json:
        seq = member(reference, "eventSeq")
        _require(self._is_within(seq), "event-unavailable")
        event = self.inspection.by_seq.get(seq)
        _require(event is not None and member(event, "type") == member(reference, "eventType"), "event-unavailable")
        return event

    def header_system(self, reference: Json, event: Json) -> str:
        """The system text of a request header, before log format 3."""
        is_header = member(event, "type") == "request/header"
        _require(is_header and self.inspection.meta["version"] < FIRST_SYSTEM_MESSAGE_VERSION, "identity-mismatch")
        return _system_text(member(event, "data", "header", "system"), reference)

    def system_message(self, reference: Json, event: Json) -> str:
        """The text of a logged system message."""
        message = _message(reference, event)
        _require(member(event, "type") == "system/message", "identity-mismatch")
        return _system_text(message_text(message), reference)

    def context_section(self, reference: Json, event: Json) -> str:
        """The text of one named section of the host's context snapshot."""
        message = _message(reference, event)
        is_snapshot = member(event, "type") == "user/message" and is_context_snapshot(message)
        _require(is_snapshot, "identity-mismatch")
        _require(digest(message_text(message)) == member(reference, "textHash"), "hash-mismatch")
        sections, index = member(message, "source", "sections"), member(reference, "sourceSectionIndex")
        is_there = isinstance(sections, list) and is_safe_integer(index) and 0 <= index < len(sections)
        section = sections[int(index)] if is_there else None
        name = member(section, "name")
        _require(section is not None and name == member(reference, "sourceSectionName"), "identity-mismatch")
        text = member(section, "text")
        if not isinstance(text, str):
            raise _Refused("event-unavailable")
        return text


_READERS: Mapping[str, Callable[[_Reader, Json, Json], str]] = {
    "request-header-system": _Reader.header_system,
    "system-message": _Reader.system_message,
    "context-section": _Reader.context_section,
}


def _message(reference: Json, event: Json) -> Json:
    message = event_message(event)
    has_id = isinstance(message, Mapping) and member(message, "id") == member(reference, "messageId")
    _require(has_id, "identity-mismatch")
    _require(content_hash(message) == member(reference, "messageHash"), "hash-mismatch")
    return message


def _system_text(text: Json, reference: Json) -> str:
    if not isinstance(text, str):
        raise _Refused("event-unavailable")
    _require(digest(text) == member(reference, "textHash"), "hash-mismatch")
    return text


def _ranged(text: str, span: Json) -> str:
    start, end = member(span, "startUtf16"), member(span, "endUtf16")
    is_valid = is_safe_integer(start) and is_safe_integer(end) and 0 <= start <= end <= utf16_length(text)
    _require(is_valid, "range-mismatch")
    return utf16_slice(text, int(start), int(end))
