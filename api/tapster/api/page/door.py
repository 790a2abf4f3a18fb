"""Who may use the page: the peer and host checks, same-origin writes, and the token as a cookie when one is set."""

from typing import Final

import trio
from quart import Response, request

from tapster.api.config import Config
from tapster.api.facts import request_facts
from tapster.engine.contract import (
    SECURITY_HEADERS,
    RequestFacts,
    SecurityOptions,
    check_peer,
    equal_secrets,
    is_same_origin,
)
from tapster.engine.errors import RequestError

TOKEN_COOKIE: Final = "tapster_token"
SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
CONTENT_POLICY: Final = "default-src 'self'; img-src 'self' data:; style-src 'self'; script-src 'self'; base-uri 'none'"


class PageForbidden(RequestError):
    """A write from another site, or a visitor without the token."""

    code = "PAGE_FORBIDDEN"
    status = 403


class Door:
    """Checks every request of the page; a token in ``?token=`` becomes a cookie."""

    def __init__(self, config: Config) -> None:
        self._options = SecurityOptions.of(config.allowed_hosts, allow_remote_clients=config.allow_remote)
        self._token = config.token

    async def admit(self) -> Response | None:
        """Let a request pass, or answer it.

        Raises:
            RequestError: the first check that fails.
        """
        await trio.lowlevel.checkpoint()
        facts = request_facts(request.scope)
        check_peer(facts, self._options)
        self._check_origin(facts)
        return self._check_token()

    def _check_origin(self, facts: RequestFacts) -> None:
        if facts.method in SAFE and "origin" not in facts.headers:
            return
        if facts.headers.get("sec-fetch-site") == "cross-site" or not is_same_origin(facts):
            raise PageForbidden("the request comes from another site")

    def _check_token(self) -> Response | None:
        if self._token is None:
            return None
        given = request.args.get("token")
        if given is not None and equal_secrets(given, self._token):
            response = Response("", 303, headers={"Location": request.path})
            response.set_cookie(TOKEN_COOKIE, given, httponly=True, samesite="Strict")
            return response
        if not equal_secrets(request.cookies.get(TOKEN_COOKIE, ""), self._token):
            raise PageForbidden("open the page once with ?token=… (the configured server.token)")
        return None


async def with_security_headers(response: Response) -> Response:
    """The headers that every page carries."""
    await trio.lowlevel.checkpoint()
    for name, value in {**SECURITY_HEADERS, "Content-Security-Policy": CONTENT_POLICY}.items():
        response.headers.setdefault(name, value)
    return response
