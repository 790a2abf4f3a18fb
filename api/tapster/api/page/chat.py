"""The pages of sessions: the list, bindings, chat, preview, and the live stream."""

from collections.abc import Mapping
from typing import Final, final

import attrs
from quart import Response, request

from tapster.actors.session.embedded import embedded_key
from tapster.actors.tapster import Tapster
from tapster.api.backing import Backing
from tapster.api.own.sessions import MAX_TEXT
from tapster.api.shown import preview_json
from tapster.api.sse import last_event_id, stream_response
from tapster.engine.activation import ACTIVATION_MODES
from tapster.engine.ecma import Json
from tapster.engine.errors import RequestError

from .forms import with_newlines
from .library import LibraryPages, pages
from .shell import PER_PAGE, Shell, go_to, is_part, page_number, segment
from .shown import preview_view, time_text, transcript

SHOWN_MESSAGES: Final = 200
"""The newest ones; a click shows all."""

BINDINGS: Final = {"characters": "characterCardId", "presets": "presetId", "users": "userId"}


@final
@attrs.frozen
class SessionPages:
    """Views over sessions."""

    shell: Shell
    tapster: Tapster
    backing: Backing
    library: LibraryPages

    async def sessions(self) -> Response:
        """All sessions, newest first, with the names of what they have bound."""
        listed = await self.backing.sessions.list()
        number = min(page_number(), pages(listed))
        shown = listed[(number - 1) * PER_PAGE : number * PER_PAGE]
        names = await self._names()
        rows = [{**session, **await self._bound(session["id"], names)} for session in shown]
        return await self.shell.page(
            "sessions.html", sessions=rows, number=number, pages=pages(listed), time_text=time_text, tab="sessions"
        )

    async def new_session(self) -> Response:
        """Begin a session and go to it."""
        created = await self.backing.sessions.create(None)
        return go_to(f"/sessions/{segment(created['id'])}")

    async def session(self, session_id: str) -> Response:
        """A session: bindings, chat, preview."""
        shown = await self.backing.sessions.get(session_id)
        return await self.shell.page(
            "session.html",
            session=shown,
            chosen={kind: shown["selection"][member] for kind, member in BINDINGS.items()},
            chat=await self._transcript(session_id),
            lists=await self.library.lists(),
            settings=await self.backing.sessions.settings(session_id),
            modes=ACTIVATION_MODES,
            tab="sessions",
        )

    async def bind(self, session_id: str) -> Response:
        """Bind resources to the session, and choose how its world books are activated."""
        await self._must_exist(session_id)
        form = await request.form
        patch: dict[str, Json] = {member: form.get(kind) or None for kind, member in BINDINGS.items()}
        patch["worldBookIds"] = form.getlist("world_books")
        await self.tapster.select(session_id, patch)
        if "mode" in form:
            await self.backing.sessions.settings(session_id, {"mode": form["mode"]})
        if is_part():
            return await self.shell.page("_notice.html", notice="bound")
        return go_to(f"/sessions/{segment(session_id)}")

    async def messages(self, session_id: str) -> Response:
        """The transcript alone."""
        return await self.shell.page("_messages.html", chat=await self._transcript(session_id))

    async def send(self, session_id: str) -> Response:
        """Say something; a running turn takes it up at its next step."""
        text = _text(await request.form)
        if text.strip():
            await self.backing.sessions.send(session_id, text, mode="send")
        return await self._after_change(session_id)

    async def cancel(self, session_id: str) -> Response:
        """Stop the turn under way; what it said so far stays."""
        await self.backing.sessions.cancel(session_id, keep_inbox=False)
        return await self._after_change(session_id)

    async def preview(self, session_id: str) -> Response:
        """What would be sent now."""
        await self._must_exist(session_id)
        draft = _text(await request.form)
        assembled = await self.tapster.preview(session_id, draft if draft.strip() else None)
        view = await self.tapster.ports.threads.run(lambda: preview_view(preview_json(assembled)), share=session_id)
        return await self.shell.page("_preview.html", preview=view, has_draft=bool(draft.strip()))

    async def stream(self, session_id: str) -> Response:
        """Live events of the session, for the page's own script; it says which seq it knows next."""
        after = last_event_id(request.headers.get("Last-Event-ID"))
        known = last_event_id(request.args.get("from"))
        if after is None and known is not None:
            after = known - 1
        source = await self.backing.sessions.subscribe(session_id, after)
        return stream_response(lambda: source)

    async def _after_change(self, session_id: str) -> Response:
        return await self.messages(session_id) if is_part() else go_to(f"/sessions/{segment(session_id)}")

    async def _transcript(self, session_id: str) -> Mapping[str, Json]:
        header = await self.tapster.host.session(session_id).header()
        events = (await self.tapster.history(session_id)).events
        limit = None if request.args.get("all") else SHOWN_MESSAGES
        return transcript(events, events[header.seed_length :], limit=limit)

    async def _must_exist(self, session_id: str) -> None:
        await self.tapster.host.session(session_id).header()

    async def _names(self) -> Mapping[str, str]:
        lists = await self.library.lists()
        return {item["id"]: item["name"] for items in lists.values() for item in items}

    async def _bound(self, session_id: str, names: Mapping[str, str]) -> Mapping[str, Json]:
        selection = await self.tapster.library.selections.get(embedded_key(session_id))
        bound = (selection.character_card_id, selection.preset_id, selection.user_id, *selection.world_book_ids)
        card, *others = (names.get(each) if each is not None else None for each in bound)
        return {"card": card, "others": [name for name in others if name is not None]}


def _text(form: Mapping[str, str]) -> str:
    text = with_newlines(form.get("text", ""))
    if len(text) > MAX_TEXT:
        raise RequestError(f"a message has at most {MAX_TEXT} characters; this one has {len(text)}", status=413)
    return text
