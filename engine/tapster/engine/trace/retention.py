"""Which records stay: the ordered, bounded list of schema-4 records of all sessions.

Pure: every change gives a new book. Records are JSON documents here, since a store keeps members it doesn't know.

Source: spec/trace §10.
"""

from collections.abc import Iterable, Mapping, Sequence

import attrs

from tapster.engine.ecma import Json, is_safe_integer, parse_json, stringify, utf8
from tapster.engine.errors import FormatError, RequestError, StoreError
from tapster.engine.limits import (
    TRACE_MAX_RECORDS,
    TRACE_OPTION_MIN_BYTES,
    TRACE_READ_BYTES,
    TRACE_RECORD_BYTES,
    TRACE_RECORD_BYTES_CAP,
    TRACE_TOTAL_BYTES,
    TRACE_TOTAL_BYTES_CAP,
    TRACE_TOTAL_RESERVE_BYTES,
)

from .record import BODY_STORAGE, SCHEMA_VERSION, is_session_id
from .sections import TEXT_NOT_STORED

_NEVER_STORED = frozenset(
    {
        "systemMessages",
        "failure",
        "failureReferenceError",
        "requestAssembly",
        "nativeRequest",
        "nativeProvenance",
    }
)
_MINIMAL_KEYS = ("schemaVersion", "id", "sessionId", "turn", "step", "attempt", "recordedAt", "status")
_EMPTY_FILE_BYTES = len('{"schemaVersion":4,"records":[]}')

Key = tuple[str, str]


def _option(value: Json, default: int, cap: int) -> int:
    return min(int(value), cap) if is_safe_integer(value) and value >= TRACE_OPTION_MIN_BYTES else default


@attrs.frozen
class RetentionLimits:
    """How much is kept; the contract's defaults."""

    max_records: int = TRACE_MAX_RECORDS
    max_record_bytes: int = TRACE_RECORD_BYTES
    max_total_bytes: int = TRACE_TOTAL_BYTES

    @classmethod
    def from_options(cls, options: Mapping[str, Json]) -> "RetentionLimits":
        """Limits of a configuration: an unusable option means the default, a too high one the cap."""
        return cls(
            max_record_bytes=_option(options.get("maxRecordBytes"), TRACE_RECORD_BYTES, TRACE_RECORD_BYTES_CAP),
            max_total_bytes=_option(options.get("maxTotalBytes"), TRACE_TOTAL_BYTES, TRACE_TOTAL_BYTES_CAP),
        )

    @property
    def record_room(self) -> int:
        """The largest record that is kept whole, in bytes."""
        return min(self.max_record_bytes, self.max_total_bytes - TRACE_TOTAL_RESERVE_BYTES)

    def to_json(self) -> dict[str, Json]:
        """The ``storage`` object of the API."""
        return {
            "kind": "bounded-assembly-references",
            "maxRecords": self.max_records,
            "maxRecordBytes": self.max_record_bytes,
            "maxTotalBytes": self.max_total_bytes,
        }


@attrs.frozen
class Row:
    """One retained record and the bytes of its compact JSON."""

    record: Mapping[str, Json]
    size_bytes: int

    @classmethod
    def of(cls, record: Mapping[str, Json]) -> "Row":
        """A record with its size measured."""
        return cls(record, len(utf8(stringify(record))))


@attrs.frozen
class TraceBook:
    """The retained records in write order."""

    limits: RetentionLimits = RetentionLimits()
    rows: Mapping[Key, Row] = attrs.Factory(dict)

    def put(self, records: Iterable[Mapping[str, Json]]) -> "TraceBook":
        """The book with these records written, each at the end of the order; all of them or none.

        Raises:
            RequestError: for a record that isn't a schema-4 record with a usable session and id.
        """
        checked = [_checked(record) for record in records]
        rows = dict(self.rows)
        for record in checked:
            key = (record["sessionId"], record["id"])
            kept = rows.pop(key, None)
            if kept is not None and kept.record.get("audit"):
                record = {**record, "audit": kept.record["audit"]}
            rows[key] = self._bounded(storable(record))
        return self._evicted(rows)

    def put_audits(self, session_id: str, audits: Iterable[Mapping[str, Json]]) -> "TraceBook":
        """The book with these v1 audits in the records of their captures, made where there is none.

        Raises:
            RequestError: for an audit without a capture id, or a bad session id.
        """
        audits = list(audits)
        for audit in audits:
            _check_ids(session_id, audit.get("captureId"))
        rows = dict(self.rows)
        for audit in audits:
            key = (session_id, audit["captureId"])
            kept = rows.get(key)
            record = dict(kept.record) if kept else _record_of_audit(session_id, audit)
            if record.get("contentStatus") == "omitted-size-limit":
                continue
            rows[key] = self._bounded({**record, "audit": dict(audit)})
        return self._evicted(rows)

    def session(self, session_id: str) -> list[Mapping[str, Json]]:
        """The records of a session in write order."""
        return [row.record for key, row in self.rows.items() if key[0] == session_id]

    def find(self, session_id: str, record_id: str) -> Mapping[str, Json] | None:
        """One record, or None when it is absent, evicted or of another session."""
        row = self.rows.get((session_id, record_id))
        return row.record if row else None

    def audits(self, session_id: str) -> list[Mapping[str, Json]]:
        """The v1 audits inside a session's records, in write order."""
        return [record["audit"] for record in self.session(session_id) if record.get("audit")]

    def to_text(self) -> str:
        """The content of the contract's file."""
        return stringify({"schemaVersion": SCHEMA_VERSION, "records": [row.record for row in self.rows.values()]})

    def _bounded(self, record: Mapping[str, Json]) -> Row:
        row = Row.of(record)
        return row if row.size_bytes <= self.limits.record_room else Row.of(minimal(record))

    def _evicted(self, rows: dict[Key, Row]) -> "TraceBook":
        total = _EMPTY_FILE_BYTES + sum(row.size_bytes + 1 for row in rows.values()) - 1
        while rows and (len(rows) > self.limits.max_records or total > self.limits.max_total_bytes):
            oldest = next(iter(rows))
            total -= rows.pop(oldest).size_bytes + 1
        return TraceBook(self.limits, rows)


