"""World books beyond the vectors: edits, round trips, the guard."""

import json
from typing import Any

import pytest

from tapster.engine.errors import FormatError
from tapster.engine.formats.documents import to_document
from tapster.engine.formats.world_books import (
    BookLimits,
    WorldBookValidationError,
    edit_world_book,
    export_world_book,
    import_world_book,
    new_world_book,
    parse_world_book,
    restore_world_book,
    validate_world_book,
    world_book_text,
)

NOW = "2026-01-02T03:04:05.006Z"
STANDALONE: dict[str, Any] = {
    "name": "Harbour",
    "mine": {"x": 1},
    "entries": {
        "7": {"uid": 7, "key": ["bell"], "content": "It rings.", "odd": True, "order": "30"},
        "b": {"uid": 8, "key": ["fog"], "content": "Grey.", "extensions": {"depth": 6}},
    },
}
EMBEDDED: dict[str, Any] = {
    "extensions": {},
    "entries": [
        {"id": 1, "keys": ["bell"], "content": "It rings.", "enabled": True, "insertion_order": 3,
         "extensions": {"position": 4, "mine": 1}, "name": "n"},
    ],
}  # fmt: skip


def new_uid() -> str:
    return "entry-000000000000"


@pytest.mark.parametrize("raw", [STANDALONE, EMBEDDED])
def test_an_untouched_book_comes_back_as_it_was(raw: dict[str, Any]) -> None:
    assert restore_world_book(parse_world_book(raw)) == raw


@pytest.mark.parametrize("raw", [STANDALONE, EMBEDDED])
def test_the_contract_export_reads_as_the_same_book(raw: dict[str, Any]) -> None:
    book = parse_world_book(raw)
    again = parse_world_book(export_world_book(book))
    before, after = to_document(book)["entries"], to_document(again)["entries"]
    for entry in before + after:
        del entry["source"], entry["extensions"], entry["caseSensitive"]  # null can only be written as false
    assert after == before


def test_an_edit_changes_only_what_was_edited() -> None:
    book = parse_world_book(STANDALONE)
    entries = to_document(book)["entries"]
    entries[0]["content"] = "Silence."
    edited = edit_world_book(book, {"entries": entries}, new_uid=new_uid)
    expected = {**STANDALONE, "entries": dict(STANDALONE["entries"])}
    expected["entries"]["7"] = {**expected["entries"]["7"], "content": "Silence."}
    assert restore_world_book(edited) == expected


def test_new_entries_get_a_uid_and_a_free_key() -> None:
    book = parse_world_book({"entries": {}})
    edited = edit_world_book(book, {"book": {"entries": [{"keys": ["a"]}, {"keys": ["b"]}]}}, new_uid=new_uid)
    assert [entry.source.key for entry in edited.entries] == ["entry-entry-000000000000", "entry-entry-000000000000-2"]
    assert [entry.position for entry in edited.entries] == ["after_character_definition"] * 2


def test_settings_can_be_set_and_cleared() -> None:
    book = parse_world_book({"entries": {}, "scan_depth": 3})
    edited = edit_world_book(book, {"settings": {"scanDepth": None, "recursiveScanning": True}}, new_uid=new_uid)
    assert restore_world_book(edited) == {"entries": {}, "recursive_scanning": True}


@pytest.mark.parametrize(
    "patch",
    [
        [],
        {"name": 1},
        {"entries": [1]},
        {"entries": [{"position": "nowhere"}]},
        {"entries": [{"keys": "a"}]},
        {"settings": {"scanDepth": -1}},
        {"settings": {"recursiveScanning": 1}},
    ],
)
def test_bad_edits_are_refused(patch: object) -> None:
    with pytest.raises(FormatError):
        edit_world_book(parse_world_book(STANDALONE), patch, new_uid=new_uid)


def test_the_guard_counts_entries_first() -> None:
    raw: dict[str, Any] = {"entries": [{"a": [[[]]]}] * 3}
    found = validate_world_book(raw, limits=BookLimits(entries=2, depth=1))
    assert [item.code for item in found.diagnostics] == ["WORLD_BOOK_ENTRY_LIMIT"]
    assert not found.valid


