"""Character cards of every version into values, by the contract.

Source: spec/resources §3.1, §3.2.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

import attrs

from tapster.engine.ecma import Json, is_record
from tapster.engine.errors import FormatError
from tapster.engine.formats.fields import file_name as clean_file_name
from tapster.engine.formats.fields import short_name
from tapster.engine.formats.json_guard import load_json
from tapster.engine.formats.png import PngLimits, is_png, read_card_text
from tapster.engine.limits import CARD_FILE_NAME_UNITS

from .compatibility import unknown_macro_names, unsupported_features, warnings
from .model import Card, CardContainer, CardData, CardFormat, CardSource, Compatibility

STRING_MEMBERS: Mapping[str, str] = {
    "name": "name",
    "nickname": "nickname",
    "description": "description",
    "personality": "personality",
    "scenario": "scenario",
    "first_message": "first_mes",
    "message_example": "mes_example",
    "creator_notes": "creator_notes",
    "system_prompt": "system_prompt",
    "post_history_instructions": "post_history_instructions",
    "creator": "creator",
    "character_version": "character_version",
}
"""Attribute of CardData → member of the card's JSON, in the order the type checks run."""
LIST_MEMBERS: Mapping[str, str] = {
    "alternate_greetings": "alternate_greetings",
    "group_only_greetings": "group_only_greetings",
    "tags": "tags",
}


@attrs.frozen
class CardText:
    """The JSON of a card with the container it lay in."""

    raw: Mapping[str, Json]
    container: CardContainer = "json"
    data: bytes | None = None
    png_keyword: str | None = None
    has_both_chunks: bool = False


def parse_card(
    given: bytes | str | Json,
    *,
    id: str,
    now: str,
    file_name: str | None = None,
    name: str | None = None,
    limits: PngLimits = PngLimits(),  # noqa: B008 - a frozen value
) -> Card:
    """The card that a PNG, a JSON file, a JSON text or an object holds.

    Raises:
        FormatError: a slug of the contract's card or PNG table.
    """
    return build_card(open_card(given, limits), id=id, now=now, file_name=file_name, name=name)


def open_card(given: bytes | str | Json, limits: PngLimits) -> CardText:
    """The JSON and container of a card, its fields not looked at yet."""
    if isinstance(given, bytes):
        return _open_bytes(given, limits)
    return CardText(card_root(card_json(given) if isinstance(given, str) else given))


def _open_bytes(data: bytes, limits: PngLimits) -> CardText:
    if is_png(data):
        found = read_card_text(data, limits)
        return CardText(card_root(card_json(found.text)), "png", data, found.keyword, len(found.available_keywords) > 1)
    try:
        text = data.removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError as error:
        raise FormatError(
            "card-bad-utf8", f"the card is neither a PNG nor UTF-8 text (byte {error.start}); save it as UTF-8"
        ) from error
    return CardText(card_root(card_json(text)), data=data)


def card_json(text: str) -> Json:
    """The JSON value of a card text.

    Raises:
        FormatError: ``card-bad-json``, or a limit of the JSON guard.
    """
    try:
        return load_json(text)
    except FormatError as error:
        if error.slug != "bad-json":
            raise
        raise FormatError("card-bad-json", f"the card is not JSON: {error.message}") from error


def card_root(value: Json) -> Mapping[str, Json]:
    """The card's JSON object.

    Raises:
        FormatError: ``card-not-object``.
    """
    if isinstance(value, dict):
        return value
    raise FormatError("card-not-object", "a character card is a JSON object")


