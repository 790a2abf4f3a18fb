"""Session templates and configurations (spec/http §5.5)."""

from tapster.api.answers import Answer, ok
from tapster.engine.trace import is_session_id

from .routing import KIB, Call, Route, route
from .values import id_or_none, only_members, required, session_id_of

ROUTES: list[Route] = []
LIMIT = 64 * KIB


@route(ROUTES, "GET", "/v1/session-templates", "templates", "All templates")
async def list_templates(call: Call) -> Answer:
    return Answer({"ok": True, **await call.tapster.templates.list()})


@route(ROUTES, "POST", "/v1/session-templates", "templates", "Keep a session's selection", limit=LIMIT, success=201)
async def create_template(call: Call) -> Answer:
    only_members(call.body, "name", "sourceSessionId")
    source = session_id_of(call.body.get("sourceSessionId"))
    return ok(201, template=await call.tapster.templates.create(call.body.get("name"), source))


@route(ROUTES, "POST", "/v1/session-templates/select", "templates", "Choose a template", limit=LIMIT)
async def select_template(call: Call) -> Answer:
    template_id = id_or_none(required(call.body, "id"), "id", is_session_id)
    return Answer({"ok": True, **await call.tapster.templates.select(template_id)})


@route(ROUTES, "GET", "/v1/session-templates/:id", "templates", "One template")
async def get_template(call: Call) -> Answer:
    return Answer({"ok": True, **await call.tapster.templates.get(call.ids[0])})


@route(ROUTES, "PATCH", "/v1/session-templates/:id", "templates", "Rename or renew a template", limit=LIMIT)
async def update_template(call: Call) -> Answer:
    only_members(call.body, "name", "sourceSessionId")
    return Answer({"ok": True, **await call.tapster.templates.update(call.ids[0], dict(call.body))})


@route(ROUTES, "DELETE", "/v1/session-templates/:id", "templates", "Delete a template", limit=LIMIT)
async def delete_template(call: Call) -> Answer:
    await call.tapster.templates.delete(call.ids[0])
    return ok()


@route(ROUTES, "POST", "/v1/session-configurations/preview", "templates", "What a source would bind", limit=LIMIT)
async def preview(call: Call) -> Answer:
    return Answer({"ok": True, **await call.tapster.templates.preview(call.body.get("source"))})


@route(ROUTES, "POST", "/v1/session-configurations/apply", "templates", "Bind a source's selection", limit=LIMIT)
async def apply(call: Call) -> Answer:
    target = session_id_of(call.body.get("targetSessionId"))
    return Answer({"ok": True, **await call.tapster.templates.apply(target, call.body.get("source"))})
