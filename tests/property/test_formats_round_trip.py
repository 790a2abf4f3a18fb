"""Formats under random content: nothing is lost, nothing crashes, the guard counts right."""

import base64
import contextlib
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from tapster.engine.ecma import parse_json, stringify
from tapster.engine.errors import FormatError, TapsterError
from tapster.engine.formats import import_file
from tapster.engine.formats.cards import edit_card, export_card_png, parse_card
from tapster.engine.formats.documents import from_document, to_document
from tapster.engine.formats.json_guard import JsonLimits, check_json
from tapster.engine.formats.png import decode_base64, read_card_text, strip
from tapster.engine.formats.presets import Preset, edit_preset, export_preset, parse_preset, restore_preset
from tapster.engine.formats.world_books import (
    WorldBook,
    edit_world_book,
    export_world_book,
    parse_world_book,
    restore_world_book,
)
from tapster.engine.formats.zip_files import inflate, read_zip, stored_member, write_zip
from tests.support.pngs import PIXEL

NOW = "2026-01-02T03:04:05.006Z"
texts = st.text(alphabet=st.characters(codec=None), max_size=8)
leaves = (
    st.none() | st.booleans() | st.integers(-5, 200) | st.sampled_from(["", "3", "x, y", "system", "at_depth"]) | texts
)
values = st.recursive(
    leaves, lambda item: st.lists(item, max_size=3) | st.dictionaries(texts, item, max_size=3), max_leaves=6
)
MEMBERS = [
    "uid", "id", "key", "keys", "keysecondary", "secondary_keys", "comment", "content", "constant", "selective",
    "order", "insertion_order", "position", "disable", "enabled", "depth", "role", "probability",
    "useProbability", "extensions", "group", "groupWeight", "sticky", "scanDepth",
    "caseSensitive", "case_sensitive", "characterFilter", "triggers",
    "name", "selectiveLogic", "delayUntilRecursion", "mine",
]  # fmt: skip
entries = st.dictionaries(st.sampled_from(MEMBERS), values, max_size=8)
books = st.fixed_dictionaries(
    {
        "entries": st.lists(entries, max_size=4)
        | st.dictionaries(texts | st.sampled_from(["0", "7"]), entries, max_size=4)
    },
    optional={"name": values, "description": values, "scan_depth": values, "extensions": values, "mine": values},
)
prompts = st.dictionaries(
    st.sampled_from(["identifier", "name", "role", "content", "enabled", "marker", "injection_depth", "mine"]), values
)
presets = st.fixed_dictionaries(
    {"prompts": st.lists(prompts | leaves, max_size=4)},
    optional={
        "name": values,
        "temperature": values,
        "openai_max_tokens": values,
        "stop": values,
        "prompt_order": st.lists(st.fixed_dictionaries({"character_id": values, "order": st.lists(prompts)}) | leaves),
        "mine": values,
    },
)
CARD_MEMBERS = [
    "name",
    "description",
    "first_mes",
    "tags",
    "alternate_greetings",
    "extensions",
    "character_book",
    "mine",
]


@given(books)
@example({"entries": {"": {"uid": 0}}})
@example({"entries": {"": {"uid": "7"}, "7": {}}})
def test_a_book_keeps_every_member(raw: Any) -> None:
    book = parse_world_book(raw)
    assert restore_world_book(book) == raw
    assert from_document(WorldBook, to_document(book)) == book


@given(st.dictionaries(texts | st.just("entry-x"), entries | leaves, max_size=4))
@example({"": {"uid": "entry-x"}, "entry-x": 5})
def test_an_entry_that_is_added_takes_no_others_place(given: Any) -> None:
    book = parse_world_book({"entries": given}, profile="lenient")
    known = [{"uid": entry.uid, "source": {"key": entry.source.key}} for entry in book.entries]
    edited = edit_world_book(book, {"entries": [{"uid": "x"}, *known]}, new_uid=lambda: "y")
    restored = restore_world_book(edited)["entries"]
    assert isinstance(restored, dict)
    assert len(restored) == len(given) + (not any(entry.uid == "x" for entry in book.entries))
    assert {key: restored[key] for key in given} == given


@given(books)
def test_the_contract_export_of_a_book_is_stable(raw: Any) -> None:
    once = export_world_book(parse_world_book(raw))  # an embedded entry's case_sensitive null is written as false
    twice = export_world_book(parse_world_book(once))
    assert export_world_book(parse_world_book(twice)) == twice


