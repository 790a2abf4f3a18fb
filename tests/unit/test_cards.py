"""Cards and their PNG container beyond the vectors."""

import pytest

from tapster.engine.errors import FormatError
from tapster.engine.formats import png
from tapster.engine.formats.cards import (
    blank_card,
    card_file_name,
    edit_card,
    export_card_json,
    export_card_png,
    parse_card,
    replace_embedded_book,
)
from tests.support.pngs import PIXEL, png_with

NOW = "2026-01-02T03:04:05.006Z"
V3 = {"spec": "chara_card_v3", "spec_version": "3.0", "data": {"name": "Ann", "assets": [], "mine": {"深": [1]}}}


def test_a_card_keeps_every_chunk_of_its_cover() -> None:
    cover = png_with((b"tEXt", b"Software\0x"), (b"prVt", b"\x00\xff"), (b"tEXt", b"chara\0e30="))
    card = parse_card(V3, id="c", now=NOW)
    data = export_card_png(card, png.strip(cover))
    again = parse_card(data, id="c", now=NOW)
    assert again.source.raw == V3
    assert again.source.png_keyword == "ccv3"
    kept = [(chunk.type, chunk.data) for chunk in png.iter_chunks(data) if not png.is_card_chunk(chunk)]
    assert kept == [(chunk.type, chunk.data) for chunk in png.iter_chunks(png.strip(cover))]


def test_json_export_keeps_member_order() -> None:
    text = '{"zeta":1,"name":"Ann","alpha":2}'
    card = parse_card(text, id="c", now=NOW)
    assert export_card_json(card).decode() == '{\n  "zeta": 1,\n  "name": "Ann",\n  "alpha": 2\n}\n'


def test_an_edit_changes_only_its_member() -> None:
    card = edit_card(parse_card(V3, id="c", now=NOW), {"description": "calm"}, now=NOW)
    assert card.source.raw == {**V3, "data": {**V3["data"], "description": "calm"}}  # type: ignore[dict-item]


def test_an_embedded_book_is_replaced_in_data_and_raw() -> None:
    card = replace_embedded_book(parse_card(V3, id="c", now=NOW), {"entries": []}, now=NOW)
    assert card.data.character_book == card.source.raw["data"]["character_book"] == {"entries": []}


def test_a_blank_card_is_version_2() -> None:
    card = blank_card(id="c", now=NOW)
    assert (card.source.format, card.name) == ("sillytavern-v2", "Untitled character")
    assert card_file_name(card) == "Untitled character.json"


def test_lone_surrogates_survive_a_png() -> None:
    card = parse_card('{"name":"a\\ud800"}', id="c", now=NOW)
    assert parse_card(export_card_png(card, PIXEL), id="c", now=NOW).data.name == "a\ud800"


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(FormatError) as caught:
        parse_card(b"\xff\xfe{", id="c", now=NOW)
    assert caught.value.slug == "card-bad-utf8"
