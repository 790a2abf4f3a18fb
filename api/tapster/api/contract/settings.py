"""Settings, roleplay mode and its alerts (spec/http §5.4)."""

from tapster.actors.contract import RpReading
from tapster.api.answers import Answer, ok
from tapster.engine.contract import (
    ConversationSettings,
    UiSettings,
    check_conversation_settings,
    check_ui_settings,
)
from tapster.engine.ecma import Json, trim
from tapster.engine.errors import RequestError
from tapster.engine.policy import BLOCK_REASON, RpIntent, check_rp_policy, rp_json

from .routing import KIB, Call, Route, route
from .values import query_session, session_id_of

ROUTES: list[Route] = []
UI_LIMIT = 1024
CONVERSATION_LIMIT = 512
POLICY_LIMIT = 16 * KIB
MODE_LIMIT = 16 * KIB


@route(ROUTES, "GET", "/v1/ui-settings", "settings", "Language and size of the page")
async def get_ui(call: Call) -> Answer:
    return ok(settings=(await ui_settings(call)).to_json())


@route(ROUTES, "PUT", "/v1/ui-settings", "settings", "Replace them", limit=UI_LIMIT)
async def put_ui(call: Call) -> Answer:
    settings = check_ui_settings(dict(call.body)).to_json()
    await call.tapster.settings.put("ui-settings", settings)
    return ok(settings=settings)


@route(ROUTES, "DELETE", "/v1/ui-settings", "settings", "Back to the defaults", limit=UI_LIMIT)
async def delete_ui(call: Call) -> Answer:
    await call.tapster.settings.delete("ui-settings")
    return ok(settings=UiSettings().to_json())


@route(ROUTES, "GET", "/v1/conversation-settings", "settings", "Sizes in a conversation")
async def get_conversation(call: Call) -> Answer:
    stored = await call.tapster.settings.get("conversation-settings")
    settings = ConversationSettings() if stored is None else check_conversation_settings(_members(stored))
    return ok(settings=settings.to_json())


@route(ROUTES, "PUT", "/v1/conversation-settings", "settings", "Replace them", limit=CONVERSATION_LIMIT)
async def put_conversation(call: Call) -> Answer:
    settings = check_conversation_settings(dict(call.body)).to_json()
    await call.tapster.settings.put("conversation-settings", settings)
    return ok(settings=settings)


@route(ROUTES, "DELETE", "/v1/conversation-settings", "settings", "Back to the defaults", limit=CONVERSATION_LIMIT)
async def delete_conversation(call: Call) -> Answer:
    await call.tapster.settings.delete("conversation-settings")
    return ok(settings=ConversationSettings().to_json())


@route(ROUTES, "GET", "/v1/rp-policy", "settings", "The text that tells a model what roleplay mode locks")
async def get_policy(call: Call) -> Answer:
    stored = await call.tapster.settings.get("rp-policy")
    return _policy(None if stored is None else stored["section"])


@route(ROUTES, "PUT", "/v1/rp-policy", "settings", "Replace it; blank means no text", limit=POLICY_LIMIT)
async def put_policy(call: Call) -> Answer:
    text = check_rp_policy(call.body.get("section"))
    section = text if trim(text) else ""
    await call.tapster.settings.put("rp-policy", {"schemaVersion": 1, "section": section})
    return _policy(section)


@route(ROUTES, "DELETE", "/v1/rp-policy", "settings", "Back to the default text", limit=POLICY_LIMIT)
async def delete_policy(call: Call) -> Answer:
    await call.tapster.settings.delete("rp-policy")
    return _policy(None)


@route(ROUTES, "GET", "/v1/rp-mode", "settings", "A session's roleplay mode")
async def get_mode(call: Call) -> Answer:
    return ok(**await _mode(call, await call.tapster.roleplay.get(query_session(call))))


@route(ROUTES, "PUT", "/v1/rp-mode", "settings", "Turn roleplay mode on or off", limit=MODE_LIMIT)
async def put_mode(call: Call) -> Answer:
    session_id = session_id_of(call.body.get("sessionId"))
    active = call.body.get("active")
    if not isinstance(active, bool):
        raise RequestError("active must be true or false")
    outcome, reading = await call.tapster.roleplay.set(session_id, active=active)
    return ok(outcome=outcome, **await _mode(call, reading))


@route(ROUTES, "GET", "/v1/rp-alert", "settings", "The tool call that roleplay mode blocked")
async def get_alert(call: Call) -> Answer:
    return ok(alert=await call.tapster.roleplay.alert(query_session(call), call.query.get("id")))


@route(ROUTES, "DELETE", "/v1/rp-alert", "settings", "Take the alert", limit=MODE_LIMIT)
async def delete_alert(call: Call) -> Answer:
    return ok(alert=await call.tapster.roleplay.take_alert(query_session(call), call.query.get("id")))


async def ui_settings(call: Call) -> UiSettings:
    """The page settings in force."""
    stored = await call.tapster.settings.get("ui-settings")
    return UiSettings() if stored is None else check_ui_settings(_members(stored))


def _members(stored: Json) -> dict[str, Json]:
    return {name: value for name, value in stored.items() if name != "schemaVersion"}


def _policy(section: str | None) -> Answer:
    shown = BLOCK_REASON if section is None else section
    return ok(section=shown, defaultSection=BLOCK_REASON, custom=section is not None)


async def _mode(call: Call, reading: RpReading) -> dict[str, Json]:
    follows = (await ui_settings(call)).rp_follow_character
    return {"rp": rp_json(reading.rp), "pending": _intent(reading.pending), "followCharacter": follows}


def _intent(intent: RpIntent | None) -> Json:
    if intent is None:
        return None
    return {"active": intent.active, "source": intent.source, "followSuppressed": intent.follow_suppressed}