def build_card(
    opened: CardText,
    *,
    id: str,
    now: str,
    file_name: str | None = None,
    name: str | None = None,
    payload: Mapping[str, Json] | None = None,
) -> Card:
    """The card of an opened file; ``payload`` stands in for its fields where they had to be repaired.

    Raises:
        FormatError: ``card-no-data`` or a slug of the field checks.
    """
    raw = opened.raw
    format, spec_version = detect_format(raw)
    data = read_data(payload_of(raw, format) if payload is None else payload, format)
    keyword = opened.png_keyword
    return Card(
        id=id,
        name=short_name(data.name if name is None else name, "Imported character"),
        created_at=now,
        updated_at=now,
        source=CardSource(
            format=format,
            container=opened.container,
            imported_at=now,
            file_name=clean_file_name(file_name, CARD_FILE_NAME_UNITS, f"character.{opened.container}"),
            raw=raw,
            spec_version=spec_version,
            sha256=None if opened.data is None else hashlib.sha256(opened.data).hexdigest(),
            byte_length=None if opened.data is None else len(opened.data),
            png_keyword=keyword,
        ),
        data=data,
        compatibility=Compatibility(
            warnings(data, format, spec_version, keyword, opened.has_both_chunks),
            unsupported_features(data, format),
            unknown_macro_names(data),
        ),
    )


def detect_format(raw: Mapping[str, Json]) -> tuple[CardFormat, str | None]:
    """Which version a card is of, and the version it states."""
    spec = raw.get("spec")
    stated = raw.get("spec_version")
    version = stated if isinstance(stated, str) else ""
    if spec == "chara_card_v3" or version == "3" or version.startswith("3."):
        return "character-card-v3", version or "3.0"
    if spec == "chara_card_v2" or version == "2" or version.startswith("2."):
        return "sillytavern-v2", version or "2.0"
    return "sillytavern-v1", None


def payload_of(raw: Mapping[str, Json], format: CardFormat) -> Mapping[str, Json]:
    """The object that holds the card's fields.

    Raises:
        FormatError: ``card-no-data``.
    """
    if format == "sillytavern-v1":
        return raw
    data = raw.get("data")
    if isinstance(data, dict):
        return data
    raise FormatError("card-no-data", "the card states version 2 or 3 but has no object 'data'")


def read_data(payload: Mapping[str, Json], format: CardFormat) -> CardData:
    """The card's fields.

    Raises:
        FormatError: ``field-not-string``, ``field-not-string-array``, ``field-not-object``,
            ``field-not-object-or-null`` or ``field-not-array``.
    """
    check_fields(payload)
    texts: dict[str, Any] = {attribute: payload.get(member, "") for attribute, member in STRING_MEMBERS.items()}
    lists: dict[str, Any] = {attribute: tuple(payload.get(member, ())) for attribute, member in LIST_MEMBERS.items()}
    if format == "sillytavern-v1" and "creator_notes" not in payload:
        comment = payload.get("creatorcomment")
        texts["creator_notes"] = comment if isinstance(comment, str) else ""
    return CardData(
        **texts,
        **lists,
        character_book=payload.get("character_book"),
        assets=tuple(payload.get("assets", ())),
        extensions=payload.get("extensions", {}),
    )


def check_fields(payload: Mapping[str, Json]) -> None:
    """Every field has its type, checked in the contract's order."""
    for member in STRING_MEMBERS.values():
        if not isinstance(payload.get(member, ""), str):
            raise FormatError("field-not-string", f"the card's '{member}' must be a text")
    for member in LIST_MEMBERS.values():
        if not is_string_list(payload.get(member, [])):
            raise FormatError("field-not-string-array", f"the card's '{member}' must be a list of texts")
    if not is_record(payload.get("extensions", {})):
        raise FormatError("field-not-object", "the card's 'extensions' must be an object")
    if payload.get("character_book") is not None and not is_record(payload["character_book"]):
        raise FormatError("field-not-object-or-null", "the card's 'character_book' must be an object or null")
    if not isinstance(payload.get("assets", []), list):
        raise FormatError("field-not-array", "the card's 'assets' must be a list")


def is_string_list(value: Json) -> bool:
    """Whether a value is a list of strings."""
    return isinstance(value, list) and all(isinstance(item, str) for item in value)
