"""A session's selection: which preset, card, persona and books it has bound.

Source: spec/loader §2.
"""

import re
from collections.abc import Iterable

import attrs

from tapster.engine.ecma import Json, is_record, is_safe_integer, utf16_length
from tapster.engine.errors import FormatError
from tapster.engine.limits import SELECTION_MAX_BOOKS, SELECTION_MAX_ID_LENGTH

from .rp import RpState, normalize_rp, rp_json

_SESSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,199}")


@attrs.frozen
class CharacterOptions:
    """How the bound card is used; an absent option has the default of its reader."""

    greeting_index: int | None = None
    prefer_system_prompt: bool | None = None
    prefer_post_history: bool | None = None


@attrs.frozen
class Selection:
    """What a session has bound."""

    preset_id: str | None = None
    character_card_id: str | None = None
    user_id: str | None = None
    world_book_ids: tuple[str, ...] = ()
    character: CharacterOptions = attrs.field(factory=CharacterOptions)
    rp: RpState = attrs.field(factory=RpState)


def normalize_selection(value: Json) -> Selection:
    """The selection a JSON value stands for; unusable members fall back, unknown ones are dropped."""
    record: dict[str, Json] = value if is_record(value) else {}
    return Selection(
        preset_id=_resource_id(record.get("presetId")),
        character_card_id=_resource_id(record.get("characterCardId")),
        user_id=_resource_id(record.get("userId")),
        world_book_ids=_book_ids(record.get("worldBookIds")),
        character=_character_options(record.get("character")),
        rp=normalize_rp(record.get("rp")),
    )


def selection_json(selection: Selection) -> Json:
    """The selection as its document holds it."""
    return {
        "presetId": selection.preset_id,
        "characterCardId": selection.character_card_id,
        "userId": selection.user_id,
        "worldBookIds": list(selection.world_book_ids),
        "character": _options_json(selection.character),
        "rp": rp_json(selection.rp),
    }


def _options_json(options: CharacterOptions) -> Json:
    members = {
        "greetingIndex": options.greeting_index,
        "preferCharacterSystemPrompt": options.prefer_system_prompt,
        "preferCharacterPostHistory": options.prefer_post_history,
    }
    return {key: value for key, value in members.items() if value is not None}


def _resource_id(value: Json) -> str | None:
    return value if isinstance(value, str) and 0 < utf16_length(value) <= SELECTION_MAX_ID_LENGTH else None


def _book_ids(value: Json) -> tuple[str, ...]:
    items: Iterable[Json] = value if isinstance(value, list) else ()
    valid = (item for item in items if _resource_id(item) is not None)
    return tuple(dict.fromkeys(valid))[:SELECTION_MAX_BOOKS]


def _character_options(value: Json) -> CharacterOptions:
    record: dict[str, Json] = value if is_record(value) else {}
    return CharacterOptions(
        greeting_index=_index(record.get("greetingIndex")),
        prefer_system_prompt=_boolean(record.get("preferCharacterSystemPrompt")),
        prefer_post_history=_boolean(record.get("preferCharacterPostHistory")),
    )


def _index(value: Json) -> int | None:
    return int(value) if is_safe_integer(value) and value >= 0 else None


def _boolean(value: Json) -> bool | None:
    return value if isinstance(value, bool) else None


def session_id(value: Json) -> str | None:
    """A checked session id; null, absent and empty mean "no session".

    Raises:
        FormatError: slug ``bad-session-id``.
    """
    if value is None or value == "":
        return None
    if isinstance(value, str) and _SESSION_ID.fullmatch(value):
        return value
    raise FormatError(
        "bad-session-id",
        f"session id {value!r:.80} must be a letter or digit, then up to 199 of letters, digits and . _ : -",
    )


def required_session_id(value: Json) -> str:
    """A checked session id that must be there.

    Raises:
        FormatError: slug ``bad-session-id`` or ``empty-session-id``.
    """
    found = session_id(value)
    if found is None:
        raise FormatError("empty-session-id", "a session id is needed to write a selection")
    return found
