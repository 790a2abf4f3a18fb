"""The page's routes; every one asks the runtime and renders, and keeps nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from quart import Blueprint, Response, render_template, request
from quart_trio import QuartTrio
from werkzeug.exceptions import RequestEntityTooLarge

from tapster.actors.tapster import Tapster
from tapster.api.answers import Attachment, to_response
from tapster.api.backing import Backing
from tapster.api.config import Config
from tapster.api.contract.v3 import answer_v3
from tapster.api.errors import error_answer
from tapster.api.shown import preview_json
from tapster.api.sse import last_event_id, stream_response
from tapster.engine.ecma import Json
from tapster.engine.errors import RequestError, TapsterError
from tapster.engine.projection import derive_messages
from tapster.runtime import RuntimeFault

from .door import Door
from .shown import messages_of, trace_view
from .texts import LOCALES, Texts

KINDS: Final = ("presets", "characters", "world_books", "users")
LOCALE_COOKIE: Final = "tapster_locale"
MAX_UPLOAD: Final = 64 * 1024 * 1024
YEAR_S: Final = 365 * 24 * 3600


def add_page(app: QuartTrio, tapster: Tapster, config: Config) -> None:
    """Put the page at the root of an application."""
    page = Page(tapster, config)
    blueprint = Blueprint(
        "page", __name__, template_folder="templates", static_folder="static", static_url_path="/static"
    )
    door = Door(config)
    blueprint.before_request(door.admit)
    blueprint.register_error_handler(TapsterError, page.refuse)
    blueprint.register_error_handler(RuntimeFault, page.refuse)
    blueprint.register_error_handler(RequestEntityTooLarge, page.too_large)
    for rule, methods, view in page.routes():
        blueprint.add_url_rule(rule, view.__name__, view, methods=methods)
    app.register_blueprint(blueprint)


class Page:
    """The views over one runtime."""

    def __init__(self, tapster: Tapster, config: Config) -> None:
        self._tapster = tapster
        self._backing = Backing(tapster)
        self._config = config

    def routes(self) -> list[tuple[str, list[str], Any]]:
        """Rule, methods and view of each page."""
        return [
            ("/", ["GET"], self.library),
            ("/library", ["GET"], self.library_lists),
            ("/library/import", ["POST"], self.import_files),
            ("/library/<kind>/<resource_id>/delete", ["POST"], self.delete),
            ("/library/<kind>/<resource_id>/export", ["GET"], self.export),
            ("/sessions", ["GET"], self.sessions),
            ("/sessions/new", ["POST"], self.new_session),
            ("/sessions/<session_id>", ["GET"], self.session),
            ("/sessions/<session_id>/bindings", ["POST"], self.bind),
            ("/sessions/<session_id>/messages", ["GET"], self.messages),
            ("/sessions/<session_id>/messages", ["POST"], self.send),
            ("/sessions/<session_id>/cancel", ["POST"], self.cancel),
            ("/sessions/<session_id>/preview", ["POST"], self.preview),
            ("/sessions/<session_id>/stream", ["GET"], self.stream),
            ("/sessions/<session_id>/traces", ["GET"], self.traces),
            ("/sessions/<session_id>/traces/<record_id>", ["GET"], self.trace),
        ]

    # Library ----------------------------------------------------------------------------------------------------

    async def library(self) -> Response:
        """Everything the library holds."""
        return await self._page("library.html", lists=await self._lists(), tab="library")

    async def library_lists(self) -> Response:
        """The lists alone, after a change."""
        return await self._page("_library.html", lists=await self._lists())

    async def import_files(self) -> Response:
        """Take files of any kind; each is taken whole or refused whole."""
        request.max_content_length = MAX_UPLOAD
        files = (await request.files).getlist("files")
        reports: list[Json] = []
        for file in files:
            name = file.filename or "file"
            try:
                reports.append(await self._backing.imports.import_file(name, file.read()))
            except TapsterError as error:
                reports.append({"fileName": name, "error": error.message, "code": error.code})
        return await self._page("_imported.html", reports=reports, lists=await self._lists())

    async def delete(self, kind: str, resource_id: str) -> Response:
        """Remove a resource and every use of it."""
        await self._part(kind).delete(resource_id)
        return await self._page("_library.html", lists=await self._lists())

    async def export(self, kind: str, resource_id: str) -> Response:
        """A resource as a file."""
        match kind:
            case "presets":
                download = await self._backing.presets.export(resource_id)
            case "characters":
                download = await self._backing.characters.export_png(resource_id)
            case "world_books":
                download = await self._backing.world_books.export(resource_id)
            case _:
                raise RequestError(f"{kind} can't be exported", status=404)
        return to_response(Attachment(download))

    # Sessions ---------------------------------------------------------------------------------------------------

    async def sessions(self) -> Response:
        """All sessions."""
        return await self._page("sessions.html", sessions=await self._backing.sessions.list(), tab="sessions")

    async def new_session(self) -> Response:
        """Begin a session and go to it."""
        created = await self._backing.sessions.create(None)
        return _go_to(f"/sessions/{created['id']}")

    async def session(self, session_id: str) -> Response:
        """A session: bindings, chat, preview."""
        shown = await self._backing.sessions.get(session_id)
        return await self._page(
            "session.html",
            session=shown,
            messages=messages_of(shown["messages"]),
            lists=await self._lists(),
            tab="sessions",
        )

    async def bind(self, session_id: str) -> Response:
        """Bind resources to the session."""
        form = await request.form
        patch: dict[str, Json] = {
            "presetId": form.get("presets") or None,
            "characterCardId": form.get("characters") or None,
            "userId": form.get("users") or None,
            "worldBookIds": form.getlist("world_books"),
        }
        await self._tapster.select(session_id, patch)
        return await self._page("_notice.html", notice="saved")

    async def messages(self, session_id: str) -> Response:
        """The transcript alone."""
        inspection = await self._tapster.history(session_id)
        return await self._page("_messages.html", messages=messages_of(derive_messages(inspection.events)))

    async def send(self, session_id: str) -> Response:
        """Say something."""
        text = (await request.form).get("text", "")
        if text.strip():
            await self._backing.sessions.send(session_id, text, mode="send")
        return await self.messages(session_id)

    async def cancel(self, session_id: str) -> Response:
        """Stop the turn under way."""
        await self._backing.sessions.cancel(session_id, keep_inbox=False)
        return await self.messages(session_id)

    async def preview(self, session_id: str) -> Response:
        """What would be sent now."""
        draft = (await request.form).get("text", "").strip() or None
        assembled = await self._tapster.preview(session_id, draft)
        return await self._page("_preview.html", preview=preview_json(assembled))

    async def stream(self, session_id: str) -> Response:
        """Live events of the session, for the page's own script."""
        after = last_event_id(request.headers.get("Last-Event-ID"))
        source = await self._backing.sessions.subscribe(session_id, after)
        return stream_response(lambda: source)

    # Traces -----------------------------------------------------------------------------------------------------

    async def traces(self, session_id: str) -> Response:
        """The records of a session's requests, newest first."""
        answer = await answer_v3(self._backing, "GET", f"/sessions/{session_id}/assemblies")
        records = list(reversed(answer.body["records"]))
        return await self._page("traces.html", session_id=session_id, records=records, tab="sessions")

    async def trace(self, session_id: str, record_id: str) -> Response:
        """One record, its bodies verified against the history."""
        answer = await answer_v3(self._backing, "GET", f"/sessions/{session_id}/assemblies/{record_id}")
        view = trace_view(answer.body["record"])
        return await self._page("trace.html", session_id=session_id, trace=view, tab="sessions")

    # Shared -----------------------------------------------------------------------------------------------------

    async def refuse(self, error: TapsterError | RuntimeFault) -> Response:
        """A declared error as a person meets it."""
        status = error_answer("own", error).status
        return await self._page("error.html", status=status, message=str(error), code=error.code)

    async def too_large(self, error: RequestEntityTooLarge) -> Response:
        """An upload over the limit."""
        message = f"the files have more than {MAX_UPLOAD // 2**20} MiB together; import fewer at once"
        return await self._page("error.html", status=413, message=message, code="REQUEST_BODY_TOO_LARGE")

    async def _page(self, template: str, *, status: int = 200, tab: str = "", **values: Any) -> Response:
        texts = self._texts()
        html = await render_template(template, t=texts, tab=tab, kinds=KINDS, **values)
        response = Response(html, status, content_type="text/html; charset=utf-8")
        if request.args.get("lang") in LOCALES:
            response.set_cookie(LOCALE_COOKIE, texts.locale, max_age=YEAR_S, samesite="Strict", httponly=True)
        return response

    def _texts(self) -> Texts:
        asked = request.args.get("lang") or request.cookies.get(LOCALE_COOKIE) or self._config.locale
        return Texts(asked)

    async def _lists(self) -> Mapping[str, Json]:
        backing = self._backing
        return {
            "presets": await backing.presets.list(),
            "characters": (await backing.characters.list())["characters"],
            "world_books": await backing.world_books.list(),
            "users": await backing.users.list(),
        }

    def _part(self, kind: str) -> Any:
        if kind not in KINDS:
            raise RequestError(f"there is no kind {kind[:40]}", code="NOT_FOUND", status=404)
        return getattr(self._backing, kind)


def _go_to(path: str) -> Response:
    """A redirect that htmx follows with the whole page."""
    if request.headers.get("HX-Request"):
        return Response("", 204, headers={"HX-Redirect": path})
    return Response("", 303, headers={"Location": path})
