"""tavern_api areas about traces, security and coordinates."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tapster.actors.store.files.atomic import AtomicWriter
from tapster.actors.store.files.traces import RECORDS_FILE, TraceFiles
from tapster.engine.contract import (
    ABSENT,
    RequestFacts,
    SecurityOptions,
    check_coordinates,
    check_request,
    coordinates_of,
)
from tapster.engine.ecma import stringify
from tapster.engine.errors import RequestError, StoreError, TapsterError
from tapster.engine.trace import (
    AuditBook,
    AuditLimits,
    Begin,
    CaptureState,
    HostEventLogged,
    Inspection,
    NamedPart,
    NoHistory,
    ObservedRequest,
    OfficialAssembly,
    RetentionLimits,
    SessionView,
    StreamObserved,
    TraceBook,
    count,
    digest,
    find_record,
    index_rows,
    inspect_failed,
    next_attempt,
    step,
    verified_detail,
)
from tests.conformance.registry import adapter

Json = Any
STEM = "tavern_api"


@adapter(STEM, "trace4.digest")
def run_digest(given: Json) -> Json:
    value = given["value"]
    counts = count(value).to_json() if isinstance(value, str) else {}
    return {"hash": digest(value), **counts}


@adapter(STEM, "security.check")
def run_security(given: Json) -> Json:
    options = given.get("options") or {}
    first = ((key, value[:1] if isinstance(value, list) else [value]) for key, value in given["headers"].items())
    headers = {key.lower(): values[0] for key, values in first if values}
    facts = RequestFacts(given["method"], given["url"].partition("?")[0], given["remoteAddress"], headers)
    remote = options.get("allowRemoteClients", False)
    try:
        check_request(facts, SecurityOptions.of(options.get("allowedHosts", ()), allow_remote_clients=remote))
    except RequestError as error:
        return {"status": error.status, "code": error.code, "passed": False}
    return {"status": 204, "code": None, "passed": True}


@adapter(STEM, "coordinates")
def run_coordinates(given: Json) -> Json:
    coordinates = coordinates_of(given["inspection"])
    requested = given["requestedVersion"]
    check: Json = {"ok": True, "value": "accepted"}
    try:
        check_coordinates(ABSENT if requested == "(absent)" else requested, coordinates)
    except RequestError as error:
        check = {"ok": False, "status": error.status, "code": error.code}
    return {"coordinates": coordinates.to_json(), "check": check}


@adapter(STEM, "trace4.store")
def run_trace_store(given: Json) -> Json:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file_name, content in given["files"].items():
            text = content if isinstance(content, str) else stringify(content)
            (folder / file_name).write_text(text, encoding="utf-8", errors="surrogatepass")
        before = {path.name for path in folder.iterdir()}
        try:
            files = TraceFiles(folder, AtomicWriter(1, lambda: "t"), RetentionLimits.from_options(given["options"]))
        except StoreError:
            return {"opened": False}
        results = [store_operation(files, operation) for operation in given["ops"]]
        target = folder / RECORDS_FILE
        is_new = target.exists() and RECORDS_FILE not in before
        mode = f"{target.stat().st_mode & 0o777:o}" if is_new else None
        generated = [operation for operation in given["ops"] if "generate" in operation]
        if generated:
            ids = [record["id"] for record in files.sources("s").records]
            return {"opened": True, "fileMode": mode, "count": len(ids), "first": ids[0], "last": ids[-1]}
        return {"opened": True, "fileMode": mode, "results": results}


def store_operation(files: TraceFiles, operation: Json) -> Json:
    session_id = operation.get("sessionId", "s")
    try:
        match operation["do"]:
            case "storage":
                return {"storage": files.book.limits.to_json()}
            case "put":
                records = generated_records(operation["generate"]) if "generate" in operation else operation["records"]
                files.put(records)
                written = records[0]["sessionId"] if records else session_id
                return {"ids": [row["id"] for row in files.sources(written).records]}
            case "audits":
                files.put_audits(session_id, operation["audits"])
                return {"ids": [row["id"] for row in files.sources(session_id).records]}
            case "listAudits":
                return {"audits": files.book.audits(session_id)}
            case "list":
                return {"index": index_rows(session_id, files.sources(session_id))}
            case "get":
                return {"record": find_record(session_id, operation["id"], files.sources(session_id))}
    except TapsterError as error:
        return {"error": error.kind}
    raise AssertionError(operation)


def generated_records(rule: Json) -> list[Json]:
    assert rule["recordedAt"] == "index"
    return [
        {**ROW, "id": rule["idFormat"] % index, "sessionId": "s", "recordedAt": index} for index in range(rule["count"])
    ]


ROW = {
    "schemaVersion": 4,
    "turn": 1,
    "step": 0,
    "attempt": 1,
    "status": "request-observed",
    "contentStatus": "reference-only",
}


@adapter(STEM, "trace1.store")
def run_audit_store(given: Json) -> Json:
    book = AuditBook(AuditLimits.from_options(given["options"]))
    results: list[Json] = []
    for operation in given["ops"]:
        try:
            book = book.put(operation["sessionId"], operation["records"])
        except RequestError as error:
            results.append({"ok": False, "status": error.status or 400, "code": None})
        except StoreError:
            results.append({"ok": False, "status": 500, "code": None})
        else:
            value = [record["id"] for record in book.sessions.get(operation["sessionId"], ())]
            results.append({"ok": True, "value": value})
    retained = {name: [record["id"] for record in records] for name, records in book.sessions.items()}
    return {"results": results, "retained": retained}


@adapter(STEM, "trace4.scenario")
def run_scenario(given: Json) -> Json:
    session, begin = given["session"], given["begin"]
    view = session_view(session, session["eventsAtRequest"])
    state, book = CaptureState(), TraceBook()
    moments: list[Json] = [begin_event(session["id"], begin, book)]
    if given["request"] is not None:
        request = given["request"]
        moments.append(
            StreamObserved(
                ObservedRequest(
                    request["messages"],
                    request.get("system"),
                    request["provider"],
                    request["model"],
                    request.get("tools") or (),
                ),
                view,
            )
        )
    events = list(session["eventsAtRequest"])
    for event in given["laterEvents"]:
        events.append(event)
        moments.append(HostEventLogged(event, session_view(session, events)))
    for moment in moments:
        result = step(state, moment)
        state = result.state
        book = book.put(record.to_json() for record in result.records)
    stored = book.find(session["id"], begin["captureId"])
    if stored is None:
        return {"stored": None, "bodiesOnDisk": False, "detail": None}
    detail = verified_detail(stored, history_of(given["inspection"]))
    return {
        "stored": {key: value for key, value in stored.items() if key != "audit"},
        "bodiesOnDisk": has_bodies(book.to_text(), given),
        "detail": picked(detail),
    }


def session_view(session: Json, events: list[Json]) -> SessionView:
    seqs = [event["seq"] for event in events]
    next_seq = seqs[-1] + 1 if seqs else 0
    return SessionView(session["id"], session["version"], session["createdAt"], next_seq, tuple(events), seqs)


def begin_event(session_id: str, begin: Json, book: TraceBook) -> Begin:
    assembly = begin["officialAssembly"]
    return Begin(
        capture_id=begin["captureId"],
        session_id=session_id,
        turn=begin["turn"],
        step=begin["step"],
        attempt=next_attempt(book.session(session_id), begin["turn"], begin["step"], begin["captureId"]),
        now=begin["now"],
        assembly=None if assembly is None else OfficialAssembly.from_json(assembly),
        known_parts=[
            NamedPart(part["name"], part["text"], tuple(part["sources"]), part["provenance"])
            for part in begin["knownParts"]
        ],
        selection=begin["sessionSelection"],
    )


def history_of(inspection: Json) -> Inspection | NoHistory:
    if inspection is None:
        return NoHistory()
    if "error" in inspection:
        return inspect_failed("ApiSessionNotFound" if inspection["error"] == "notfound" else "Error", None)
    return Inspection(inspection["meta"], inspection["events"])


def has_bodies(text: str, given: Json) -> bool:
    """Whether a text of the assembly, of a source or of a message is in the stored file.

    A body that is also a name or an id of the input is in the file as that.
    """
    begin = given["begin"]
    bodies = {body for body in texts_of(begin) if body}
    return any(stringify(body) in text for body in bodies - set(metadata_of([begin, given["session"]["id"]])))


def texts_of(value: Json) -> Iterator[str]:
    """Every text of the assembly and its sources."""
    for key, item in members_of(value):
        if key == "text" and isinstance(item, str):
            yield item
        else:
            yield from texts_of(item)


def metadata_of(value: Json) -> Iterator[str]:
    """Every other string."""
    for key, item in members_of(value):
        if key != "text" and isinstance(item, str):
            yield item
        elif not isinstance(item, str):
            yield from metadata_of(item)


def members_of(value: Json) -> Iterator[tuple[str, Json]]:
    if isinstance(value, dict):
        yield from value.items()
    elif isinstance(value, list):
        yield from (("", item) for item in value)


def picked(detail: Json) -> Json:
    keys = ("status", "contentStatus", "referenceError", "requestContentStatus", "failureStatus", "failure")
    value = {key: detail.get(key) for key in (*keys, "failureReferenceError", "systemMessages")}
    for key in ("sections", "contexts"):
        value[key] = [
            [part["name"], part["contentStatus"], part.get("text"), part.get("referenceError")] for part in detail[key]
        ]
    return value
