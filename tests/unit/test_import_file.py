"""One reader for every kind of file: what it is taken for, what is forgiven, what is refused and in which words."""

import base64
import json
import zlib
from typing import Any

import pytest

from tapster.engine.errors import FormatError
from tapster.engine.formats import Imported, Personas, RegexScripts, UnsupportedFile, import_file, importing
from tapster.engine.formats.cards import Card
from tapster.engine.formats.charx import export_charx
from tapster.engine.formats.chats import Chat
from tapster.engine.formats.presets import Preset, restore_preset
from tapster.engine.formats.world_books import WorldBookDocument, import_world_book
from tapster.engine.formats.zip_files import read_zip, stored_member, write_zip
from tests.support.pngs import PIXEL, card_chunk, png_with

NOW = "2026-01-02T03:04:05.006Z"
BOOK_OBJECT = {"entries": {"0": {"keys": ["a"]}}}
BACKUP = {"personas": {"a.png": "Ann", "b.png": 5}, "persona_descriptions": {"a.png": {"description": "x"}}}
CARD = {"spec": "chara_card_v2", "spec_version": "2.0", "data": {"name": "Ann", "first_mes": "Hi"}}
TEXT = json.dumps(CARD)
ENCODED = base64.b64encode(TEXT.encode())


def read(name: str, value: Any, profile: Any = "lenient") -> Imported:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return import_file(name, data, id="x", now=NOW, profile=profile)


def codes(imported: Imported) -> list[str]:
    return [note.code for note in imported.notes]


@pytest.mark.parametrize(
    ("png", "profile", "code"),
    [
        (png_with(card_chunk(TEXT)), "contract", None),
        (png_with(before=(card_chunk(TEXT, "Chara"),)), "sillytavern", None),
        (png_with((b"zTXt", b"chara\0\0" + zlib.compress(ENCODED))), "lenient", "png-compressed-text"),
        (png_with((b"iTXt", b"CCV3\0\0\0\0\0" + ENCODED)), "lenient", "png-keyword-case"),
        (png_with((b"iTXt", b"chara\0\1\0en\0x\0" + zlib.compress(TEXT.encode()))), "lenient", "png-raw-json"),
        (png_with(card_chunk(TEXT))[:-12], "lenient", "png-no-iend"),
        (png_with(card_chunk(TEXT))[:-5], "lenient", "png-truncated-chunk"),
    ],
)  # fmt: skip
def test_pngs_of_every_form(png: bytes, profile: str, code: str | None) -> None:
    imported = read("a.png", png)
    assert (imported.kind, imported.name, imported.profile) == ("card", "Ann", profile)
    assert imported.cover == png
    assert code is None or code in codes(imported)


def test_sillytavern_refuses_a_wrong_checksum_and_the_contract_does_not_look() -> None:
    png = bytearray(png_with(card_chunk(TEXT)))
    png[-13] ^= 1  # the checksum of the card chunk
    assert read("a.png", bytes(png), "contract").name == "Ann"
    with pytest.raises(FormatError) as caught:
        read("a.png", bytes(png), "sillytavern")
    assert caught.value.slug == "png-bad-crc"


def test_sillytavern_takes_the_first_of_two_chunks_and_the_contract_the_last() -> None:
    other = TEXT.replace("Ann", "Ben")
    png = png_with(card_chunk(TEXT), card_chunk(other))
    assert read("a.png", png, "sillytavern").name == "Ann"
    assert read("a.png", png).name == "Ben"


def test_a_text_bomb_in_a_png_stops_at_the_limit() -> None:
    png = png_with((b"zTXt", b"chara\0\0" + zlib.compress(b"A" * 30_000_000)))
    with pytest.raises(FormatError) as caught:
        read("a.png", png)
    assert caught.value.slug == "png-metadata-limit"


