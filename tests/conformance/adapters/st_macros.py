"""st_macros.jsonl: ``substituteParams`` of the new engine."""

from collections.abc import Callable
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from tapster.engine.text.macros import CardFields, Group, MacroContext, MacroMessage, expand
from tapster.engine.text.string_hash import string_hash
from tests.conformance.compare import differences
from tests.conformance.registry import adapter

Json = Any


def tape(values: list[float]) -> Callable[[], float]:
    remaining = iter(values)
    return lambda: next(remaining)


def moment(text: str, zone: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).astimezone(ZoneInfo(zone))


def card_of(given: Json) -> CardFields:
    depth = given.get("depth_prompt") or {}
    return CardFields(
        description=given.get("description") or "",
        personality=given.get("personality") or "",
        scenario=given.get("scenario") or "",
        first_message=given.get("first_mes") or "",
        alternate_greetings=tuple(given.get("alternate_greetings") or ()),
        message_examples=given.get("mes_example") or "",
        creator_notes=given.get("creator_notes") or "",
        system_prompt=given.get("system_prompt") or "",
        post_history_instructions=given.get("post_history_instructions") or "",
        version=given.get("character_version") or "",
        depth_prompt=depth.get("prompt") or "",
    )


def message_of(given: Json) -> MacroMessage:
    sent = given.get("send_date")
    swipes = given.get("swipes")
    return MacroMessage(
        text=given["mes"],
        is_user=bool(given.get("is_user")),
        is_system=bool(given.get("is_system")),
        sent_at=moment(sent, "UTC") if sent else None,
        swipe_count=None if swipes is None else len(swipes),
        swipe_index=given.get("swipe_id"),
    )


def group_of(given: Json) -> tuple[Json, Group | None]:
    characters = given.get("characters") or []
    group = next((item for item in given.get("groups") or [] if item["id"] == given.get("selected_group")), None)
    if group is None:
        return given.get("character") or {}, None
    names = {character["avatar"]: character["name"] for character in characters}
    members = tuple(names[avatar] for avatar in group["members"])
    muted = frozenset(names[avatar] for avatar in group["disabled_members"])
    return characters[given.get("group_speaker") or 0], Group(members, muted)


def context_of(given: Json) -> MacroContext:
    speaker, group = group_of(given)
    options = given.get("options") or {}
    metadata = given.get("chat_metadata") or {}
    chat_id = metadata.get("main_chat") or given.get("chat_id") or ""
    return MacroContext(
        now=moment(given.get("now") or "2024-03-09T14:05:09Z", given.get("tz") or "UTC"),
        random=tape(given.get("random") or []),
        user=options.get("name1Override", given.get("user") or ""),
        char=options.get("name2Override", speaker.get("name") or ""),
        persona=given.get("persona_description") or "",
        card=card_of(speaker) if options.get("replaceCharacterCard", True) else None,
        group=group,
        group_override=options.get("groupOverride"),
        original=options.get("original"),
        chat=tuple(message_of(item) for item in given.get("chat") or []),
        chat_id=chat_id,
        chat_id_hash=metadata.get("chat_id_hash") or string_hash(chat_id),
        pick_reroll_seed=metadata.get("pick_reroll_seed"),
        first_included_message=metadata.get("lastInContextMessageId"),
        variables=given.get("variables") or {},
        global_variables=given.get("global_variables") or {},
        outlets=given.get("outlets") or {},
        input_text=given.get("textarea") or "",
        generation_type=given.get("last_generation_type") or "",
        model=given.get("model") or "",
        max_context_tokens=given.get("max_context") or 0,
        max_response_tokens=given.get("max_response") or 0,
        dynamic=options.get("dynamicMacros") or {},
    )


def compare(expected: Json, actual: Json) -> list[str]:
    """All but the informational old engine."""
    return differences({key: value for key, value in expected.items() if key != "legacy_engine"}, actual)


@adapter("st_macros", compare=compare)
def run(given: Json) -> Json:
    result = expand(given["content"], context_of(given))
    return {
        "output": result.text,
        "variables": dict(result.variables),
        "global_variables": dict(result.global_variables),
        "random_consumed": len(result.draws),
    }
