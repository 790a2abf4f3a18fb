"""The file ops of ``user_reports``: parse_card, parse_book, parse_preset, parse_chat, round_trip_book."""

import base64
from collections.abc import Iterable, Mapping
from typing import Any

from tapster.engine.ecma import parse_json, stringify
from tapster.engine.errors import FormatError
from tapster.engine.formats import Note, import_file
from tapster.engine.formats.cards import Card
from tapster.engine.formats.cards.open import open_card_file
from tapster.engine.formats.chats import parse_chat
from tapster.engine.formats.documents import to_document
from tapster.engine.formats.embedded_books import embedded_book
from tapster.engine.formats.file_kinds import kind_of_json
from tapster.engine.formats.png import is_png
from tapster.engine.formats.presets import parse_preset, restore_preset
from tapster.engine.formats.world_books import (
    Diagnostic,
    dotted_path,
    export_world_book,
    parse_world_book,
    restore_world_book,
)
from tests.conformance.compare import differences
from tests.conformance.registry import adapter
from tests.conformance.user_reports_compare import compare_report, expand

Json = Any
STEM = "user_reports"
NOW = "2026-01-01T00:00:00.000Z"
WORDS: Mapping[str, str] = {
    "coerced-number": "type",
    "invalid-boolean": "type",
    "invalid-character-filter": "type",
    "invalid-entry": "type",
    "invalid-number": "type",
    "invalid-object": "type",
    "invalid-string": "type",
    "invalid-string-array": "type",
    "invalid-string-array-item": "type",
    "invalid-uid": "type",
}
"""The product's codes → the words of the vectors."""


def _said(items: Iterable[Note | Diagnostic]) -> Json:
    return [{"code": WORDS.get(item.code, item.code), "message": item.message} for item in items]


@adapter(STEM, "user.parse_card", compare=compare_report)
def parse_card_file(given: Json) -> Json:
    file = expand(given["file"])
    data = base64.b64decode(file["png_base64"]) if "png_base64" in file else stringify(file["json"]).encode()
    try:
        card, notes = _card(file["name"], data)
    except FormatError:
        return {"ok": False}
    book = embedded_book(card, "lenient")
    return {
        "ok": True,
        "name": card.name,
        "book": None if book is None else to_document(book),
        "warnings": _said(notes),
    }


def _card(name: str, data: bytes) -> tuple[Card, Iterable[Note]]:
    """The card of a file that is said to be one: a name and a description alone would be taken for a persona."""
    if not is_png(data) and kind_of_json(parse_json(data.decode())) == "personas":
        opened = open_card_file(data, id="c", now=NOW, file_name=name)
        return opened.card, opened.notes
    imported = import_file(name, data, id="c", now=NOW)
    if not isinstance(imported.resource, Card):
        raise FormatError("unknown-kind", f"{name} is no card")
    return imported.resource, imported.notes


@adapter(STEM, "user.parse_book", compare=compare_report)
def parse_book(given: Json) -> Json:
    book = parse_world_book(expand(given["book"]), profile="lenient")
    world = export_world_book(book, "sillytavern-world-info", profile="sillytavern")
    card = export_world_book(book, "character-book-v2", profile="sillytavern")
    return {
        "entry_count": len(book.entries),
        "entries": list(world["entries"].values()),
        "world_export": list(world["entries"].values()),
        "card_export": card["entries"],
        "diagnostics": [
            {"code": WORDS.get(item.code, item.code), "path": dotted_path(item.path)} for item in book.diagnostics
        ],
        "warnings": _said(book.diagnostics),
    }


@adapter(STEM, "user.parse_preset", compare=compare_report)
def parse_preset_file(given: Json) -> Json:
    raw = expand(given["preset"])
    exported = restore_preset(parse_preset(raw, id="p", now=NOW, profile="lenient"))
    return {
        "kept": [key for key in raw if key in exported and not differences(raw[key], exported[key])],
        "round_trip_equal": not differences(raw, exported),
    }


@adapter(STEM, "user.parse_chat", compare=compare_report)
def parse_chat_text(given: Json) -> Json:
    chat = parse_chat(expand(given["text"]).encode("utf-8", "surrogatepass"))
    return {
        "message_count": len(chat.messages),
        "texts": [message.text for message in chat.messages],
        "warnings": _said(chat.notes),
    }


@adapter(STEM, "user.round_trip_book", compare=compare_report)
def round_trip_book(given: Json) -> Json:
    raw = expand(given["book"])
    return {"round_trip_equal": not differences(raw, restore_world_book(parse_world_book(raw, profile="lenient")))}
