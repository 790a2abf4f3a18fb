"""Which card version a JSON fulfils, as SillyTavern checks it.

Source: the vectors of st_cards.
"""

from collections.abc import Mapping

import attrs

from tapster.engine.ecma import Json, is_record, to_number

_V1_MEMBERS = ("name", "description", "personality", "scenario", "first_mes", "mes_example")
_V2_MEMBERS = (
    *_V1_MEMBERS,
    "creator_notes",
    "system_prompt",
    "post_history_instructions",
    "alternate_greetings",
    "tags",
    "creator",
    "character_version",
    "extensions",
)


@attrs.frozen
class CardVersion:
    """The first version a card fulfils (None when none), and the member at which the last check failed."""

    version: int | None
    failed_at: str | None = None


def fulfilled_version(value: Json) -> CardVersion:
    """The version of a card JSON that is not null."""
    card = value if isinstance(value, dict) else {}
    failed = _v1(card)
    if failed is None:
        return CardVersion(1)
    second = _v2(card)
    if second is None:
        return CardVersion(2, failed)
    third = _v3(card)
    return CardVersion(3, second) if third is None else CardVersion(None, third)


def _v1(card: Mapping[str, Json]) -> str | None:
    return next((member for member in _V1_MEMBERS if member not in card), None)


def _v2(card: Mapping[str, Json]) -> str | None:
    if card.get("spec") != "chara_card_v2":
        return "spec"
    if card.get("spec_version") != "2.0":
        return "spec_version"
    data = card.get("data")
    if not isinstance(data, dict):
        return "data"
    missing = next((member for member in _V2_MEMBERS if member not in data), None)
    if missing is not None:
        return f"data.{missing}"
    for member in ("alternate_greetings", "tags"):
        if not isinstance(data[member], list):
            return f"data.{member}"
    if not isinstance(data["extensions"], dict | list):
        return "data.extensions"
    return _book(data.get("character_book"))


def _book(book: Json) -> str | None:
    if not book:
        return None
    given = book if is_record(book) else {}
    missing = next((member for member in ("extensions", "entries") if member not in given), None)
    if missing is not None:
        return f"data.character_book.{missing}"
    if not isinstance(given["entries"], list):
        return "data.character_book.entries"
    return None if isinstance(given["extensions"], dict | list) else "data.character_book.extensions"


def _v3(card: Mapping[str, Json]) -> str | None:
    if card.get("spec") != "chara_card_v3":
        return "spec"
    stated = card.get("spec_version")
    number = to_number(stated) if isinstance(stated, str) else stated
    if isinstance(number, bool) or not isinstance(number, int | float) or not 3 <= number < 4:
        return "spec_version"
    return None if isinstance(card.get("data"), dict) else "data"
