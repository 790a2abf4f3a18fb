"""The facts of an HTTP request that the checks and the routing look at, free of any framework."""

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import attrs

from tapster.engine.contract import RequestFacts

Scope = Mapping[str, Any]


def raw_path(scope: Scope) -> str:
    """The path as the client wrote it, still percent-encoded and without the query."""
    target: bytes = scope.get("raw_path") or scope["path"].encode()
    text = target.decode("latin-1")
    path = text if text.startswith("/") else urlsplit(text).path
    return path.partition("?")[0]


def first_values(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """The first value of each header, by lower-case name."""
    values: dict[str, str] = {}
    for name, value in headers:
        values.setdefault(name.decode("latin-1").lower(), value.decode("latin-1"))
    return values


def request_facts(scope: Scope) -> RequestFacts:
    """What the security checks look at."""
    client = scope.get("client")
    return RequestFacts(
        method=scope["method"],
        path=raw_path(scope),
        peer=client[0] if client else None,
        headers=first_values(scope["headers"]),
    )


@attrs.frozen
class Query:
    """A query string; the first value of a name counts."""

    values: Mapping[str, str]

    @classmethod
    def of(cls, scope: Scope) -> "Query":
        """The query of a request."""
        values: dict[str, str] = {}
        text = scope["query_string"].decode("latin-1")
        for name, value in parse_qsl(text, keep_blank_values=True, errors="replace"):
            values.setdefault(name, value)
        return cls(values)

    def get(self, name: str) -> str | None:
        """A value, None when the name isn't there."""
        return self.values.get(name)
