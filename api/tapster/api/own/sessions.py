"""Sessions over HTTP: list, create, read, send, cancel, preview, live events."""

from collections.abc import Mapping
from typing import Literal

from quart import Response

from tapster.api.answers import Answer
from tapster.api.sse import last_event_id, stream_response
from tapster.engine.activation.explanations import Language
from tapster.engine.ecma import Json
from tapster.engine.errors import RequestError

from .routing import OwnCall, OwnRoute, own_route

ROUTES: list[OwnRoute] = []
LIMIT = 256 * 1024
MAX_TEXT = 200_000
MODES: dict[Json, Literal["followup", "steer", "send"]] = {"followup": "followup", "steer": "steer", "send": "send"}
LANGUAGES: dict[Json, Language] = {"en": "en", "zh": "zh"}


@own_route(ROUTES, "GET", "/sessions", "All sessions, newest first", "sessions")
async def list_sessions(call: OwnCall) -> Answer:
    return Answer({"sessions": list(await call.tapster.sessions.list())})


@own_route(ROUTES, "POST", "/sessions", "Begin a session; `id` is optional", "sessions", limit=LIMIT, success=201)
async def create_session(call: OwnCall) -> Answer:
    given = call.body.get("id")
    if given is not None and not isinstance(given, str):
        raise RequestError("id must be a string, or be left out")
    return Answer({"session": await call.tapster.sessions.create(given)}, 201)


@own_route(ROUTES, "GET", "/sessions/:sessionId/settings", "How a session activates its world books", "sessions")
async def get_settings(call: OwnCall) -> Answer:
    return Answer({"settings": await call.tapster.sessions.settings(call.ids[0])})


@own_route(
    ROUTES,
    "POST",
    "/sessions/:sessionId/settings",
    "Change that: `{mode?, quirks?, cardScripts?, scan?}`; what is left out stays",
    "sessions",
    limit=LIMIT,
)
async def set_settings(call: OwnCall) -> Answer:
    return Answer({"settings": await call.tapster.sessions.settings(call.ids[0], dict(call.body))})


@own_route(ROUTES, "GET", "/sessions/:sessionId", "A session with its messages", "sessions")
async def get_session(call: OwnCall) -> Answer:
    return Answer({"session": await call.tapster.sessions.get(call.ids[0])})


@own_route(
    ROUTES,
    "POST",
    "/sessions/:sessionId/messages",
    "Say something: `{text, mode?}`",
    "sessions",
    limit=LIMIT,
    success=202,
)
async def send_message(call: OwnCall) -> Answer:
    text, mode = call.body.get("text"), call.body.get("mode", "send")
    if not isinstance(text, str) or not text.strip() or len(text) > MAX_TEXT:
        raise RequestError(f"text must be a string that isn't blank, of at most {MAX_TEXT} characters")
    if not isinstance(mode, str) or mode not in MODES:
        raise RequestError("mode must be followup, steer or send")
    return Answer({"message": await call.tapster.sessions.send(call.ids[0], text, mode=MODES[mode])}, 202)


@own_route(ROUTES, "POST", "/sessions/:sessionId/cancel", "Stop the turn under way", "sessions", limit=LIMIT)
async def cancel_turn(call: OwnCall) -> Answer:
    await call.tapster.sessions.cancel(call.ids[0], keep_inbox=call.body.get("keepInbox") is True)
    return Answer({"cancelled": True})


@own_route(
    ROUTES, "POST", "/sessions/:sessionId/preview", "What would be sent now: `{draft?}`", "sessions", limit=LIMIT
)
async def preview(call: OwnCall) -> Answer:
    return Answer({"preview": await call.tapster.sessions.preview(call.ids[0], _draft(call.body))})


@own_route(
    ROUTES,
    "POST",
    "/sessions/:sessionId/explain",
    "Why each prompt and entry is in or out: `{draft?, lang?}`",
    "sessions",
    limit=LIMIT,
)
async def explain(call: OwnCall) -> Answer:
    language = call.body.get("lang", "en")
    if not isinstance(language, str) or language not in LANGUAGES:
        raise RequestError("lang must be en or zh, or be left out")
    draft = _draft(call.body)
    return Answer({"explanation": await call.tapster.sessions.explain(call.ids[0], draft, LANGUAGES[language])})


@own_route(
    ROUTES,
    "GET",
    "/sessions/:sessionId/events",
    "Live events and chunks; resume with Last-Event-ID",
    "sessions",
    media_type="text/event-stream",
)
async def events(call: OwnCall) -> Response:
    after = last_event_id(call.facts.headers.get("last-event-id") or call.query.get("after"))
    # Opened and subscribed before the stream begins, so that what goes wrong is still a refusal.
    source = await call.tapster.sessions.subscribe(call.ids[0], after)
    return stream_response(lambda: source)


def _draft(body: Mapping[str, Json]) -> str | None:
    draft = body.get("draft")
    if draft is not None and (not isinstance(draft, str) or len(draft) > MAX_TEXT):
        raise RequestError(f"draft must be a string of at most {MAX_TEXT} characters, or be left out")
    return draft
