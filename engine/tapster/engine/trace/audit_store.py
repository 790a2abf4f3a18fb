"""The v1 audit file: bounded by sessions, records and bytes.

Source: spec/trace §9, §11.
"""

from collections.abc import Iterable, Mapping

import attrs

from tapster.engine.ecma import Json, is_safe_integer, stringify, utf8
from tapster.engine.errors import RequestError, StoreError
from tapster.engine.limits import (
    AUDIT_MAX_RECORDS_PER_SESSION,
    AUDIT_MAX_SESSIONS,
    AUDIT_READ_BYTES,
    AUDIT_RECORD_BYTES,
    AUDIT_TOTAL_BYTES,
)

from .record import is_session_id
from .retention import read_store_json

_INTEGER_KEYS = ("turn", "step", "attempt", "recordedAt", "updatedAt")


def _option(value: Json, default: int) -> int:
    return min(int(value), default) if is_safe_integer(value) and value >= 1 else default


@attrs.frozen
class AuditLimits:
    """How much is kept; options can only lower it."""

    max_sessions: int = AUDIT_MAX_SESSIONS
    max_records_per_session: int = AUDIT_MAX_RECORDS_PER_SESSION
    max_record_bytes: int = AUDIT_RECORD_BYTES
    max_total_bytes: int = AUDIT_TOTAL_BYTES

    @classmethod
    def from_options(cls, options: Mapping[str, Json]) -> "AuditLimits":
        """Limits of a configuration."""
        return cls(
            _option(options.get("maxSessions"), AUDIT_MAX_SESSIONS),
            _option(options.get("maxRecordsPerSession"), AUDIT_MAX_RECORDS_PER_SESSION),
            _option(options.get("maxRecordBytes"), AUDIT_RECORD_BYTES),
            _option(options.get("maxTotalBytes"), AUDIT_TOTAL_BYTES),
        )


@attrs.frozen
class AuditBook:
    """The audits by session, each session's in the order they began."""

    limits: AuditLimits = AuditLimits()
    sessions: Mapping[str, tuple[Mapping[str, Json], ...]] = attrs.Factory(dict)

    def put(self, session_id: Json, records: Json) -> "AuditBook":
        """The book with these audits written; a known id is replaced where it stands.

        Raises:
            RequestError: an audit has a wrong shape or is too large.
            StoreError: one audit doesn't fit alone.
        """
        if not is_session_id(session_id):
            raise RequestError(f"{session_id!r} is not a session id")
        if not isinstance(records, Iterable) or isinstance(records, str | Mapping):
            raise RequestError("the audits of a session are a list")
        merged = {record["id"]: record for record in self.sessions.get(session_id, ())}
        for record in records:
            self._check(record)
            merged[record["id"]] = record
        sessions = {**self.sessions, session_id: self._latest(list(merged.values()))}
        return self._evicted(sessions)

    def to_text(self) -> str:
        """The content of the contract's file: pretty JSON and a newline."""
        return _file_text(self.sessions)

    def _check(self, record: Json) -> None:
        is_shaped = (
            isinstance(record, Mapping)
            and isinstance(record.get("id"), str)
            and record["id"] != ""
            and all(is_safe_integer(record.get(key)) for key in _INTEGER_KEYS)
        )
        if not is_shaped:
            raise RequestError("an audit needs an id and whole numbers for turn, step, attempt and its two times")
        size = len(utf8(stringify(record)))
        if size > self.limits.max_record_bytes:
            raise RequestError(f"an audit has {size} bytes, at most {self.limits.max_record_bytes} are stored")

    def _latest(self, records: list[Mapping[str, Json]]) -> tuple[Mapping[str, Json], ...]:
        while len(records) > self.limits.max_records_per_session:
            records.remove(min(records, key=lambda record: record["updatedAt"]))
        return tuple(records)

    def _evicted(self, sessions: dict[str, tuple[Mapping[str, Json], ...]]) -> "AuditBook":
        while len(sessions) > self.limits.max_sessions:
            del sessions[min(sessions, key=lambda name: (_updated_at(sessions[name]), name))]
        # Measured once; each record that leaves takes its compact form off the whole, though it stood there pretty: the
        # reference counts so too, and what stays is the same.
        total = len(utf8(_file_text(sessions)))
        while total > self.limits.max_total_bytes and sum(map(len, sessions.values())) > 1:
            total -= len(utf8(stringify(_drop_oldest_record(sessions))))
        if total > self.limits.max_total_bytes and len(utf8(_file_text(sessions))) > self.limits.max_total_bytes:
            raise StoreError(f"one audit alone is larger than {self.limits.max_total_bytes} bytes")
        return AuditBook(self.limits, sessions)


def open_audits(text: bytes | None, limits: AuditLimits | None = None) -> AuditBook:
    """The audits of a v1 file; a missing file (None) has none. Nothing is migrated or rewritten.

    Raises:
        StoreError: the file is too large, not JSON or of another schema.
    """
    limits = limits or AuditLimits()
    if text is None:
        return AuditBook(limits)
    value = read_store_json(text, AUDIT_READ_BYTES, "tavern-traces.json")
    sessions = value.get("sessions") if isinstance(value, Mapping) else None
    if not isinstance(value, Mapping) or value.get("schemaVersion") != 1 or not isinstance(sessions, Mapping):
        raise StoreError("tavern-traces.json does not hold audits of schema 1")
    return AuditBook(limits, {name: _rows(held) for name, held in sessions.items() if is_session_id(name)})


def _rows(held: Json) -> tuple[Mapping[str, Json], ...]:
    records = held.get("records") if isinstance(held, Mapping) else None
    rows = [row for row in records or () if isinstance(row, Mapping) and isinstance(row.get("id"), str) and row["id"]]
    return tuple(rows[-AUDIT_MAX_RECORDS_PER_SESSION:])


def _updated_at(records: Iterable[Mapping[str, Json]]) -> float:
    return max((record["updatedAt"] for record in records if is_safe_integer(record.get("updatedAt"))), default=0)


def _drop_oldest_record(sessions: dict[str, tuple[Mapping[str, Json], ...]]) -> Mapping[str, Json]:
    _, name, index = min(
        (_updated_at([record]), name, index)
        for name, records in sessions.items()
        for index, record in enumerate(records)
    )
    records = sessions[name]
    sessions[name] = records[:index] + records[index + 1 :]
    if not sessions[name]:
        del sessions[name]
    return records[index]


def _file_text(sessions: Mapping[str, tuple[Mapping[str, Json], ...]]) -> str:
    held = {name: {"updatedAt": _updated_at(rows), "records": list(rows)} for name, rows in sessions.items()}
    return stringify({"schemaVersion": 1, "sessions": held}, indent=2) + "\n"
