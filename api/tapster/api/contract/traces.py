"""The v1 audit route (spec/http §5.6)."""

from tapster.api.answers import Answer
from tapster.engine.trace import audit_answer, audit_rows

from .routing import Call, Route, route
from .values import query_session

ROUTES: list[Route] = []


@route(ROUTES, "GET", "/v1/traces", "audit", "A session's audits")
async def list_audits(call: Call) -> Answer:
    session_id = query_session(call)
    stored = await call.tapster.traces.audits(session_id)
    return Answer(audit_answer(session_id, audit_rows(stored.sources), stored.persisted_bytes))
