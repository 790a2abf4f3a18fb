"""tavern_api http.v3: details without body recovery."""

from typing import Any

from tapster.engine.contract import SECURITY_HEADERS
from tapster.engine.errors import TapsterError
from tapster.engine.trace import (
    RetentionLimits,
    TraceBook,
    TraceReadFailed,
    TraceSources,
    capabilities,
    detail_answer,
    find_record,
    index_answer,
    read_v3_path,
)
from tests.conformance.adapters.trace import ROW
from tests.conformance.registry import adapter

Json = Any
ROOT = "/pmp-dsh-tavern/api/v3"


@adapter("tavern_api", "http.v3")
def run_v3(given: Json) -> Json:
    try:
        status, body = 200, answer(given)
    except TapsterError as error:
        status, body = error.status or 400, {"ok": False, "code": error.code}
        if status == 500:
            # The vector's stand-in for "one fixed text".
            body["error"] = "(fixed text without detail)"
    return {"status": status, "cacheControl": SECURITY_HEADERS["Cache-Control"], "body": body}


def answer(given: Json) -> Json:
    storage = RetentionLimits().to_json()
    request = read_v3_path(given["method"], given["url"].partition("?")[0].removeprefix(ROOT))
    if request.session_id is None:
        return capabilities(storage)
    sources = sources_of(given, request.session_id)
    if request.record_id is None:
        return index_answer(request.session_id, sources, storage)
    return detail_answer(find_record(request.session_id, request.record_id, sources))


def sources_of(given: Json, session_id: str) -> TraceSources:
    if given["store"] == "reading fails":
        raise TraceReadFailed
    book = TraceBook().put({**ROW, **row} for row in given["store"])
    return TraceSources(book.session(session_id), (), given["legacyV1"].get(session_id, ()))
