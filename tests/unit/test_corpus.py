"""Every file of the corpus imports, or is refused with words a person can act on; what imports comes back."""

import json
from pathlib import Path
from typing import Any

import pytest

from tapster.engine.ecma import parse_json
from tapster.engine.errors import FormatError
from tapster.engine.formats import Imported, RegexScripts, import_file, png
from tapster.engine.formats.cards import Card, export_card_json, export_card_png
from tapster.engine.formats.charx import export_charx
from tapster.engine.formats.chats import Chat, export_chat
from tapster.engine.formats.documents import from_document, to_document
from tapster.engine.formats.presets import Preset, edit_preset, preset_text, restore_preset
from tapster.engine.formats.world_books import WorldBookDocument, edit_world_book, restore_world_book

ROOT = Path(__file__).resolve().parents[2]
BESIDE = ROOT.parent / "shared" / "corpus"
CORPUS = BESIDE if BESIDE.is_dir() else None
NOW = "2026-01-02T03:04:05.006Z"
REFUSED = {
    "context_ChatML.json",
    "context_Llama-3-Instruct-Names.json",
    "instruct_ChatML.json",
    "quick_replies_Default.json",
    "settings_default_2024-09.json",
    "sysprompt_Actor.json",
    "reasoning_DeepSeek.json",
    "ejs_set.json",
    "nul_bytes.jsonl",
    "length_overflow.png",
    "no_card.png",
    "truncated.png",
    "ztxt_bomb.png",
}


def files() -> list[Path]:
    paths = sorted(CORPUS.rglob("*")) if CORPUS else []
    return [path for path in paths if path.is_file() and path.name not in ("README.md", "manifest.json")]


def read(path: Path, data: bytes | None = None) -> Imported:
    return import_file(path.name, path.read_bytes() if data is None else data, id="x", now=NOW)


def exported(imported: Imported) -> bytes:
    resource = imported.resource
    if isinstance(resource, Card):
        return export_card_json(resource)
    if isinstance(resource, Preset):
        return preset_text(restore_preset(resource)).encode("utf-8", "surrogatepass")
    if isinstance(resource, WorldBookDocument):
        return json.dumps(restore_world_book(resource.book)).encode()
    if isinstance(resource, Chat):
        return export_chat(resource)
    assert isinstance(resource, RegexScripts)
    return json.dumps(list(resource.scripts)).encode()


def model(imported: Imported) -> Any:
    """What must be equal after a round trip: everything but where the bytes came from."""
    resource = imported.resource
    if isinstance(resource, Card):
        return resource.data, resource.source.raw, resource.source.format
    if isinstance(resource, WorldBookDocument):
        return to_document(resource.book)
    if isinstance(resource, Chat):
        return resource.header, resource.messages
    if isinstance(resource, Preset):
        return to_document(resource)
    return resource


pytestmark = pytest.mark.skipif(CORPUS is None, reason="no corpus beside the checkout (../shared/corpus)")


@pytest.mark.parametrize("path", files(), ids=lambda path: path.name)
def test_each_file_imports_or_is_refused_in_words(path: Path) -> None:
    if path.name in REFUSED:
        with pytest.raises(FormatError) as caught:
            read(path)
        assert len(caught.value.message.split()) > 6
        return
    imported = read(path)
    assert imported.name
    if not isinstance(imported.resource, RegexScripts | Chat):
        assert from_document(type(imported.resource), to_document(imported.resource)) == imported.resource


@pytest.mark.parametrize("path", [path for path in files() if path.name not in REFUSED], ids=lambda path: path.name)
def test_import_export_import_gives_equal_models(path: Path) -> None:
    first = read(path)
    name = path.with_suffix(".json").name if first.kind == "card" else path.name
    again = import_file(name, exported(first), id="x", now=NOW)
    before, after = model(first), model(again)
    if isinstance(before, dict) and "raw" in before["source"]:
        before["source"].pop("raw")
        after["source"].pop("raw")
        before.pop("diagnostics", None)
        after.pop("diagnostics", None)
    assert after == before


@pytest.mark.parametrize(
    "path", [path for path in files() if path.suffix in (".json", ".settings")], ids=lambda path: path.name
)
def test_an_untouched_json_file_keeps_every_member(path: Path) -> None:
    try:
        imported = read(path)
    except FormatError:
        return
    raw = parse_json(path.read_text(encoding="utf-8"))
    back = parse_json(exported(imported).decode())
    notes = {note.code for note in imported.notes}
    if "book-converted" in notes:
        assert raw in (back.get("originalData"), {"spec": "lorebook_v3", "data": back})
    elif imported.kind == "preset" and "name" not in raw:
        assert {**raw, "name": imported.name} == back
    elif imported.kind == "regex_scripts":
        assert back == (raw if isinstance(raw, list) else [raw])
    elif "card-no-spec" not in notes:
        assert back == raw


@pytest.mark.parametrize("path", [path for path in files() if path.suffix == ".png"], ids=lambda path: path.name)
def test_a_png_keeps_its_pixels_and_unknown_chunks(path: Path) -> None:
    if path.name in REFUSED:
        return
    imported = read(path)
    assert isinstance(imported.resource, Card)
    assert imported.cover is not None
    out = export_card_png(imported.resource, imported.cover, every_form=True)
    again = read(path, out)
    assert isinstance(again.resource, Card)
    assert again.resource.source.raw == imported.resource.source.raw
    before, after = (
        [(chunk.type, chunk.data) for chunk in png.iter_chunks(data) if not png.is_card_chunk(chunk, every_form=True)]
        for data in (path.read_bytes(), out)
    )
    assert after == before


@pytest.mark.parametrize("path", [path for path in files() if path.suffix == ".charx"], ids=lambda path: path.name)
def test_a_charx_keeps_its_assets(path: Path) -> None:
    imported = read(path)
    assert isinstance(imported.resource, Card)
    again = read(path, export_charx(imported.resource, imported.assets))
    assert isinstance(again.resource, Card)
    assert again.resource.source.raw == imported.resource.source.raw
    assert again.assets == imported.assets
    assert again.cover == imported.cover


@pytest.mark.parametrize("path", [path for path in files() if path.suffix == ".json"], ids=lambda path: path.name)
def test_an_edit_changes_only_what_was_edited(path: Path) -> None:
    try:
        imported = read(path)
    except FormatError:
        return
    resource = imported.resource
    if isinstance(resource, WorldBookDocument):
        before = restore_world_book(resource.book)
        edited = edit_world_book(resource.book, {"description": "changed"}, new_uid=lambda: "new")
        assert restore_world_book(edited) == {**before, "description": "changed"}
    elif isinstance(resource, Preset):
        kept = {"temperature": resource.sampling.temperature, "maxTokens": resource.sampling.max_tokens}
        edited_preset = edit_preset(resource, {"name": "changed", "sampling": kept}, now=NOW)
        assert restore_preset(edited_preset) == {**restore_preset(resource), "name": "changed"}
