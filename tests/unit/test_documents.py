"""Values to stored documents and back."""

import pytest

from tapster.engine.formats.cards import Card, parse_card
from tapster.engine.formats.documents import DocumentInvalid, from_document, to_document
from tapster.engine.formats.personas import Persona
from tapster.engine.formats.presets import Preset, blank_preset, edit_preset, parse_preset
from tapster.engine.formats.world_books import WorldBookDocument, import_world_book

NOW = "2026-01-02T03:04:05.006Z"


def test_a_preset_survives_its_document() -> None:
    raw = {"prompts": [{"identifier": "a", "content": "x", "injection_depth": 2.5}], "stop": ["END"], "odd": [None]}
    preset = parse_preset(raw, id="p", now=NOW)
    document = to_document(preset)
    assert document["source"]["raw"] == raw
    assert "maxTokens" not in document["sampling"]
    assert from_document(Preset, document) == preset


def test_members_without_a_field_stand_beside_the_others() -> None:
    preset = edit_preset(blank_preset(id="p", now=NOW), {"prompts": [{"identifier": "a", "note": 1}]}, now=NOW)
    document = to_document(preset)
    assert document["prompts"][0]["note"] == 1
    assert from_document(Preset, document) == preset


def test_a_card_survives_its_document() -> None:
    card = parse_card(b'{"name":"Ann","character_book":null,"x":{"y":[1]}}', id="c", now=NOW)
    document = to_document(card)
    assert document["data"]["characterBook"] is None
    assert "specVersion" not in document["source"]
    assert from_document(Card, document) == card


def test_a_world_book_survives_its_document() -> None:
    data = b'{"entries":{"1":{"uid":"one","key":["a",2],"sticky":3,"characterFilter":{"names":["B"]}}}}'
    stored = import_world_book(data, id="b", now=NOW, file_name="b.json")
    document = to_document(stored)
    assert document["book"]["entries"][0]["scanDepth"] is None
    assert from_document(WorldBookDocument, document) == stored


@pytest.mark.parametrize(
    "document",
    [
        {"id": "u", "name": 5, "description": ""},
        {"id": "u", "name": True, "description": ""},
        {"id": "u"},
        ["u"],
    ],
)
def test_a_document_of_the_wrong_shape_is_refused(document: object) -> None:
    with pytest.raises(DocumentInvalid, match=r"\$"):
        from_document(Persona, document)


def test_an_unknown_word_is_refused_with_its_path() -> None:
    document = to_document(blank_preset(id="p", now=NOW))
    document["prompts"][0]["role"] = "narrator"
    with pytest.raises(DocumentInvalid, match=r"prompts\[0\]\.role"):
        from_document(Preset, document)


def test_true_is_not_schema_version_one() -> None:
    document = to_document(blank_preset(id="p", now=NOW))
    document["schemaVersion"] = True
    with pytest.raises(DocumentInvalid, match="schemaVersion"):
        from_document(Preset, document)
