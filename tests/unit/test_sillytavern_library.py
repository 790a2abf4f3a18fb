"""A library as a SillyTavern request: the sample that ships with the project, and a chat file's header."""

import json
from typing import Any

from tapster.engine.activation.sillytavern import ScanSettings
from tapster.engine.formats.cards import Card, parse_card
from tapster.engine.formats.chats import Chat, parse_chat
from tapster.engine.formats.personas import Persona
from tapster.engine.formats.world_books import parse_world_book
from tapster.engine.profile.sillytavern import Assembly, AssemblyPorts, Choices, Library, assemble, library_request
from tapster.engine.profile.tokens import ESTIMATE
from tests.support.presets import preset
from tests.support.sillytavern import NOW

STAMP = "2026-01-01T00:00:00.000Z"
BOOK = {"entries": {"0": {"uid": 0, "key": ["lamp"], "content": "A lamp.", "sticky": 3, "selective": False}}}
ORDER = [
    {"identifier": name, "enabled": True}
    for name in ("main", "worldInfoBefore", "personaDescription", "charDescription", "chatHistory")
]
PRESET = preset(
    {"identifier": "main", "role": "system", "content": "Be {{char}}. {{getvar::mood}}"},
    prompt_order=[{"character_id": 100001, "order": ORDER}],
    new_chat_prompt="",
)


def card(**data: Any) -> Card:
    value = {"spec": "chara_card_v2", "spec_version": "2.0", "data": {"name": "Mira", "description": "D", **data}}
    return parse_card(json.dumps(value), id="c", now=STAMP, file_name="mira.json")


def chat(metadata: dict[str, Any], *lines: dict[str, Any]) -> Chat:
    header = {"user_name": "Ann", "character_name": "Mira", "chat_metadata": metadata}
    return parse_chat("\n".join(json.dumps(line) for line in (header, *lines)))


def run(library: Library, choices: Choices | None = None) -> Assembly:
    request = library_request(library, choices or Choices(), now=NOW, random=lambda: 0.0)
    return assemble(request, AssemblyPorts(ESTIMATE, lambda purpose: 0.0))


def texts(assembly: Assembly) -> list[str]:
    return [message.content.text for message in assembly.messages]


def test_all_parts_of_a_library_meet() -> None:
    said = chat(
        {"variables": {"mood": "Calm."}, "note_prompt": "Note", "note_depth": 0, "note_role": 1, "note_interval": 1},
        {"name": "Ann", "is_user": True, "mes": "the lamp"},
        {"name": "Mira", "is_user": False, "is_system": True, "mes": "hidden"},
        {"name": "Mira", "is_user": False, "mes": "Told.", "extra": {"type": "narrator"}},
    )
    library = Library(PRESET, card(), Persona("u", "Ann", "P"), {"w": parse_world_book(BOOK)}, said, "now")
    assembly = run(library, Choices(scan=ScanSettings(depth=4)))
    assert texts(assembly) == ["Be Mira. Calm.", "A lamp.", "P", "D", "the lamp", "Told.", "now", "Note"]
    assert [message.role for message in assembly.messages][-4:] == ["user", "system", "user", "user"]


def test_without_anything_there_is_the_draft_and_a_warning() -> None:
    assembly = run(Library(draft="hi"))
    assert texts(assembly)[-1] == "hi"
    assert [warning.code for warning in assembly.warnings] == ["PRESET_WITHOUT_PROMPT_ORDER"]


def test_a_cards_own_book_is_read_unless_its_world_file_is_loaded() -> None:
    entry = {"keys": ["lamp"], "content": "A lamp.", "enabled": True, "insertion_order": 1, "position": "before_char"}
    book = {"name": "w", "entries": [entry]}
    linked = card(character_book=book, extensions={"world": "w"})
    alone = run(Library(PRESET, linked, draft="lamp"))
    assert "A lamp." in texts(alone)
    both = run(Library(PRESET, linked, books={"w": parse_world_book(BOOK)}, draft="lamp"))
    assert texts(both).count("A lamp.") == 1
    assert "duplicate_book" in [decision.reason for decision in both.scan.decisions()]


def test_a_sticky_entry_of_the_header_needs_no_key() -> None:
    books = {"w": parse_world_book(BOOK)}
    once = run(Library(PRESET, card(), books=books, draft="lamp"))
    effect = once.scan.timed.sticky["w.0"]
    stored = {"hash": effect.hash, "start": effect.start, "end": effect.end}
    said = chat({"timedWorldInfo": {"sticky": {"w.0": stored}}}, {"name": "Ann", "is_user": True, "mes": "lamp"})
    again = run(Library(PRESET, card(), books=books, chat=said, draft="dark"), Choices(scan=ScanSettings(depth=1)))
    assert "A lamp." in texts(again)


def test_scripts_of_a_card_run_with_consent_only() -> None:
    script = {"scriptName": "s", "findRegex": "/a/g", "replaceString": "b", "placement": [1], "promptOnly": True}
    scripted = card(extensions={"regex_scripts": [script]})
    for consent in (False, True):
        request = library_request(
            Library(PRESET, scripted, draft="a"), Choices(card_scripts=consent), now=NOW, random=lambda: 0.0
        )
        assert len(request.scripts) == int(consent)
