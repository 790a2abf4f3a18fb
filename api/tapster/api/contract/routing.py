"""The route table of the contract: families by path, routes by method and pattern.

Matching is on the raw path; an id is the segment between two slashes and is percent-decoded afterwards.

Source: spec/http §2.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol, TypeAlias

import attrs

from tapster.api.answers import Answer, Attachment
from tapster.api.errors import Family
from tapster.api.facts import Query
from tapster.api.ports import Tapster
from tapster.engine.contract import RequestFacts
from tapster.engine.ecma import Json
from tapster.engine.errors import RequestError
from tapster.engine.trace import decode_segment

KIB = 1024
MIB = 1024 * KIB

Reply: TypeAlias = Answer | Attachment


@attrs.frozen
class Call:
    """One admitted request: its ids, its query and its body.

    Attributes:
        ids: the decoded id segments in order of the pattern.
        body: the parsed JSON object; ``{}`` for a read or a route that takes bytes.
        data: the raw bytes, for a route that takes bytes.
    """

    tapster: Tapster
    facts: RequestFacts
    query: Query
    ids: Sequence[str] = ()
    body: Mapping[str, Json] = attrs.Factory(dict)
    data: bytes = b""


class Handler(Protocol):
    """Answers a call, or raises a declared error."""

    def __call__(self, call: Call) -> Awaitable[Reply]: ...


@attrs.frozen
class Route:
    """A method and a pattern such as ``/v1/users/:id``.

    Attributes:
        limit: bytes of the raw body.
        takes_bytes: the handler gets the raw body instead of JSON.
    """

    method: str
    pattern: str
    family: Family
    handler: Handler
    summary: str
    limit: int = 0
    takes_bytes: bool = False
    success: int = 200

    def match(self, path: str) -> list[str] | None:
        """The raw id segments, or None when the path is another one."""
        parts, given = self.pattern.split("/"), path.split("/")
        if len(parts) != len(given):
            return None
        raw: list[str] = []
        for part, segment in zip(parts, given, strict=True):
            if part.startswith(":") and segment:
                raw.append(segment)
            elif part != segment:
                return None
        return raw


def route(
    table: list[Route], method: str, pattern: str, family: Family, summary: str, **options: int | bool
) -> Callable[[Handler], Handler]:
    """Register a handler in a table."""

    def register(handler: Handler) -> Handler:
        table.append(Route(method, pattern, family, handler, summary, **options))  # type: ignore[arg-type]
        return handler

    return register


FAMILY_PATHS: Sequence[tuple[Family, Sequence[str]]] = (
    ("v3", ("/v3/…",)),
    ("v2", ("/v2", "/v2/…")),
    (
        "settings",
        ("/v1/ui-settings", "/v1/conversation-settings", "/v1/rp-policy", "/v1/rp-mode", "/v1/rp-alert"),
    ),
    (
        "templates",
        (
            "/v1/session-templates",
            "/v1/session-templates/…",
            "/v1/session-configurations/preview",
            "/v1/session-configurations/apply",
        ),
    ),
    ("users", ("/v1/users", "/v1/users/…", "/v1/user-selection")),
    ("audit", ("/v1/traces",)),
    ("characters", ("/v1/characters", "/v1/characters/…", "/v1/character-selection")),
    ("world-books", ("/v1/world-books", "/v1/world-books/…", "/v1/world-book-selection")),
)
"""The paths of each family in the order they are tried; ``…`` stands for anything that follows."""


def family_of(path: str) -> Family:
    """Which family answers a raw path below the root; every path has one."""
    for family, patterns in FAMILY_PATHS:
        if any(_is_one(path, pattern) for pattern in patterns):
            return family
    return "presets"


def _is_one(path: str, pattern: str) -> bool:
    return path.startswith(pattern[:-1]) if pattern.endswith("…") else path == pattern


@attrs.frozen
class Router:
    """All routes of the contract."""

    routes: Sequence[Route]

    def find(self, method: str, path: str) -> tuple[Route, list[str]]:
        """The route of a request and its decoded ids.

        Raises:
            RequestError: 404, 405 or 400 in the words of the path's family.
        """
        matches = [(route, raw) for route in self.routes if (raw := route.match(path)) is not None]
        for route, raw in matches:
            if route.method == method:
                return route, [decode_segment(segment) for segment in raw]
        raise _no_route(family_of(path), is_known=bool(matches))


def _no_route(family: Family, *, is_known: bool) -> RequestError:
    if is_known and family in {"settings", "v2"}:
        return RequestError("this path doesn't take that method", code="METHOD_NOT_ALLOWED", status=405)
    code = "PLAY_NOT_FOUND" if family == "v2" else "NOT_FOUND"
    return RequestError("there is nothing at this path", code=code, status=404)
