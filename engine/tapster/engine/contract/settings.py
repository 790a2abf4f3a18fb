"""Global settings documents: what a value may be, and what stands when there is none.

Source: spec/http §5.4, spec/loader §16.
"""

from collections.abc import Mapping
from typing import Final

import attrs

from tapster.engine.ecma import Json, is_number, parse_json, stringify
from tapster.engine.errors import FormatError, RequestError
from tapster.engine.limits import CONVERSATION_SETTINGS_BYTES, UI_SETTINGS_BYTES

SCHEMA_VERSION: Final = 1
LOCALES: Final = ("zh-CN", "en")
MIN_SCALE: Final = 0.75
MAX_SCALE: Final = 1.5
SCALE_STEP: Final = 0.05
SCALE_TOLERANCE: Final = 1e-9


@attrs.frozen
class UiSettings:
    """Language and size of the page, and whether a bound card turns roleplay mode on."""

    locale: str = "zh-CN"
    scale: float = 1
    rp_follow_character: bool = True

    def to_json(self) -> dict[str, Json]:
        """The document under its contract names."""
        return {
            "schemaVersion": SCHEMA_VERSION,
            "locale": self.locale,
            "scale": self.scale,
            "rpFollowCharacter": self.rp_follow_character,
        }


@attrs.frozen
class ConversationSettings:
    """Sizes inside a conversation."""

    text_scale: float = 1
    action_scale: float = 1

    def to_json(self) -> dict[str, Json]:
        """The document under its contract names."""
        return {"schemaVersion": SCHEMA_VERSION, "textScale": self.text_scale, "actionScale": self.action_scale}


def check_ui_settings(body: Json) -> UiSettings:
    """The settings of a request: a full replacement.

    Raises:
        RequestError: a member is unknown, missing or out of range.
    """
    values = _members(body, ("locale", "scale", "rpFollowCharacter"))
    locale = values.get("locale")
    if locale not in LOCALES:
        raise RequestError(f"{locale!r:.60} is not a language of the page; it is one of {', '.join(LOCALES)}")
    follow = values.get("rpFollowCharacter", True)
    if not isinstance(follow, bool):
        raise RequestError("rpFollowCharacter must be true or false")
    return UiSettings(str(locale), check_scale(values.get("scale"), "scale"), follow)


def check_conversation_settings(body: Json) -> ConversationSettings:
    """The settings of a request: a full replacement.

    Raises:
        RequestError: a member is unknown, missing or out of range.
    """
    values = _members(body, ("textScale", "actionScale"))
    text = check_scale(values.get("textScale"), "textScale")
    return ConversationSettings(text, check_scale(values.get("actionScale"), "actionScale"))


def check_scale(value: Json, name: str) -> float:
    """A size: 0.75 to 1.5 in steps of 0.05, kept with two decimals.

    Raises:
        RequestError: it is none.
    """
    if not is_number(value):
        raise RequestError(f"{name} must be a number")
    steps = round(value / SCALE_STEP)
    is_step = abs(value - steps * SCALE_STEP) <= SCALE_TOLERANCE
    if not is_step or not MIN_SCALE <= value <= MAX_SCALE:
        raise RequestError(f"{name} must be {MIN_SCALE} to {MAX_SCALE} in steps of {SCALE_STEP}, not {value}")
    return round(float(value), 2)


def read_ui_settings(data: bytes | None) -> UiSettings:
    """The settings of a stored file; a missing, oversized or invalid one gives the defaults."""
    try:
        return check_ui_settings(_stored(data, UI_SETTINGS_BYTES))
    except (RequestError, FormatError):
        return UiSettings()


def read_conversation_settings(data: bytes | None) -> ConversationSettings:
    """The settings of a stored file; a missing, oversized or invalid one gives the defaults."""
    try:
        return check_conversation_settings(_stored(data, CONVERSATION_SETTINGS_BYTES))
    except (RequestError, FormatError):
        return ConversationSettings()


def settings_text(document: Mapping[str, Json]) -> str:
    """A settings document as it is written."""
    return stringify(document, indent=2) + "\n"


def _members(body: Json, names: tuple[str, ...]) -> dict[str, Json]:
    if not isinstance(body, dict):
        raise RequestError("the settings must be a JSON object")
    unknown = [name for name in body if name not in names]
    if unknown:
        raise RequestError(f"unknown settings {', '.join(unknown)[:120]}; known are {', '.join(names)}")
    return body


def _stored(data: bytes | None, limit_bytes: int) -> Json:
    if data is None or len(data) > limit_bytes:
        raise RequestError("there are no usable stored settings")
    value = parse_json(data.decode("utf-8", "replace"))
    if not isinstance(value, dict) or value.get("schemaVersion") != SCHEMA_VERSION:
        raise RequestError("the stored settings are of another schema")
    return {name: item for name, item in value.items() if name != "schemaVersion"}
