"""The route table of Tapster's own root."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

import attrs
from quart import Response

from tapster.api.answers import Answer
from tapster.api.facts import Query
from tapster.api.ports import Tapster
from tapster.engine.contract import RequestFacts
from tapster.engine.ecma import Json
from tapster.engine.errors import RequestError
from tapster.engine.trace import decode_segment


@attrs.frozen
class OwnCall:
    """One admitted request; ``ids`` are the decoded id segments in order of the pattern."""

    tapster: Tapster
    facts: RequestFacts
    query: Query
    ids: Sequence[str] = ()
    body: Mapping[str, Json] = attrs.Factory(dict)
    data: bytes = b""


class OwnHandler(Protocol):
    """Answers a call, or raises a declared error; a stream comes as a finished response."""

    def __call__(self, call: OwnCall) -> Awaitable[Answer | Response]: ...


@attrs.frozen
class OwnRoute:
    """A method and a pattern below the own root.

    Attributes:
        limit: bytes of the body.
        takes_bytes: the body is a file and isn't read as JSON.
        while_draining: the route still answers during a shutdown.
    """

    method: str
    pattern: str
    handler: OwnHandler
    summary: str
    tag: str
    limit: int = 0
    success: int = 200
    while_draining: bool = False
    takes_bytes: bool = False
    media_type: str = "application/json"

    def match(self, path: str) -> list[str] | None:
        """The raw id segments, or None when the path is another one."""
        parts, given = self.pattern.split("/"), path.split("/")
        if len(parts) != len(given):
            return None
        pairs = list(zip(parts, given, strict=True))
        if any(part != segment for part, segment in pairs if not part.startswith(":")):
            return None
        raw = [segment for part, segment in pairs if part.startswith(":")]
        return raw if all(raw) else None


class MethodNotAllowed(RequestError):
    """The path is known and doesn't take this method."""

    code = "METHOD_NOT_ALLOWED"
    status = 405


class NotFound(RequestError):
    """There is nothing at this path."""

    code = "NOT_FOUND"
    status = 404


def own_route(
    table: list[OwnRoute], method: str, pattern: str, summary: str, tag: str, **options: int | bool | str
) -> Callable[[OwnHandler], OwnHandler]:
    """Register a handler in a table."""

    def register(handler: OwnHandler) -> OwnHandler:
        table.append(OwnRoute(method, pattern, handler, summary, tag, **options))  # type: ignore[arg-type]
        return handler

    return register


def find_route(routes: Sequence[OwnRoute], method: str, path: str) -> tuple[OwnRoute, list[str]]:
    """The route of a request and its decoded ids; HEAD is answered as GET.

    Raises:
        NotFound, MethodNotAllowed: there is none.
        RequestError: an id has a malformed escape.
    """
    wanted = "GET" if method == "HEAD" else method
    matches = [(route, raw) for route in routes if (raw := route.match(path)) is not None]
    for route, raw in matches:
        if route.method == wanted:
            return route, [decode_segment(segment) for segment in raw]
    if matches:
        allowed = ", ".join(sorted(route.method for route, _ in matches))
        raise MethodNotAllowed(f"{path[:200]} takes {allowed}, not {method[:20]}")
    raise NotFound(f"there is nothing at {path[:200]}")
