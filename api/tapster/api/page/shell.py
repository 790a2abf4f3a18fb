"""What every view of the page shares: the language, rendering, redirects, refusals."""

from typing import Any, Final
from urllib.parse import quote, urlencode

import attrs
from quart import Response, has_request_context, render_template, request
from werkzeug.exceptions import HTTPException

from tapster.api.config import Config
from tapster.api.errors import error_answer
from tapster.engine.ecma import utf8
from tapster.engine.errors import FormatError, TapsterError
from tapster.runtime import RuntimeFault

from .texts import LOCALES, Texts

KINDS: Final = ("characters", "presets", "world_books", "users")
LOCALE_COOKIE: Final = "tapster_locale"
YEAR_S: Final = 365 * 24 * 3600
PER_PAGE: Final = 50


@attrs.frozen
class Shell:
    """Renders templates in the visitor's language."""

    config: Config

    async def page(self, template: str, *, status: int = 200, tab: str = "", **values: Any) -> Response:
        """A page, or a part of one."""
        texts = self.texts()
        html = await render_template(
            template, t=texts, tab=tab, kinds=KINDS, switch=language_switch(texts), segment=segment, **values
        )
        response = Response(utf8(html), status, content_type="text/html; charset=utf-8")
        if request.args.get("lang") in LOCALES:
            response.set_cookie(LOCALE_COOKIE, texts.locale, max_age=YEAR_S, samesite="Strict", httponly=True)
        return response

    def texts(self) -> Texts:
        """The language asked for here, else the visitor's last one, else the configured one."""
        for locale in (request.args.get("lang"), request.cookies.get(LOCALE_COOKIE)):
            if locale in LOCALES:
                return Texts(str(locale))
        return Texts(self.config.locale)

    async def refuse(self, error: TapsterError | RuntimeFault) -> Response:
        """A declared error as a person meets it."""
        answer = error_answer("own", error)
        response = await self._refusal(answer.status, answer.body["message"], answer.body["code"], slug_of(error))
        response.headers.update(answer.headers)
        return response

    async def fail(self, error: HTTPException) -> Response:
        """The framework's own refusals: no such page, no such method, a failure inside."""
        if not has_request_context():
            return Response("", error.code or 500)  # a websocket, which no page is for
        return await self._refusal(error.code or 500, "", error.name.upper().replace(" ", "_"))

    async def _refusal(self, status: int, message: str, code: str, slug: str | None = None) -> Response:
        template = "_error.html" if is_part() else "error.html"
        # In a part, the script puts it where notices go, whatever the target of the request was.
        shown: dict[str, Any] = {"error_status": status, "message": message, "code": code, "slug": slug}
        response = await self.page(template, status=status, **shown)
        if is_part():
            response.headers["HX-Reswap"] = "innerHTML"
        return response


def slug_of(error: TapsterError | RuntimeFault) -> str | None:
    """The check that a file failed, None for any other error."""
    return error.slug if isinstance(error, FormatError) else None


def is_part() -> bool:
    """Whether the page's script asks for a part of a page."""
    return "HX-Request" in request.headers


def go_to(path: str) -> Response:
    """A redirect that the page's script follows with the whole page."""
    if is_part():
        return Response("", 204, headers={"HX-Redirect": path})
    return Response("", 303, headers={"Location": path})


def segment(text: object) -> str:
    """A text as one segment of a path."""
    return quote(str(text), safe="")


def page_number() -> int:
    """Which page of a long list is asked for, from 1."""
    text = request.args.get("page", "")
    return max(1, int(text)) if text.isascii() and text.isdigit() and len(text) < 7 else 1


def language_switch(texts: Texts) -> str:
    """The query that leads to this very page in the other language."""
    kept = [(key, value) for key, value in request.args.items(multi=True) if key not in ("lang", "token")]
    return "?" + urlencode([*kept, ("lang", texts.other)])
