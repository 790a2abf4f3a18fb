"""Character routes (spec/http §5.2)."""

from tapster.api.answers import Answer, Attachment, ok
from tapster.engine.ecma import Json
from tapster.engine.policy import Selection, selection_json

from .routing import KIB, MIB, Call, Route, route
from .values import id_or_none, only_members, query_session, required, session_id_of

ROUTES: list[Route] = []
EDIT_LIMIT = 16 * MIB


@route(ROUTES, "GET", "/v1/characters", "characters", "All cards, their order, and cards that are missed")
async def list_characters(call: Call) -> Answer:
    return Answer({"ok": True, **await call.tapster.characters.list()})


@route(ROUTES, "POST", "/v1/characters", "characters", "Create a card", limit=64 * KIB, success=201)
async def create_character(call: Call) -> Answer:
    return ok(201, character=await call.tapster.characters.create(call.body.get("name")))


@route(
    ROUTES,
    "POST",
    "/v1/characters/import",
    "characters",
    "Import a card file (JSON, PNG, CHARX)",
    limit=32 * MIB,
    takes_bytes=True,
    success=201,
)
async def import_character(call: Call) -> Answer:
    media_type = call.facts.headers.get("content-type", "").partition(";")[0].strip().lower()
    imported = await call.tapster.characters.import_file(call.data, media_type, call.query.get("filename"))
    return Answer({"ok": True, **imported}, 201)


@route(ROUTES, "PUT", "/v1/characters/order", "characters", "Sort the cards", limit=512 * KIB)
async def order_characters(call: Call) -> Answer:
    only_members(call.body, "mode", "characterIds")
    ordered = await call.tapster.characters.set_order(call.body.get("mode"), call.body.get("characterIds"))
    return Answer({"ok": True, **ordered})


@route(ROUTES, "POST", "/v1/characters/relink", "characters", "Put a card in a missing card's place", limit=64 * KIB)
async def relink_character(call: Call) -> Answer:
    only_members(call.body, "previousCharacterId", "characterId")
    previous, character = required(call.body, "previousCharacterId"), required(call.body, "characterId")
    return Answer({"ok": True, **await call.tapster.characters.relink(previous, character)})


@route(ROUTES, "GET", "/v1/characters/:id", "characters", "One card")
async def get_character(call: Call) -> Answer:
    return ok(character=await call.tapster.characters.get(call.ids[0]))


@route(ROUTES, "PATCH", "/v1/characters/:id", "characters", "Edit a card", limit=EDIT_LIMIT)
async def update_character(call: Call) -> Answer:
    return ok(character=await call.tapster.characters.update(call.ids[0], dict(call.body)))


@route(ROUTES, "DELETE", "/v1/characters/:id", "characters", "Delete a card and every use of it", limit=EDIT_LIMIT)
async def delete_character(call: Call) -> Answer:
    await call.tapster.characters.delete(call.ids[0])
    return ok()


@route(ROUTES, "GET", "/v1/characters/:id/json", "characters", "A card as JSON")
async def export_json(call: Call) -> Attachment:
    return Attachment(await call.tapster.characters.export_json(call.ids[0]))


@route(ROUTES, "GET", "/v1/characters/:id/png", "characters", "A card as PNG")
async def export_png(call: Call) -> Attachment:
    return Attachment(await call.tapster.characters.export_png(call.ids[0]))


@route(ROUTES, "PATCH", "/v1/characters/:id/world-book", "characters", "Replace a card's own book", limit=4 * MIB)
async def put_book(call: Call) -> Answer:
    book = required(call.body, "characterBook")
    return ok(character=await call.tapster.characters.set_book(call.ids[0], book))


@route(ROUTES, "GET", "/v1/characters/:id/world-books", "characters", "Books that a card brings along")
async def get_books(call: Call) -> Answer:
    books = await call.tapster.relations.books("character", call.ids[0])
    return ok(binding={"characterCardId": call.ids[0], "worldBookIds": list(books)})


@route(ROUTES, "PUT", "/v1/characters/:id/world-books", "characters", "Set the books that a card brings", limit=MIB)
async def put_books(call: Call) -> Answer:
    only_members(call.body, "worldBookIds")
    books = await call.tapster.relations.set_books("character", call.ids[0], call.body.get("worldBookIds"))
    return ok(binding={"characterCardId": call.ids[0], "worldBookIds": list(books)})


@route(ROUTES, "GET", "/v1/characters/:id/regex-scripts", "characters", "A card's regex scripts")
async def get_scripts(call: Call) -> Answer:
    return ok(regexScripts=list(await call.tapster.characters.regex_scripts(call.ids[0])))


@route(ROUTES, "PUT", "/v1/characters/:id/regex-scripts", "characters", "Replace its scripts", limit=EDIT_LIMIT)
async def put_scripts(call: Call) -> Answer:
    scripts = await call.tapster.characters.set_regex_scripts(call.ids[0], required(call.body, "regexScripts"))
    return ok(regexScripts=list(scripts))


@route(ROUTES, "GET", "/v1/character-selection", "characters", "A session's card")
async def get_selection(call: Call) -> Answer:
    return await _answer(call, await call.tapster.selections.get(query_session(call)))


@route(ROUTES, "POST", "/v1/character-selection", "characters", "Bind a card to a session", limit=MIB)
async def put_selection(call: Call) -> Answer:
    session_id = session_id_of(call.body.get("sessionId"))
    patch: dict[str, Json] = {"characterCardId": id_or_none(required(call.body, "characterCardId"), "characterCardId")}
    if "character" in call.body:
        patch["character"] = call.body["character"]
    return await _answer(call, await call.tapster.selections.select(session_id, patch))


async def _answer(call: Call, selection: Selection) -> Answer:
    card_id = selection.character_card_id
    if card_id is None:
        return ok(selection=None, character=None)
    options = selection_json(selection)["character"]
    summary = await call.tapster.selections.summary("character", card_id)
    shown = summary and {key: summary.get(key) for key in ("id", "name", "sourceFormat", "specVersion")}
    return ok(selection={"characterCardId": card_id, "character": options}, character=shown)