def test_a_very_deep_book_is_refused_not_followed() -> None:
    value: Any = {}
    for _ in range(100_000):
        value = {"a": value}
    with pytest.raises(WorldBookValidationError) as caught:
        parse_world_book({"entries": {}, "x": value})
    assert caught.value.diagnostics[0].code == "WORLD_BOOK_DEPTH_LIMIT"


def test_every_bad_entry_is_reported() -> None:
    with pytest.raises(WorldBookValidationError) as caught:
        parse_world_book({"entries": {"a": 1, "b c": None, "d": {"key": 5}}})
    assert [item.path for item in caught.value.diagnostics] == [
        "$.entries.a",
        '$.entries["b c"]',
        "$.entries.d.key",
    ]


def test_a_large_file_is_refused_with_413() -> None:
    with pytest.raises(FormatError) as caught:
        import_world_book(b" " * (4 * 1024 * 1024 + 1), id="b", now=NOW)
    assert (caught.value.code, caught.value.status) == ("WORLD_BOOK_ARTIFACT_TOO_LARGE", 413)


def test_a_new_book_has_a_name() -> None:
    assert new_world_book(id="b", now=NOW, name="  ").name == "Untitled World Book"


def test_stable_text_puts_index_keys_first() -> None:
    assert world_book_text({"b": 1, "a": {"10": 1, "9": 2}}) == (
        '{\n  "a": {\n    "9": 2,\n    "10": 1\n  },\n  "b": 1\n}'
    )


@pytest.mark.parametrize(
    ("text", "limits", "code"),
    [
        ('{"entries":{"a":{}}}', BookLimits(depth=2), None),
        ('{"entries":{"a":{"key":[]}}}', BookLimits(depth=2), "WORLD_BOOK_DEPTH_LIMIT"),
        ('{"entries":{},"list":[1,2]}', BookLimits(nodes=5), None),
        ('{"entries":{},"list":[1,2]}', BookLimits(nodes=4), "WORLD_BOOK_NODE_LIMIT"),
        ('{"entries":[{},{}]}', BookLimits(entries=1, nodes=1, depth=0), "WORLD_BOOK_ENTRY_LIMIT"),
    ],
)
def test_a_text_is_guarded_as_its_value_is(text: str, limits: BookLimits, code: str | None) -> None:
    found = [validate_world_book(given, limits=limits) for given in (text, json.loads(text))]
    errors = [[item.code for item in each.diagnostics if item.severity == "error"] for each in found]
    assert errors == [[code] if code else []] * 2


@pytest.mark.parametrize(
    ("file_name", "name"),
    [
        ("tides.v2.json", "tides.v2"),
        ("tides", "tides"),
        (" tides .json", "tides"),
        (".json", "Untitled World Book"),
        ("", "Untitled World Book"),
        (None, "Untitled World Book"),
    ],
)
def test_a_nameless_book_is_called_after_its_file(file_name: str | None, name: str) -> None:
    stored = import_world_book(b'{"entries":{}}', id="b", now="2026-01-01T00:00:00.000Z", file_name=file_name)
    assert stored.name == name


def test_an_edit_finds_entries_by_uid_and_key_then_by_uid_each_once() -> None:
    raw = {"entries": {"a": {"uid": 1}, "b": {"uid": 1}, "c": {"uid": "1"}}}
    given = [{"uid": 1, "sourceKey": "b"}, {"uid": 1, "sourceKey": "gone"}, {"uid": 1}, {"uid": "1"}, {"uid": True}]
    edited = edit_world_book(parse_world_book(raw), {"entries": given}, new_uid=new_uid)
    found = [(entry.uid, entry.source.key) for entry in edited.entries]
    assert found == [(1, "b"), (1, "a"), (1, "entry-1"), ("1", "c"), (new_uid(), f"entry-{new_uid()}")]
