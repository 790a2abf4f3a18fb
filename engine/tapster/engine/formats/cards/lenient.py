"""Cards whose fields have other types than the contract wants, read as a person would mean them.

Source: vectors' README "parse_card"; docs/formats.md "Reading profiles".
"""

from collections.abc import Mapping
from typing import Any

from tapster.engine.ecma import Json, is_record, trim
from tapster.engine.formats.fields import text_of
from tapster.engine.formats.notes import Notes

from .read import LIST_MEMBERS, STRING_MEMBERS, detect_format

_CARD_MARKS = ("name", "description", "personality", "first_mes", "mes_example", "scenario")
_PYGMALION = {
    "char_name": "name",
    "char_persona": "description",
    "world_scenario": "scenario",
    "char_greeting": "first_mes",
    "example_dialogue": "mes_example",
}


def repaired_root(raw: Mapping[str, Json], notes: Notes) -> Mapping[str, Json]:
    """The card's JSON in a shape the contract knows; its fields are not looked at."""
    if "char_name" in raw and "name" not in raw:
        notes.add("pygmalion-card", "a Pygmalion character; its fields were given the names of a version 1 card")
        return {**raw, **{member: raw[own] for own, member in _PYGMALION.items() if own in raw}}
    data = raw.get("data")
    format, _ = detect_format(raw)
    if format == "sillytavern-v1":
        if isinstance(data, dict) and "name" not in raw and any(mark in data for mark in _CARD_MARKS):
            notes.add("card-no-spec", "the card does not state its version; read as version 2", "spec")
            return {**raw, "spec": "chara_card_v2", "spec_version": "2.0"}
        return raw
    if isinstance(data, dict):
        return raw
    notes.add("card-no-data", "the card has no object 'data'; its root was read instead", "data")
    return {**raw, "data": {key: value for key, value in raw.items() if key not in ("spec", "spec_version", "data")}}


def repaired_payload(payload: Mapping[str, Json], prefix: str, notes: Notes) -> Mapping[str, Json]:
    """The card's fields with the types the contract wants; a note for each that had another one."""
    out: dict[str, Any] = dict(payload)
    for member in STRING_MEMBERS.values():
        if member in payload and not isinstance(payload[member], str):
            out[member] = _text(payload[member])
            _note(notes, prefix + member, "a text")
    for member in LIST_MEMBERS.values():
        given = payload.get(member, [])
        if not isinstance(given, list) or not all(isinstance(item, str) for item in given):
            out[member] = _texts(given, split=member == "tags")
            _note(notes, prefix + member, "a list of texts")
    for member, empty, kind in (("extensions", {}, dict), ("character_book", None, dict), ("assets", [], list)):
        if payload.get(member, empty) is not None and not isinstance(payload.get(member, empty), kind):
            out[member] = empty
            _note(notes, prefix + member, "an object" if kind is dict else "a list")
    for member in ("extensions", "assets"):
        if member in out and out[member] is None:
            del out[member]
            _note(notes, prefix + member, "an object" if member == "extensions" else "a list")
    return out


def _note(notes: Notes, path: str, wanted: str) -> None:
    notes.add("type", f"the card's '{path}' is not {wanted}; it was read as far as it makes sense", path)


def _text(value: Json) -> str:
    return "" if value is None or isinstance(value, bool | dict | list) else text_of(value)


def _texts(value: Json, *, split: bool) -> list[str]:
    if isinstance(value, str):
        return [part for item in value.split(",") if (part := trim(item))] if split else [value] if value else []
    items = value if isinstance(value, list) else list(value.values()) if is_record(value) else []
    return [item for item in items if isinstance(item, str)]