@pytest.mark.parametrize(
    ("value", "kind", "profile", "code"),
    [
        (CARD, "card", "contract", None),
        ({"name": "Ann", "description": "x", "first_mes": ""}, "card", "contract", None),
        ({**CARD, "data": {"name": "Ann", "tags": "a, b", "description": None}}, "card", "lenient", "type"),
        ({**CARD, "data": {"name": ""}}, "card", "contract", "empty_name"),
        ({"char_name": "Ann", "char_greeting": "Hi"}, "card", "lenient", "pygmalion-card"),
        ({"data": {"name": "Ann", "first_mes": ""}}, "card", "lenient", "card-no-spec"),
        ({"spec": "chara_card_v2", "name": "Ann"}, "card", "lenient", "card-no-data"),
        ({**CARD, "data": {"name": "A", "character_book": {}}}, "card", "contract", "embedded-book-unreadable"),
        ({**CARD, "data": {"name": "A", "character_book": BOOK_OBJECT}}, "card", "contract", "entries_object"),
        ({"entries": {}}, "world_book", "contract", None),
        ({"entries": {"0": None, "1": {"key": "a, b"}}}, "world_book", "lenient", "invalid-entry"),
        ({"lorebookVersion": 5, "entries": [{"keys": ["a"], "text": "x"}]}, "world_book", "lenient", "book-converted"),
        ({"kind": "memory", "entries": [{"keywords": ["a"], "entry": "x"}]}, "world_book", "lenient", "book-converted"),
        ({"type": "risu", "data": [{"key": "a, b", "content": "x"}]}, "world_book", "lenient", "book-converted"),
        ({"spec": "lorebook_v3", "data": {"entries": []}}, "world_book", "lenient", "book-converted"),
        ({"prompts": [], "prompt_order": [{}]}, "preset", "contract", None),
        ({"temperature": 1, "openai_max_tokens": 9, "main_prompt": "x"}, "preset", "lenient", "preset_without_prompts"),
        ([{"scriptName": "a", "findRegex": "b"}], "regex_scripts", "lenient", None),
        ({"scriptName": "a", "findRegex": "b"}, "regex_scripts", "lenient", None),
        (BACKUP, "personas", "lenient", "type"),
        ({"id": "u1", "name": "Ann", "description": "x"}, "personas", "lenient", None),
    ],
)  # fmt: skip
def test_json_of_every_kind(value: Any, kind: str, profile: str, code: str | None) -> None:
    imported = read("harbour guard.json", value)
    assert (imported.kind, imported.profile) == (kind, profile)
    assert code in codes(imported) if code else imported.notes == ()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b'{"power_user":{},"user_avatar":"","temperature":1}', "settings.json"),
        (b'{"story_string":"","name":"x"}', "context template"),
        (b'{"input_sequence":"","output_sequence":""}', "instruct template"),
        (b'{"name":"x","content":"y"}', "system-prompt"),
        (b'{"temp":1,"rep_pen":1}', "text completion"),
        (b'{"name":"x","prefix":"","suffix":"","separator":""}', "reasoning"),
        (b'{"quickReplySlots":[]}', "quick replies"),
        (b'[{"template":"x"}]', "templates"),
        (b'{"a":1}', "members: a"),
        (b"[1]", "list"),
        (b"5", "single JSON value"),
        (b"GIF89a", "GIF"),
    ],
)
def test_what_tapster_cannot_use_is_named(data: bytes, words: str) -> None:
    with pytest.raises(UnsupportedFile, match=words):
        import_file("x.json", data, id="x", now=NOW)


@pytest.mark.parametrize(
    ("name", "data", "slug"),
    [
        ("x.json", b"", "empty-file"),
        ("x.jsonl", b"\0" * 99, "empty-file"),
        ("x.json", b'{"name":', "bad-json"),
        ("x.json", b'{"name":NaN}', "bad-json"),
        ("x.json", b'\xff{"name":1}', "bad-utf8"),
        ("x.json", b"[" * 100_000, "json-too-deep"),
        ("x.json", b"[" + b"[]," * 300_000 + b"[]]", "json-too-many-values"),
        ("x.json", b"{" + b'"a":1,' * 300_000 + b'"b":1}', "json-too-many-values"),
        ("x.jsonl", b"hello\nworld\n", "chat-unreadable"),
        ("x.png", PIXEL, "png-no-card"),
        ("x.charx", b"PK\x03\x04", "zip-no-directory"),
        ("x.charx", write_zip([stored_member("a", b"x")]), "charx-no-card"),
    ],
)
def test_what_is_damaged_is_refused_with_its_reason(name: str, data: bytes, slug: str) -> None:
    with pytest.raises(FormatError) as caught:
        import_file(name, data, id="x", now=NOW)
    assert caught.value.slug == slug


