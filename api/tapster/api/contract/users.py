"""Persona routes (spec/http §5.3)."""

from tapster.api.answers import Answer, ok
from tapster.engine.policy import Selection

from .routing import KIB, Call, Route, route
from .values import id_or_none, only_members, query_session, required, session_id_of

ROUTES: list[Route] = []
LIMIT = 256 * KIB


@route(ROUTES, "GET", "/v1/users", "users", "All personas")
async def list_users(call: Call) -> Answer:
    return ok(users=list(await call.tapster.users.list()))


@route(ROUTES, "POST", "/v1/users", "users", "Create a persona", limit=LIMIT, success=201)
async def create_user(call: Call) -> Answer:
    return ok(201, user=await call.tapster.users.create(dict(call.body)))


@route(ROUTES, "GET", "/v1/users/:id", "users", "One persona")
async def get_user(call: Call) -> Answer:
    return ok(user=await call.tapster.users.get(call.ids[0]))


@route(ROUTES, "PATCH", "/v1/users/:id", "users", "Edit a persona", limit=LIMIT)
async def update_user(call: Call) -> Answer:
    return ok(user=await call.tapster.users.update(call.ids[0], dict(call.body)))


@route(ROUTES, "DELETE", "/v1/users/:id", "users", "Delete a persona and every use of it", limit=LIMIT)
async def delete_user(call: Call) -> Answer:
    await call.tapster.users.delete(call.ids[0])
    return ok()


@route(ROUTES, "GET", "/v1/users/:id/world-books", "users", "Books that a persona brings along")
async def get_books(call: Call) -> Answer:
    books = await call.tapster.relations.books("user", call.ids[0])
    return ok(binding={"userId": call.ids[0], "worldBookIds": list(books)})


@route(ROUTES, "PUT", "/v1/users/:id/world-books", "users", "Set the books that a persona brings", limit=LIMIT)
async def put_books(call: Call) -> Answer:
    only_members(call.body, "worldBookIds")
    books = await call.tapster.relations.set_books("user", call.ids[0], call.body.get("worldBookIds"))
    return ok(binding={"userId": call.ids[0], "worldBookIds": list(books)})


@route(ROUTES, "GET", "/v1/user-selection", "users", "A session's persona")
async def get_selection(call: Call) -> Answer:
    return await _answer(call, await call.tapster.selections.get(query_session(call)))


@route(ROUTES, "POST", "/v1/user-selection", "users", "Bind a persona to a session", limit=LIMIT)
async def put_selection(call: Call) -> Answer:
    session_id = session_id_of(call.body.get("sessionId"))
    patch = {"userId": id_or_none(required(call.body, "userId"), "userId")}
    return await _answer(call, await call.tapster.selections.select(session_id, patch))


async def _answer(call: Call, selection: Selection) -> Answer:
    if selection.user_id is None:
        return ok(selection=None, user=None)
    summary = await call.tapster.selections.summary("user", selection.user_id)
    return ok(selection={"userId": selection.user_id}, user=summary)
