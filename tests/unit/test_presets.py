"""Presets beyond the vectors: what comes back unchanged, and what an edit touches."""

import pytest

from tapster.engine.errors import FormatError
from tapster.engine.formats.presets import (
    blank_preset,
    edit_preset,
    export_preset,
    parse_preset,
    preset_file_name,
    preset_text,
    restore_preset,
)

NOW = "2026-01-02T03:04:05.006Z"
LATER = "2026-01-02T03:04:06.006Z"
RAW = {
    "temperature": 0.7,
    "prompts": [
        {"identifier": "main", "role": "system", "content": "Hi", "odd": [1]},
        {"identifier": "x", "content": "there"},
    ],
    "prompt_order": [{"character_id": 100001, "order": [{"identifier": "x", "enabled": True}], "mine": 1}],
    "assistant_prefill": "Sure",
    "max_tokens": 9,
}


def test_an_untouched_preset_comes_back_as_it_was() -> None:
    assert restore_preset(parse_preset(RAW, id="p", now=NOW)) == RAW


def test_a_given_name_is_written_only_when_it_is_new() -> None:
    preset = parse_preset({"name": " Tea ", "prompts": []}, id="p", now=NOW)
    assert restore_preset(preset)["name"] == " Tea "
    renamed = edit_preset(preset, {"name": "Rum"}, now=LATER)
    assert restore_preset(renamed)["name"] == "Rum"


def test_an_edit_touches_only_its_own_members() -> None:
    preset = parse_preset(RAW, id="p", now=NOW)
    edited = edit_preset(preset, {"sampling": {"temperature": 0.1, "maxTokens": 9}}, now=LATER)
    assert restore_preset(edited) == {**RAW, "temperature": 0.1}


def test_the_contract_export_is_stable() -> None:
    once = export_preset(parse_preset(RAW, id="p", now=NOW))
    assert export_preset(parse_preset(once, id="p", now=NOW)) == once


def test_a_blank_preset_can_be_exported_and_read() -> None:
    blank = blank_preset(id="p", now=NOW)
    exported = export_preset(blank)
    assert exported["temperature"] == 1
    again = parse_preset(exported, id="p", now=NOW)
    assert [prompt.identifier for prompt in again.prompts] == ["main"]
    assert again.name == "Untitled preset"


def test_a_patch_is_an_object() -> None:
    with pytest.raises(FormatError) as caught:
        edit_preset(blank_preset(id="p", now=NOW), [], now=NOW)
    assert caught.value.slug == "preset-patch-not-object"


def test_text_and_file_name() -> None:
    preset = edit_preset(blank_preset(id="p", now=NOW), {"name": "a\x01b"}, now=NOW)
    assert preset_file_name(preset) == "ab.json"
    assert preset_text({"a": 1}) == '{\n  "a": 1\n}\n'
    assert preset_text({"a": 1}, compact=True) == '{"a":1}'
