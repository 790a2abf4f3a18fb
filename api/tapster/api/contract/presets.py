"""Preset routes (spec/http §5.1)."""

from tapster.api.answers import Answer, Attachment, ok
from tapster.engine.ecma import Json
from tapster.engine.errors import RequestError

from .routing import MIB, Call, Route, route
from .values import id_or_none, only_members, query_session, required, session_id_of

ROUTES: list[Route] = []
LIMIT = 2 * MIB


@route(ROUTES, "GET", "/v1/presets", "presets", "All presets and the one in force")
async def list_presets(call: Call) -> Answer:
    presets = await call.tapster.presets.list()
    if call.query.get("sessionId") is None:
        return ok(presets=list(presets), selectedId=await call.tapster.presets.default_id())
    selection = await call.tapster.selections.get(query_session(call))
    return ok(presets=list(presets), selectedId=selection.preset_id)


@route(ROUTES, "POST", "/v1/presets", "presets", "Create a preset", limit=LIMIT, success=201)
async def create_preset(call: Call) -> Answer:
    return ok(201, preset=await call.tapster.presets.create(call.body.get("name")))


@route(ROUTES, "GET", "/v1/presets/:id", "presets", "One preset")
async def get_preset(call: Call) -> Answer:
    return ok(preset=await call.tapster.presets.get(call.ids[0]))


@route(ROUTES, "PUT", "/v1/presets/:id", "presets", "Edit a preset", limit=LIMIT)
async def update_preset(call: Call) -> Answer:
    return ok(preset=await call.tapster.presets.update(call.ids[0], dict(call.body)))


@route(ROUTES, "DELETE", "/v1/presets/:id", "presets", "Delete a preset and every use of it", limit=LIMIT)
async def delete_preset(call: Call) -> Answer:
    await call.tapster.presets.delete(call.ids[0])
    return ok()


@route(ROUTES, "POST", "/v1/import", "presets", "Import a preset file", limit=LIMIT, success=201)
async def import_preset(call: Call) -> Answer:
    content = call.body.get("content")
    if not isinstance(content, str):
        raise RequestError("content must be the text of a preset file")
    return ok(201, preset=await call.tapster.presets.import_text(content, call.body.get("name")))


@route(ROUTES, "POST", "/v1/select", "presets", "Bind a preset to a session, or choose the default", limit=LIMIT)
async def select_preset(call: Call) -> Answer:
    preset_id = id_or_none(required(call.body, "id"), "id")
    session_id = call.body.get("sessionId")
    if session_id is None:
        await call.tapster.presets.set_default(preset_id)
    else:
        await call.tapster.selections.select(session_id_of(session_id), {"presetId": preset_id})
    return ok(selected=await _selected(call, preset_id))


async def _selected(call: Call, preset_id: str | None) -> Json:
    if preset_id is None:
        return None
    summary = await call.tapster.selections.summary("preset", preset_id)
    return None if summary is None else {"id": summary["id"], "name": summary["name"]}


@route(ROUTES, "GET", "/v1/active", "presets", "What a session would send now; nothing is recorded")
async def active(call: Call) -> Answer:
    return Answer({"ok": True, **await call.tapster.sessions.active(query_session(call))})


@route(ROUTES, "GET", "/v1/presets/:id/export", "presets", "A preset as a file")
async def export_preset(call: Call) -> Attachment:
    return Attachment(await call.tapster.presets.export(call.ids[0]))


@route(ROUTES, "GET", "/v1/presets/:id/regex-scripts", "presets", "A preset's regex scripts")
async def get_scripts(call: Call) -> Answer:
    return ok(regexScripts=list(await call.tapster.presets.regex_scripts(call.ids[0])))


@route(ROUTES, "PUT", "/v1/presets/:id/regex-scripts", "presets", "Replace a preset's regex scripts", limit=LIMIT)
async def put_scripts(call: Call) -> Answer:
    scripts = await call.tapster.presets.set_regex_scripts(call.ids[0], required(call.body, "regexScripts"))
    return ok(regexScripts=list(scripts))


@route(ROUTES, "GET", "/v1/presets/:id/world-books", "presets", "Books that a preset brings along")
async def get_books(call: Call) -> Answer:
    books = await call.tapster.relations.books("preset", call.ids[0])
    return ok(binding={"presetId": call.ids[0], "worldBookIds": list(books)})


@route(ROUTES, "PUT", "/v1/presets/:id/world-books", "presets", "Set the books that a preset brings", limit=LIMIT)
async def put_books(call: Call) -> Answer:
    only_members(call.body, "worldBookIds")
    books = await call.tapster.relations.set_books("preset", call.ids[0], call.body.get("worldBookIds"))
    return ok(binding={"presetId": call.ids[0], "worldBookIds": list(books)})