def test_the_kinds_of_resources() -> None:
    assert isinstance(read("a", CARD).resource, Card)
    assert isinstance(read("a", {"entries": []}).resource, WorldBookDocument)
    assert isinstance(read("a", {"prompts": []}).resource, Preset)
    assert isinstance(read("a", {"findRegex": "a", "placement": [1]}).resource, RegexScripts)
    assert isinstance(read("a", {"personas": {"a": "A"}}).resource, Personas)
    assert isinstance(read("a.jsonl", {"user_name": "x"}).resource, Chat)


def test_an_old_preset_gets_its_prompts_in_the_default_order_and_comes_back_as_it_was() -> None:
    raw = {"temperature": 1, "main_prompt": "Be brief.", "jailbreak_prompt": "Now.", "jailbreak_system": False}
    preset = read("Spring.settings", raw).resource
    assert isinstance(preset, Preset)
    assert (preset.name, preset.prompts[0].content, preset.prompts[-1].enabled) == ("Spring", "Be brief.", False)
    assert restore_preset(preset) == {**raw, "name": "Spring"}


def test_a_charx_comes_back_with_its_assets() -> None:
    card = {**CARD, "spec": "chara_card_v3", "data": {**CARD["data"], "assets": [  # type: ignore[dict-item]
        {"type": "icon", "name": "main", "uri": "embeded://assets/main.png", "ext": "png"}]}}  # fmt: skip
    members = [stored_member("card.json", json.dumps(card).encode()), stored_member("assets/main.png", PIXEL),
               stored_member("../out.txt", b"x"), stored_member("图.txt", b"y")]  # fmt: skip
    imported = read("a.charx", write_zip(members))
    assert isinstance(imported.resource, Card)
    assert imported.cover == PIXEL
    assert codes(imported) == ["zip-unsafe-path"]
    again = read("a.charx", export_charx(imported.resource, imported.assets))
    assert isinstance(again.resource, Card)
    assert again.resource.source.raw == card
    assert [member.name for member in again.assets] == ["assets/main.png", "图.txt"]


def test_a_zip_bomb_is_not_inflated() -> None:
    bomb = read_zip(write_zip([stored_member("card.json", b"x")]))[0]
    packed = zlib.compressobj(wbits=-15)
    data = packed.compress(b" " * 20_000_000) + packed.flush()
    claims_little = type(bomb)("card.json", 8, bomb.crc, 10, data)
    claims_much = type(bomb)("card.json", 8, bomb.crc, 20_000_000, data)
    for member, slug in ((claims_little, "zip-damaged"), (claims_much, "zip-member-too-large")):
        with pytest.raises(FormatError) as caught:
            read("a.charx", write_zip([member]))
        assert caught.value.slug == slug


def test_utf_16_and_marks_are_forgiven() -> None:
    assert codes(read("a.json", TEXT.encode("utf-16"))) == ["utf-16"]
    assert codes(read("a.json", b"\xef\xbb\xbf" + TEXT.encode())) == ["bom"]


def test_a_book_over_a_limit_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def counted(data: bytes, *, profile: str, **rest: Any) -> object:
        asked.append(profile)
        return import_world_book(data, profile=profile, **rest)  # type: ignore[arg-type]

    monkeypatch.setattr(importing, "import_world_book", counted)
    members = ",".join(f'"{number}":0' for number in range(100_001))
    with pytest.raises(FormatError, match="100000 JSON values"):
        import_file("large.json", f'{{"entries":{{}},{members}}}'.encode(), id="b", now=NOW)
    assert len(asked) == 1
