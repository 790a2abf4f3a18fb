"""Any file of a SillyTavern folder into the library."""

from tapster.api.answers import Answer
from tapster.engine.errors import RequestError

from .routing import OwnCall, OwnRoute, own_route

ROUTES: list[OwnRoute] = []
LIMIT = 32 * 1024 * 1024


@own_route(
    ROUTES,
    "POST",
    "/import",
    "Import a file of any kind: bytes, with ?filename=",
    "library",
    limit=LIMIT,
    success=201,
    takes_bytes=True,
)
async def import_file(call: OwnCall) -> Answer:
    name = call.query.get("filename") or "file"
    if not call.data:
        raise RequestError("the body must be the bytes of a card, preset, world book or persona file")
    return Answer(await call.tapster.imports.import_file(name, call.data), 201)