@given(presets)
def test_a_preset_keeps_every_member(raw: Any) -> None:
    preset = parse_preset(raw, id="p", now=NOW)
    assert restore_preset(preset) == raw
    assert from_document(Preset, to_document(preset)) == preset
    once = export_preset(preset)
    assert export_preset(parse_preset(once, id="p", now=NOW)) == once


@given(presets, texts)
def test_a_new_name_changes_the_name_alone(raw: Any, name: str) -> None:
    preset = parse_preset(raw, id="p", now=NOW)
    sampling = {"temperature": preset.sampling.temperature, "maxTokens": preset.sampling.max_tokens}
    restored = restore_preset(edit_preset(preset, {"name": name, "sampling": sampling}, now=NOW))
    assert {**restored, "name": None} == {**raw, "name": None}


@given(st.dictionaries(st.sampled_from(CARD_MEMBERS), values))
def test_any_card_fields_are_read_leniently_and_kept(data: Any) -> None:
    raw = {"spec": "chara_card_v2", "data": data}
    imported = import_file("Ann.json", stringify(raw).encode("utf-8", "surrogatepass"), id="c", now=NOW)
    assert imported.kind == "card"
    assert imported.resource.source.raw == raw  # type: ignore[union-attr]
    assert imported.name


@given(texts, texts)
def test_a_card_survives_its_png_and_an_edit(name: str, text: str) -> None:
    card = parse_card(stringify({"name": name, "mine": [text]}), id="c", now=NOW)
    png = export_card_png(edit_card(card, {"description": text}, now=NOW), PIXEL)
    again = parse_card(png, id="c", now=NOW)
    assert again.source.raw == {"name": name, "mine": [text], "description": text}
    assert strip(png) == PIXEL


@given(st.sampled_from([b"", b"{", b"PK\x03\x04", PIXEL[:33], PIXEL]), st.binary(max_size=200))
def test_no_bytes_crash_the_reader(start: bytes, rest: bytes) -> None:
    with contextlib.suppress(TapsterError):
        assert import_file("x.bin", start + rest, id="x", now=NOW).name


@given(values)
def test_the_guard_counts_values_and_levels(value: Any) -> None:
    text = stringify(value)
    count, depth = _measure(parse_json(text))
    check_json(text.encode("utf-8", "surrogatepass"), JsonLimits(values=count + 2, depth=depth))
    for limits in (JsonLimits(values=max(0, _least(value) - 1), depth=99), JsonLimits(values=10**6, depth=depth - 1)):
        if (limits.values and limits.values < _least(value)) or 0 <= limits.depth < depth:
            try:
                check_json(text.encode("utf-8", "surrogatepass"), limits)
            except FormatError:
                continue
            raise AssertionError(limits)


def _measure(value: Any) -> tuple[int, int]:
    members = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    below = [_measure(member) for member in members]
    depth = 1 + max((depth for _, depth in below), default=0) if isinstance(value, dict | list) else 0
    return 1 + sum(count for count, _ in below) + bool(members), depth


def _least(value: Any) -> int:
    members = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return 1 + sum(_least(member) for member in members)


@given(st.binary(max_size=60))
def test_lenient_base64_reads_what_strict_base64_wrote(data: bytes) -> None:
    for encoded in (base64.b64encode(data), base64.urlsafe_b64encode(data).rstrip(b"="), base64.encodebytes(data)):
        assert decode_base64(encoded) == data


@given(st.dictionaries(st.text(min_size=1, max_size=8), st.binary(max_size=40), max_size=4))
def test_a_zip_gives_back_its_members(files: dict[str, bytes]) -> None:
    kept = {name: data for name, data in files.items() if not name.endswith("/")}
    members = read_zip(b"before" + write_zip([stored_member(name, data) for name, data in kept.items()]))
    assert {member.name: inflate(member) for member in members} == {
        name.encode("utf-8", "replace").decode(): data for name, data in kept.items()
    }


def test_the_contract_reads_what_it_wrote() -> None:
    card = parse_card({"name": "Ann"}, id="c", now=NOW)
    assert read_card_text(export_card_png(card, PIXEL)).text == '{"name":"Ann"}'
