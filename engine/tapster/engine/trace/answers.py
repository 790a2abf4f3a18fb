"""What API v3 and v1 ``/traces`` answer about retained records.

Source: spec/trace §11, §12; spec/http §5.6, §11.
"""

from collections.abc import Mapping, Sequence
from urllib.parse import unquote_to_bytes

import attrs

from tapster.engine.ecma import Json, is_number, stringify, utf8
from tapster.engine.errors import RequestError, TapsterError
from tapster.engine.limits import AUDIT_MAX_RECORDS_PER_SESSION

from .audit_store import AuditLimits
from .record import is_session_id
from .retention import legacy_capture_id
from .sections import SECTION_CONTRIBUTORS

CONTRACT = "prompt-trace-primitives"
LEGACY_PREFIX = "legacy:"
LEGACY_STATUS = "legacy-metadata-only"
AUDIT_AUTHORITY = "The host's request header is the authority; an audit is bounded metadata beside it."
_NOT_IN_INDEX = frozenset({"sections", "contexts", "systemMessages", "audit", "nativeSourceRefs"})


@attrs.frozen
class TraceSources:
    """Everything that is read for an answer about one session.

    Attributes:
        records: schema-4 records in write order.
        snapshots: read-only schema-3 rows, shown as they are.
        audits: read-only v1 audits.
    """

    records: Sequence[Mapping[str, Json]] = ()
    snapshots: Sequence[Mapping[str, Json]] = ()
    audits: Sequence[Mapping[str, Json]] = ()


def capabilities(
    storage: Mapping[str, Json],
    *,
    source_protocol: int | None = None,
    has_composer: bool = False,
    can_project: bool = False,
    keeps_requests: bool | None = None,
) -> dict[str, Json]:
    """The ``/capabilities`` body; the additive members appear once an assembler is built in."""
    body: dict[str, Json] = {
        "ok": True,
        "apiVersion": 3,
        "contract": CONTRACT,
        "sourceMapping": SECTION_CONTRIBUTORS,
        "historicalAssemblies": True,
        "composerRegistry": has_composer,
        "officialSections": True,
        "arbitraryMessageDepth": can_project,
        "storage": dict(storage),
    }
    if keeps_requests is not None:
        body |= {"sourceProtocolVersion": source_protocol, "requestAssembly": keeps_requests}
    return body


def index_rows(session_id: str, sources: TraceSources) -> list[dict[str, Json]]:
    """The index of a session: oldest first, legacy rows before others of the same time."""
    current = {record["id"] for record in sources.records}
    captures = {legacy_capture_id(record) for record in sources.records} - {None}
    legacy = [
        _without(legacy_record(session_id, audit), {"audit"})
        for audit in sources.audits[-AUDIT_MAX_RECORDS_PER_SESSION:]
        if audit.get("captureId") is None or audit["captureId"] not in captures
    ]
    snapshots = [row for row in sources.snapshots if row["id"] not in current]
    rows = [*legacy, *map(index_row, snapshots), *map(index_row, sources.records)]
    return sorted(rows, key=_recorded_at)


def index_row(record: Mapping[str, Json]) -> dict[str, Json]:
    """A record without its parts, with their count and the link to its v1 audit."""
    row = _without(record, _NOT_IN_INDEX)
    capture = legacy_capture_id(record)
    if capture is not None:
        row["legacyCaptureId"] = capture
    sections = record.get("sections")
    row["sectionCount"] = len(sections) if isinstance(sections, Sequence) else 0
    return row


def find_record(session_id: str, record_id: str, sources: TraceSources) -> Mapping[str, Json] | None:
    """The stored record behind an index row, or None."""
    for record in (*sources.records, *sources.snapshots):
        if record["id"] == record_id:
            return record
    if record_id.startswith(LEGACY_PREFIX):
        wanted = record_id.removeprefix(LEGACY_PREFIX)
        for audit in reversed(sources.audits[-AUDIT_MAX_RECORDS_PER_SESSION:]):
            if audit["id"] == wanted:
                return legacy_record(session_id, audit)
    return None


def legacy_record(session_id: str, audit: Mapping[str, Json]) -> dict[str, Json]:
    """A v1 audit in the shape of a record."""
    return {
        "schemaVersion": 3,
        "id": f"{LEGACY_PREFIX}{audit['id']}",
        "sessionId": session_id,
        **{key: audit[key] for key in ("turn", "step", "attempt", "recordedAt") if key in audit},
        "status": LEGACY_STATUS,
        "contentStatus": LEGACY_STATUS,
        "audit": dict(audit),
    }


def audit_rows(sources: TraceSources) -> list[Mapping[str, Json]]:
    """The v1 view: the old file's audits, then those inside the schema-4 records that aren't among them."""
    current = [record["audit"] for record in sources.records if record.get("audit")]
    captures = {audit.get("captureId") for audit in current} - {None}
    legacy = [audit for audit in sources.audits if audit.get("captureId") not in captures]
    return [*legacy, *current]


