"""World-book routes (spec/http §5.3)."""

import hashlib

from tapster.api.answers import Answer, Attachment, ok
from tapster.engine.ecma import Json
from tapster.engine.errors import RequestError
from tapster.engine.formats.fields import is_resource_id
from tapster.engine.limits import MAX_BOUND_WORLD_BOOKS
from tapster.engine.policy import Selection

from .routing import MIB, Call, Route, route
from .values import query_session, session_id_of

ROUTES: list[Route] = []
LIMIT = 4 * MIB


@route(ROUTES, "GET", "/v1/world-books", "world-books", "All world books")
async def list_books(call: Call) -> Answer:
    return ok(worldBooks=list(await call.tapster.world_books.list()))


@route(ROUTES, "POST", "/v1/world-books", "world-books", "Create a world book", limit=LIMIT, success=201)
async def create_book(call: Call) -> Answer:
    return ok(201, worldBook=await call.tapster.world_books.create(call.body.get("name")))


@route(
    ROUTES,
    "POST",
    "/v1/world-books/import",
    "world-books",
    "Import a world-book file",
    limit=LIMIT,
    takes_bytes=True,
    success=201,
)
async def import_book(call: Call) -> Answer:
    return ok(201, worldBook=await call.tapster.world_books.import_file(call.data, call.query.get("filename")))


@route(ROUTES, "GET", "/v1/world-books/:id", "world-books", "One world book")
async def get_book(call: Call) -> Answer:
    return ok(worldBook=await call.tapster.world_books.get(call.ids[0]))


@route(ROUTES, "PATCH", "/v1/world-books/:id", "world-books", "Edit a world book", limit=LIMIT)
async def update_book(call: Call) -> Answer:
    return ok(worldBook=await call.tapster.world_books.update(call.ids[0], dict(call.body)))


@route(ROUTES, "DELETE", "/v1/world-books/:id", "world-books", "Delete a book and every use of it", limit=LIMIT)
async def delete_book(call: Call) -> Answer:
    await call.tapster.world_books.delete(call.ids[0])
    return ok()


@route(ROUTES, "GET", "/v1/world-books/:id/json", "world-books", "A world book as a file")
async def export_book(call: Call) -> Attachment:
    download = await call.tapster.world_books.export(call.ids[0])
    return Attachment(download, {"ETag": f'"sha256-{hashlib.sha256(download.data).hexdigest()}"'})


@route(ROUTES, "GET", "/v1/world-book-selection", "world-books", "A session's books")
async def get_selection(call: Call) -> Answer:
    return await _answer(call, await call.tapster.selections.get(query_session(call)))


@route(ROUTES, "POST", "/v1/world-book-selection", "world-books", "Bind books to a session", limit=LIMIT)
async def put_selection(call: Call) -> Answer:
    session_id = session_id_of(call.body.get("sessionId"))
    books = _book_ids(call.body.get("worldBookIds"))
    return await _answer(call, await call.tapster.selections.select(session_id, {"worldBookIds": books}))


def _book_ids(value: Json) -> list[str]:
    if not isinstance(value, list) or not all(map(is_resource_id, value)):
        raise RequestError("worldBookIds must be a list of ids")
    if len(value) > MAX_BOUND_WORLD_BOOKS:
        raise RequestError(f"{len(value)} world books, at most {MAX_BOUND_WORLD_BOOKS} may be bound")
    return list(dict.fromkeys(value))


async def _answer(call: Call, selection: Selection) -> Answer:
    ids = list(selection.world_book_ids)
    summaries = [await call.tapster.selections.summary("world-book", book_id) for book_id in ids]
    books = [
        {"id": book_id, "missing": True} if summary is None else summary
        for book_id, summary in zip(ids, summaries, strict=True)
    ]
    return ok(selection={"worldBookIds": ids}, worldBooks=books)
