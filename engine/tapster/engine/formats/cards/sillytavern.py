"""What SillyTavern makes of a card: the JSON it stores on import, and the one it lists.

Source: the vectors of st_cards (SillyTavern 1.19.0).
"""

from collections.abc import Mapping
from typing import Any

from tapster.engine.ecma import Json, is_record, parse_json, stringify, trim
from tapster.engine.errors import FormatError
from tapster.engine.formats.fields import either, is_truthy, text_of

from .file_names import safe_file_name

_ABSENT: Any = object()
_PLACEHOLDER = "Creator's notes go here."
_DATA_MEMBERS: Mapping[str, str] = {
    "name": "name",
    "description": "description",
    "personality": "personality",
    "scenario": "scenario",
    "first_mes": "first_mes",
    "mes_example": "mes_example",
    "talkativeness": "extensions.talkativeness",
    "fav": "extensions.fav",
    "tags": "tags",
}
"""Member at the root of a stored card → where versions 2 and 3 keep it in ``data``."""
_V1_TEXTS = ("description", "personality", "first_mes", "mes_example", "scenario")
_PYGMALION = {
    "description": "char_persona",
    "first_mes": "char_greeting",
    "mes_example": "example_dialogue",
    "scenario": "world_scenario",
}
_PYGMALION_KEPT = ("creatorcomment", "creator_notes", "talkativeness", "creator", "tags")
_DEFAULT_TALKATIVENESS = 0.5


def import_png_json(value: Json, *, chat_stamp: str, now: str) -> dict[str, Json] | None:
    """The JSON stored for a card found in a PNG; None when SillyTavern stores nothing.

    ``chat_stamp`` is the moment as its chat names have it (``2024-03-09@14h05m09s000ms``), ``now`` in ISO 8601.

    Raises:
        FormatError: ``card-not-object``, ``field-not-string`` where SillyTavern fails.
    """
    if value is None:
        raise FormatError("card-not-object", "a character card is a JSON object")
    card = value if is_record(value) else {}
    name = _file_safe_name(card)
    if "spec" in card:
        return _import_spec(card, name, chat_stamp, now)
    return _import_v1({**card, "name": name}, name, chat_stamp, now)


def import_json(value: Json, *, chat_stamp: str, now: str) -> dict[str, Json] | None:
    """The JSON stored for a card in a JSON file; None when SillyTavern stores nothing.

    Raises:
        FormatError: ``card-not-object``, ``field-not-string`` where SillyTavern fails.
    """
    if value is None:
        raise FormatError("card-not-object", "a character card is a JSON object")
    card = value if is_record(value) else {}
    if "spec" in card:
        return _import_spec(card, _file_safe_name(card), chat_stamp, now)
    if "name" in card:
        name = _safe(card["name"])
        return _import_v1({**card, "name": name}, name, chat_stamp, now)
    if "char_name" in card:
        name = _safe(card["char_name"])
        fields = {member: card.get(source) for member, source in _PYGMALION.items()}
        kept = {
            key: card[key]
            for key in ("creatorcomment", "creator_notes", "talkativeness", "creator", "tags")
            if key in card
        }
        return _import_v1({**kept, **fields}, name, chat_stamp, now, chat_name="undefined")
    return None


def list_card(value: Json, *, chat_stamp: str, now: str) -> Json:
    """The card as SillyTavern's list shows it: version 2 fields filled, the stored ones kept.

    Raises:
        FormatError: ``card-not-object`` where SillyTavern fails.
    """
    if isinstance(value, list):
        return value
    if not is_record(value):
        raise FormatError("card-not-object", "a character card is a JSON object")
    if "spec" in value:
        return _read_data(dict(value), chat_stamp)
    listed = _to_v2(value, chat_stamp)
    if not is_truthy(listed.get("create_date")):
        listed["create_date"] = now
    return listed


def png_texts(card_text: str) -> list[tuple[str, str]]:
    """(keyword, text) of the chunks SillyTavern writes for a card: as given, and as version 3 where it is JSON."""
    try:
        value = parse_json(card_text)
    except FormatError:
        return [("chara", card_text)]
    if is_record(value):
        value = {**value, "spec": "chara_card_v3", "spec_version": "3.0"}
    elif not isinstance(value, list):
        return [("chara", card_text)]
    return [("chara", card_text), ("ccv3", stringify(value))]


def _file_safe_name(card: Mapping[str, Json]) -> str:
    data = card.get("data")
    inner = data.get("name") if isinstance(data, dict) else None
    return _safe(either(inner, card.get("name")))