def audit_answer(
    session_id: str, rows: Sequence[Mapping[str, Json]], persisted_bytes: int, limits: AuditLimits | None = None
) -> dict[str, Json]:
    """The v1 ``/traces`` body, shrunk until it fits the audit store's own limit."""
    limits = limits or AuditLimits()
    short = {
        "kind": "plugin-bounded-json",
        "maxRecordBytes": limits.max_record_bytes,
        "maxTotalBytes": limits.max_total_bytes,
        "persistedBytes": persisted_bytes,
    }
    storage = {
        "kind": short["kind"],
        "maxSessions": limits.max_sessions,
        "maxRecordsPerSession": limits.max_records_per_session,
        **_without(short, {"kind"}),
    }
    head = {"ok": True, "sessionId": session_id}
    full = {**head, "records": list(rows), "storage": storage, "authority": AUDIT_AUTHORITY}
    if _size(full) <= limits.max_total_bytes:
        return full
    sizes = [_size(row) + 1 for row in rows]
    trimmed = {**head, "records": [], "storage": short, "responseMetadataTrimmed": True}
    if _size(trimmed) + sum(sizes) <= limits.max_total_bytes:
        return {**trimmed, "records": list(rows)}
    trimmed["responseTrimmed"] = True
    first, total = 0, _size(trimmed) + sum(sizes)
    while first < len(rows) - 1 and total > limits.max_total_bytes:
        total -= sizes[first]
        first += 1
    return {**trimmed, "records": list(rows[first:])}


class TraceReadFailed(TapsterError):
    """Reading traces failed in a way nobody outside is told more about."""

    code = "TRACE_READ_FAILED"
    status = 500

    def __init__(self) -> None:
        super().__init__("the trace records could not be read; see the log of the server")


def index_answer(session_id: str, sources: TraceSources, storage: Mapping[str, Json]) -> dict[str, Json]:
    """The body of a session's index."""
    return {"ok": True, "sessionId": session_id, "records": index_rows(session_id, sources), "storage": dict(storage)}


def detail_answer(record: Mapping[str, Json] | None) -> dict[str, Json]:
    """The body of a detail.

    Raises:
        RequestError: 404 for None.
    """
    if record is None:
        raise RequestError("no such assembly record in this session", code="ASSEMBLY_NOT_FOUND", status=404)
    return {"ok": True, "record": dict(record)}


@attrs.frozen
class V3Request:
    """A recognised v3 path; ``record_id`` is None for the index, both ids are None for the capabilities."""

    session_id: str | None = None
    record_id: str | None = None


def read_v3_path(method: str, path: str) -> V3Request:
    """What a method and the raw path below ``/v3`` ask for.

    Raises:
        RequestError: 405, 404 or 400, with the contract's code.
    """
    if method != "GET":
        raise RequestError(f"{method} is not answered here, only GET", code="METHOD_NOT_ALLOWED", status=405)
    match path.split("/")[1:]:
        case ["capabilities"]:
            return V3Request()
        case ["sessions", raw_session, "assemblies"] if raw_session:
            return V3Request(_session_id(raw_session))
        case ["sessions", raw_session, "assemblies", raw_record] if raw_session and raw_record:
            return V3Request(_session_id(raw_session), decode_segment(raw_record))
    raise RequestError("there is nothing at this path", code="NOT_FOUND", status=404)


def decode_segment(raw: str) -> str:
    """A path segment, percent-decoded once.

    Raises:
        RequestError: 400 for a malformed escape or bytes that aren't UTF-8.
    """
    escapes = raw.split("%")[1:]
    if any(len(escape) < 2 or not _is_hex(escape[:2]) for escape in escapes):
        raise RequestError(f"{raw!r} has a malformed percent escape", status=400)
    try:
        return unquote_to_bytes(raw).decode()
    except UnicodeDecodeError:
        raise RequestError(f"{raw!r} is not percent-encoded UTF-8", status=400) from None


def _is_hex(text: str) -> bool:
    return all(character in "0123456789abcdefABCDEF" for character in text)


def _session_id(raw: str) -> str:
    session_id = decode_segment(raw)
    if not is_session_id(session_id):
        raise RequestError(f"{session_id!r} is not a session id", code="PROMPT_SESSION_INVALID", status=400)
    return session_id


def _recorded_at(row: Mapping[str, Json]) -> float:
    value: Json = row.get("recordedAt")
    return float(value) if is_number(value) else 0.0


def _without(value: Mapping[str, Json], names: frozenset[str] | set[str]) -> dict[str, Json]:
    return {key: item for key, item in value.items() if key not in names}


def _size(value: Json) -> int:
    return len(utf8(stringify(value)))
