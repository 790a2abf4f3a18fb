"""Edits of a card's own fields.

Source: spec/resources §3.3, §3.5 "edit embedded book".
"""

from collections.abc import Mapping
from typing import Any

import attrs

from tapster.engine.ecma import Json, is_record
from tapster.engine.errors import FormatError
from tapster.engine.formats.documents import camel
from tapster.engine.formats.fields import short_name

from .compatibility import MISSING_NAME, name_warnings, unknown_macro_names
from .model import Card, CardSource
from .read import STRING_MEMBERS, is_string_list

_TEXT_FIELDS = {camel(attribute): attribute for attribute in STRING_MEMBERS}
_LIST_FIELDS = {"alternateGreetings": "alternate_greetings", "tags": "tags"}


def edit_card(card: Card, patch: Json, *, now: str) -> Card:
    """The card with some of its fields replaced, in its data and in its raw JSON.

    Raises:
        FormatError: ``unknown-edit-field``, ``field-not-string``, ``field-not-string-array`` or ``not-object``.
    """
    if not is_record(patch):
        raise FormatError("not-object", "a card edit is a JSON object")
    changes: dict[str, Any] = {}
    members: dict[str, Json] = {}
    for field, value in patch.items():
        attribute, member = _checked(field, value)
        changes[attribute] = tuple(value) if isinstance(value, list) else value
        members[member] = value
    if card.source.format == "sillytavern-v1" and "creator_notes" in members:
        members["creatorcomment"] = members["creator_notes"]
    data = attrs.evolve(card.data, **changes)
    kept = [item for item in card.compatibility.warnings if item.code != MISSING_NAME.code]
    return attrs.evolve(
        card,
        name=short_name(data.name, "Imported character"),
        updated_at=now,
        source=_with_members(card.source, members),
        data=data,
        compatibility=attrs.evolve(
            card.compatibility,
            warnings=(*kept, *name_warnings(data)),
            unknown_macro_names=unknown_macro_names(data),
        ),
    )


def replace_embedded_book(card: Card, book: Mapping[str, Json] | None, *, now: str) -> Card:
    """The card with another embedded book; the caller has checked the book."""
    return attrs.evolve(
        card,
        updated_at=now,
        source=_with_members(card.source, {"character_book": book}),
        data=attrs.evolve(card.data, character_book=book),
    )


def _checked(field: str, value: Json) -> tuple[str, str]:
    if field in _TEXT_FIELDS:
        if not isinstance(value, str):
            raise FormatError("field-not-string", f"the card's {field} must be a text")
        return _TEXT_FIELDS[field], STRING_MEMBERS[_TEXT_FIELDS[field]]
    if field in _LIST_FIELDS:
        if not is_string_list(value):
            raise FormatError("field-not-string-array", f"the card's {field} must be a list of texts")
        return _LIST_FIELDS[field], _LIST_FIELDS[field]
    raise FormatError("unknown-edit-field", f"a card has no editable field {ascii(field)[:80]}")


def _with_members(source: CardSource, members: Mapping[str, Json]) -> CardSource:
    if source.format == "sillytavern-v1":
        return attrs.evolve(source, raw={**source.raw, **members})
    return attrs.evolve(source, raw={**source.raw, "data": {**source.raw["data"], **members}})