def _safe(value: Json) -> str:
    if not isinstance(value, str):
        raise FormatError("field-not-string", "the card's name must be a text")
    return safe_file_name(value)


def _import_spec(card: Mapping[str, Json], name: str, chat_stamp: str, now: str) -> dict[str, Json]:
    stored: dict[str, Json] = {**card, "name": name, "fav": False}
    stored.pop("chat", None)
    given = card.get("data")
    data: Json = dict(given) if isinstance(given, dict) else (given if isinstance(given, list) else {})
    if is_record(data):
        if is_truthy(data.get("name")):
            data["name"] = name
        extensions = data.get("extensions")
        if not isinstance(extensions, list):
            data["extensions"] = {**(extensions if is_record(extensions) else {}), "fav": False}
    stored["data"] = data
    stored = _read_data(stored, chat_stamp)
    stored["create_date"] = now
    return stored


def _read_data(card: dict[str, Json], chat_stamp: str) -> dict[str, Json]:
    """The root members of a version 2 or 3 card taken over from its ``data``."""
    if "data" not in card:
        return card
    card.pop("json_data", None)
    for member, path in _DATA_MEMBERS.items():
        value = _at(card["data"], path)
        if value is not _ABSENT:
            card[member] = value
    if card.get("chat") is None:
        card["chat"] = f"{_shown(card)} - {chat_stamp}"
    return card


def _at(value: Json, path: str) -> Json:
    for key in path.split("."):
        if not is_record(value) or key not in value:
            return _ABSENT
        value = value[key]
    return value


def _shown(card: Mapping[str, Json]) -> str:
    return text_of(card["name"]) if "name" in card else "undefined"


def _import_v1(
    card: Mapping[str, Json], name: str, chat_stamp: str, now: str, *, chat_name: str | None = None
) -> dict[str, Json]:
    notes = card.get("creator_notes")
    if is_truthy(notes):
        if not isinstance(notes, str):
            raise FormatError("field-not-string", "the card's 'creator_notes' must be a text")
        notes = notes.replace(_PLACEHOLDER, "", 1)
    kept: dict[str, Json] = {"name": name}
    for member in _V1_TEXTS:
        kept[member] = _or(card.get(member), "")
    kept["creatorcomment"] = _or(_or(card.get("creatorcomment"), notes), "")
    kept["avatar"] = "none"
    kept["chat"] = f"{name if chat_name is None else chat_name} - {chat_stamp}"
    kept["create_date"] = now
    kept["talkativeness"] = _or(card.get("talkativeness"), _DEFAULT_TALKATIVENESS)
    kept["creator"] = _or(card.get("creator"), "")
    kept["tags"] = _or(card.get("tags"), "")
    return _to_v2(kept, chat_stamp)


def _or(value: Json, default: Json) -> Json:
    return default if value is None else value


def _to_v2(card: Mapping[str, Json], chat_stamp: str) -> dict[str, Json]:
    """A version 1 card with its version 2 twin in ``data``; what it does not know stays at the root."""
    texts = {
        member: card.get(member) or ""
        for member in ("description", "personality", "scenario", "first_mes", "mes_example")
    }
    notes = card.get("creatorcomment") or ""
    given_tags = card.get("tags")
    tags = _split(given_tags) if isinstance(given_tags, str) else either(given_tags, [])
    talkativeness = _or(card.get("talkativeness"), _DEFAULT_TALKATIVENESS)
    favourite = card.get("fav") in ("true", ["true"])
    named = {"name": card["name"]} if "name" in card else {}
    data = {
        **named,
        **texts,
        "creator_notes": notes,
        "system_prompt": "",
        "post_history_instructions": "",
        "tags": tags,
        "creator": either(card.get("creator"), ""),
        "character_version": "",
        "alternate_greetings": [],
        "extensions": {
            "talkativeness": talkativeness,
            "fav": favourite,
            "world": "",
            "depth_prompt": {"prompt": "", "depth": 4, "role": "system"},
        },
    }
    chat = card.get("chat")
    return {
        **card,
        **texts,
        "creatorcomment": notes,
        "avatar": "none",
        "chat": f"{_shown(card)} - {chat_stamp}" if chat is None else chat,
        "talkativeness": talkativeness,
        "fav": favourite,
        "tags": tags,
        "spec": "chara_card_v2",
        "spec_version": "2.0",
        "data": data,
    }


def _split(text: str) -> list[str]:
    return [part for item in text.split(",") if (part := trim(item))]