def open_book(text: bytes | None, limits: RetentionLimits | None = None) -> TraceBook:
    """The book that a file holds; a missing file (None) is an empty book.

    Raises:
        StoreError: the file is too large, not JSON, or not a list of records of this schema; nothing is reset.
    """
    limits = limits or RetentionLimits()
    rows: dict[Key, Row] = {}
    for record in read_rows(text, SCHEMA_VERSION, "tavern-trace-records.json")[-limits.max_records :]:
        row = Row.of(storable(record))
        if row.size_bytes <= limits.record_room:
            key = (record["sessionId"], record["id"])
            rows.pop(key, None)
            rows[key] = row
    return TraceBook(limits)._evicted(rows)


def read_rows(text: bytes | None, schema_version: int, name: str) -> list[dict[str, Json]]:
    """The usable records of a ``{schemaVersion, records}`` file, in order.

    Raises:
        StoreError: as `open_book`.
    """
    if text is None:
        return []
    value = read_store_json(text, TRACE_READ_BYTES, name)
    records = value.get("records") if isinstance(value, Mapping) else None
    if not isinstance(value, Mapping) or value.get("schemaVersion") != schema_version or not isinstance(records, list):
        raise StoreError(f"{name} does not hold records of schema {schema_version}; move it aside to start afresh")
    return [
        record
        for record in records
        if isinstance(record, dict)
        and record.get("schemaVersion") == schema_version
        and is_session_id(record.get("sessionId"))
        and _is_id(record.get("id"))
    ]


def read_store_json(text: bytes, limit_bytes: int, name: str) -> Json:
    """The JSON of a stored file.

    Raises:
        StoreError: the file is larger than the limit or not JSON.
    """

    if len(text) > limit_bytes:
        raise StoreError(f"{name} has {len(text)} bytes, at most {limit_bytes} are read")
    try:
        return parse_json(text.decode())
    except (FormatError, UnicodeDecodeError) as error:
        raise StoreError(f"{name} is not JSON: {error}") from error


def storable(record: Mapping[str, Json]) -> dict[str, Json]:
    """A record as it may be stored: no text of any kind, and the constants of the schema."""
    kept = {key: value for key, value in record.items() if key not in _NEVER_STORED}
    for key in ("sections", "contexts"):
        if isinstance(kept.get(key), Sequence):
            kept[key] = [_without_text(part) for part in kept[key]]
    if isinstance(kept.get("nativeSourceRefs"), Sequence):
        kept["nativeSourceRefs"] = [_dropped(node, "text") for node in kept["nativeSourceRefs"]]
    if kept.get("failureRef") is not None:
        kept["failureStatus"] = "reference-only"
    return {**kept, "bodyStorage": BODY_STORAGE, "sourceTextStored": False}


def minimal(record: Mapping[str, Json]) -> dict[str, Json]:
    """What is kept of a record that is too large: its identity and its status."""
    value = {key: record[key] for key in _MINIMAL_KEYS if key in record}
    value |= {"contentStatus": "omitted-size-limit", "bodyStorage": BODY_STORAGE, "sourceTextStored": False}
    capture = legacy_capture_id(record)
    return value if capture is None else {**value, "legacyCaptureId": capture}


def legacy_capture_id(record: Mapping[str, Json]) -> str | None:
    """The capture id that links a record to its v1 audit, or None when it isn't known."""
    audit = record.get("audit")
    capture = record.get("legacyCaptureId") or (audit.get("captureId") if isinstance(audit, Mapping) else None)
    return capture if isinstance(capture, str) and capture else None


def _without_text(part: Json) -> Json:
    if not isinstance(part, Mapping):
        return part
    kept = _dropped(part, "text")
    if isinstance(kept.get("sources"), Sequence):
        kept["sources"] = [
            {**_dropped(source, "text"), "textStatus": TEXT_NOT_STORED} if isinstance(source, Mapping) else source
            for source in kept["sources"]
        ]
    return kept


def _dropped(value: Json, key: str) -> Json:
    return {name: item for name, item in value.items() if name != key} if isinstance(value, Mapping) else value


def _record_of_audit(session_id: str, audit: Mapping[str, Json]) -> dict[str, Json]:
    return {
        "schemaVersion": SCHEMA_VERSION,
        "id": audit["captureId"],
        "sessionId": session_id,
        **{key: audit[key] for key in ("turn", "step", "attempt", "recordedAt") if key in audit},
        "status": "assembled",
        "contentStatus": "assembly-unavailable",
        "bodyStorage": BODY_STORAGE,
        "sourceTextStored": False,
    }


def _checked(record: Mapping[str, Json]) -> dict[str, Json]:
    if record.get("schemaVersion") != SCHEMA_VERSION:
        raise RequestError(f"a trace record has schema {SCHEMA_VERSION}, not {record.get('schemaVersion')!r}")
    _check_ids(record.get("sessionId"), record.get("id"))
    return dict(record)


def _check_ids(session_id: Json, record_id: Json) -> None:
    if not is_session_id(session_id):
        raise RequestError(f"{session_id!r} is not a session id")
    if not _is_id(record_id):
        raise RequestError(f"a trace record needs a non-empty id, not {record_id!r}")


def _is_id(value: Json) -> bool:
    return isinstance(value, str) and value != ""
