"""Who may use the page: the peer and host checks, same-origin writes, and the token as a cookie when one is set."""

from typing import Final

import trio
from quart import Response, request

from tapster.api.bodies import BodyTooLarge, discard_body
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
ENTER_PATH: Final = "/enter"
IMPORT_PATH: Final = "/library/import"
SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
MAX_UPLOAD: Final = 64 * 1024 * 1024
MAX_FORM: Final = 8 * 1024 * 1024
PAGE_HEADERS: Final = {
    **SECURITY_HEADERS,
    # With no-referrer a browser sends `Origin: null` with every plain form, and the form would be taken for foreign.
    "Referrer-Policy": "same-origin",
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'",
}


class PageForbidden(RequestError):
    """A write from another site."""

    code = "PAGE_FORBIDDEN"
    status = 403


class TokenRequired(RequestError):
    """A visitor without the token, or with a wrong one."""

    code = "TOKEN_REQUIRED"
    status = 401


class LengthRequired(RequestError):
    """A form that doesn't say how long it is."""

    code = "LENGTH_REQUIRED"
    status = 411


class Door:
    """Checks every request of the page; the token, given once, becomes a cookie."""

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
        check_origin(facts)
        if facts.method not in SAFE:
            await check_length(MAX_UPLOAD if request.path == IMPORT_PATH else MAX_FORM)
        return None if self._token is None else self._check_token(self._token)

    async def enter(self) -> Response:
        """Take the token from its form, and go on to the page that was wanted.

        Raises:
            TokenRequired: it's another one.
        """
        form = await request.form
        if self._token is not None and not equal_secrets(form.get("token", ""), self._token):
            raise TokenRequired("this isn't the token of this server")
        response = Response("", 303, headers={"Location": own_path(form.get("next", ""))})
        if self._token is not None:
            _remember(response, self._token)
        return response

    def _check_token(self, token: str) -> Response | None:
        given = request.args.get("token")
        if given is not None and equal_secrets(given, token):
            response = Response("", 303, headers={"Location": own_path(request.path)})
            _remember(response, token)
            return response
        is_known = equal_secrets(request.cookies.get(TOKEN_COOKIE, ""), token)
        if not is_known and request.path != ENTER_PATH and not request.path.startswith("/static/"):
            raise TokenRequired("this server asks for its token (the configured server.token)")
        return None


def check_origin(facts: RequestFacts) -> None:
    """Refuse what another site sends; a plain link from elsewhere may read.

    Raises:
        PageForbidden: it comes from another site.
    """
    if facts.method in SAFE and "origin" not in facts.headers:
        return
    if facts.headers.get("sec-fetch-site", "").strip().lower() == "cross-site" or not is_same_origin(facts):
        raise PageForbidden("the request comes from another site")


async def check_length(limit: int) -> None:
    """Refuse a form over its limit before it's read.

    Raises:
        LengthRequired: it has no length.
        BodyTooLarge: it's over the limit.
    """
    declared = request.content_length
    if declared is None:
        raise LengthRequired("a form must say its length (Content-Length)")
    if declared > limit:
        # Read to the end: a browser that is still sending would otherwise show a broken connection.
        await discard_body(request)
        raise BodyTooLarge(f"the form has {declared} bytes, at most {limit} are taken at once")


def own_path(path: str) -> str:
    """A path of this site, the start page for anything else."""
    is_own = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if is_own else "/"


async def with_page_headers(response: Response) -> Response:
    """The headers that everything of the page carries."""
    await trio.lowlevel.checkpoint()
    is_asset = request.path.startswith("/static/")
    for name, value in PAGE_HEADERS.items():
        if is_asset and name == "Cache-Control":
            continue
        if response.mimetype == "text/html" or name not in response.headers:
            response.headers[name] = value
    return response


def _remember(response: Response, token: str) -> None:
    response.set_cookie(TOKEN_COOKIE, token, httponly=True, samesite="Strict")
