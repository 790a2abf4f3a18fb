"""The cards' order and the cards that were deleted, as rules over their shared document.

Source: spec/resources §3.5 "sorting", "delete", "recovery after import"; spec/http §5.2.
"""

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Final

from tapster.engine.ecma import Json, is_record, trim
from tapster.engine.errors import RequestError

MAX_ORDERED: Final = 4_096
MAX_MISSING: Final = 4_096
MODES: Final = ("updated", "name", "custom")


def read_state(document: Json | None) -> dict[str, Json]:
    """The document with all members present and usable."""
    found = document if isinstance(document, dict) else {}
    mode = found.get("characterSortMode")
    order, missing = found.get("characterOrder"), found.get("missingCharacters")
    return {
        **found,
        "schemaVersion": 1,
        "selectedBySessionId": found.get("selectedBySessionId") or {},
        "characterSortMode": mode if mode in MODES else "updated",
        "characterOrder": [item for item in order if isinstance(item, str)] if isinstance(order, list) else [],
        "missingCharacters": [item for item in missing if is_record(item)] if isinstance(missing, list) else [],
    }


def with_order(document: Json | None, mode: Json, character_ids: Json, present: Sequence[str]) -> dict[str, Json]:
    """The document with another order.

    Raises:
        RequestError: the mode is unknown, or the ids aren't each stored card once.
    """
    state = read_state(document)
    if mode not in MODES:
        raise RequestError(f"mode must be one of {', '.join(MODES)}")
    if character_ids is None:
        return {**state, "characterSortMode": mode}
    if mode != "custom":
        raise RequestError("characterIds belong to the mode custom only")
    if not isinstance(character_ids, list) or len(character_ids) > MAX_ORDERED:
        raise RequestError(f"characterIds must be a list of at most {MAX_ORDERED} ids")
    if not all(isinstance(item, str) for item in character_ids) or sorted(character_ids) != sorted(present):
        raise RequestError("characterIds must name every stored card once and nothing else")
    return {**state, "characterSortMode": mode, "characterOrder": list(character_ids)}


def sort_cards(summaries: Sequence[Mapping[str, Json]], state: Mapping[str, Json]) -> list[Mapping[str, Json]]:
    """Card summaries in the order in force; cards that a custom order doesn't know come last."""
    by_id = sorted(summaries, key=lambda item: str(item["id"]))
    by_name = sorted(by_id, key=lambda item: collation_key(str(item["name"])))
    if state["characterSortMode"] == "name":
        return by_name
    if state["characterSortMode"] == "updated":
        return sorted(by_name, key=lambda item: str(item["updatedAt"]), reverse=True)
    places = {card: place for place, card in enumerate(state["characterOrder"])}
    by_creation = sorted(by_id, key=lambda item: str(item["createdAt"]))
    return sorted(by_creation, key=lambda item: places.get(item["id"], len(places)))


def collation_key(name: str) -> tuple[tuple[int, int, str], ...]:
    """An order near zh-CN collation: numbers by value, case and accents ignored, Latin before Han.

    Han characters go by code point, not by pronunciation: the tables of a full collation are not carried.
    """
    plain = "".join(
        character
        for character in unicodedata.normalize("NFKD", name).casefold()
        if not unicodedata.combining(character)
    )
    parts: list[tuple[int, int, str]] = []
    digits = ""
    for character in plain + "\0":
        if character.isdecimal() and character.isascii():
            digits += character
            continue
        if digits:
            parts.append((0, int(digits[:4000]), ""))
            digits = ""
        if character != "\0":
            parts.append((1, 0, character))
    return tuple(parts)


def bury(document: Json | None, card: Mapping[str, Json]) -> dict[str, Json]:
    """The document with a deleted card remembered, the oldest forgotten beyond 4,096."""
    state = read_state(document)
    others = [item for item in state["missingCharacters"] if item.get("id") != card["id"]]
    order = [item for item in state["characterOrder"] if item != card["id"]]
    return {**state, "characterOrder": order, "missingCharacters": [*others, dict(card)][-MAX_MISSING:]}


def unbury(document: Json | None, character_id: str) -> dict[str, Json]:
    """The document without a card that was found again."""
    state = read_state(document)
    kept = [item for item in state["missingCharacters"] if item.get("id") != character_id]
    return {**state, "missingCharacters": kept}


def find_lost(
    state: Mapping[str, Json], name: str, sha256: str | None, stored_names: Sequence[str]
) -> tuple[str, str] | None:
    """The deleted card that an imported one is, known by its file, else by a name unique on both sides."""
    missing = state["missingCharacters"]
    by_file = [item["id"] for item in missing if sha256 is not None and item.get("sha256") == sha256]
    if len(by_file) == 1:
        return by_file[0], "sha256"
    wanted = _plain(name)
    by_name = [item["id"] for item in missing if _plain(item.get("name")) == wanted]
    if len(by_name) == 1 and sum(_plain(stored) == wanted for stored in stored_names) == 1:
        return by_name[0], "name"
    return None


def _plain(name: Json) -> str:
    return trim(name).lower() if isinstance(name, str) else ""
