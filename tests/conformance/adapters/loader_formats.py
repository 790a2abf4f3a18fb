"""The resource areas of ``tavern_loader``: presets, cards, PNG, world books, personas, regex scripts."""

import base64
from typing import Any

from tapster.engine.formats import personas, png, presets, regex_scripts
from tapster.engine.formats.cards import Card, edit_card, parse_card
from tapster.engine.formats.documents import to_document
from tapster.engine.formats.world_books import (
    BookLimits,
    WorldBook,
    WorldBookValidationError,
    export_world_book,
    import_world_book,
    parse_world_book,
)
from tests.conformance.registry import adapter

Json = Any
STEM = "tavern_loader"
NOW = "2026-01-01T00:00:00.000Z"
_BOOK_LIMITS = {
    "maxEntries": "entries",
    "maxJsonDepth": "depth",
    "maxJsonNodes": "nodes",
    "maxStringCharacters": "string_units",
    "maxObjectKeyCharacters": "key_units",
}
_PNG_LIMITS = {"maxChunks": "chunks", "maxMetadataBytes": "metadata_bytes"}


def _preset(given: Json) -> presets.Preset:
    preset = presets.parse_preset(
        given["text"] if "text" in given else given["raw"], id="p", now=NOW, name=given.get("name")
    )
    return presets.edit_preset(preset, given["patch"], now=NOW) if "patch" in given else preset


def _summary(preset: presets.Preset) -> Json:
    sampling = dict.fromkeys(("temperature", "maxTokens", "reasoningEffort", "stop"))
    unset = {"injectionPosition": None, "injectionDepth": None}
    prompts = [{**unset, **to_document(prompt)} for prompt in preset.prompts]
    extra = {key for prompt in preset.prompts for key in prompt.extra}
    return {
        "name": preset.name,
        "selectedOrderCharacterId": preset.source.selected_order_character_id,
        "systemPromptMode": preset.system_prompt_mode,
        "sampling": {**sampling, **to_document(preset.sampling)},
        "prompts": [{key: value for key, value in item.items() if key not in {"st", *extra}} for item in prompts],
    }


@adapter(STEM, "preset.parse")
def preset_parse(given: Json) -> Json:
    return _summary(_preset(given))


@adapter(STEM, "preset.edit")
def preset_edit(given: Json) -> Json:
    summary = _summary(_preset(given))
    del summary["selectedOrderCharacterId"]
    return summary


@adapter(STEM, "preset.export")
def preset_export(given: Json) -> Json:
    return presets.export_preset(_preset(given))


@adapter(STEM, "regex.read")
def regex_read(given: Json) -> Json:
    return list(regex_scripts.read_regex_scripts(given["raw"]))


@adapter(STEM, "regex.replace")
def regex_replace(given: Json) -> Json:
    return regex_scripts.replace_regex_scripts(
        given["raw"], given["scripts"], kind=given["kind"], format=given["format"]
    )


def _card(given: Json) -> Card:
    if "bytes_b64" in given:
        return parse_card(base64.b64decode(given["bytes_b64"]), id="c", now=NOW)
    return parse_card(given["text"] if "text" in given else given["raw"], id="c", now=NOW)


@adapter(STEM, "card.parse")
def card_parse(given: Json) -> Json:
    card = _card(given)
    return {
        "format": card.source.format,
        "container": card.source.container,
        "specVersion": card.source.spec_version,
        "pngKeyword": card.source.png_keyword,
        "name": card.name,
        "data": to_document(card.data),
        "warnings": [item.code for item in card.compatibility.warnings],
        "unsupported": [item.code for item in card.compatibility.unsupported_features],
        "unknownMacros": list(card.compatibility.unknown_macro_names),
    }


@adapter(STEM, "card.edit")
def card_edit(given: Json) -> Json:
    card = edit_card(_card(given), given["patch"], now=NOW)
    return {
        "name": card.name,
        "raw": card.source.raw,
        "warnings": [item.code for item in card.compatibility.warnings],
        "unknownMacros": list(card.compatibility.unknown_macro_names),
    }


def _png_limits(given: Json) -> png.PngLimits:
    return png.PngLimits(**{_PNG_LIMITS[key]: value for key, value in (given.get("options") or {}).items()})


@adapter(STEM, "png.read")
def png_read(given: Json) -> Json:
    found = png.read_card_text(base64.b64decode(given["png_b64"]), _png_limits(given))
    return {"keyword": found.keyword, "availableKeywords": list(found.available_keywords), "jsonText": found.text}


@adapter(STEM, "png.embed")
def png_embed(given: Json) -> Json:
    data = png.embed(
        base64.b64decode(given["png_b64"]),
        given["jsonText"],
        given.get("keywords", ["chara"]),
        limits=_png_limits(given),
    )
    return {"png_b64": base64.b64encode(data).decode()}


@adapter(STEM, "png.strip")
def png_strip(given: Json) -> Json:
    data = png.strip(base64.b64decode(given["png_b64"]), limits=_png_limits(given))
    return {"png_b64": base64.b64encode(data).decode()}


def _book(given: Json) -> WorldBook:
    limits = BookLimits(**{_BOOK_LIMITS[key]: value for key, value in (given.get("limits") or {}).items()})
    return parse_world_book(
        given["text"] if "text" in given else given["raw"],
        format=given.get("format", "auto"),
        name=given.get("name"),
        limits=limits,
    )


def _findings(diagnostics: Json) -> Json:
    return [{"severity": item.severity, "code": item.code, "path": item.path} for item in diagnostics]


def _entry(document: Json) -> Json:
    source = document.pop("source")
    if document["characterFilter"]:
        del document["characterFilter"]["raw"]
    return {**document, "sourceKey": source["key"], "sourceIndex": source["index"]}


@adapter(STEM, "worldbook.parse")
def worldbook_parse(given: Json) -> Json:
    try:
        book = _book(given)
    except WorldBookValidationError as error:
        return {"error": {"type": type(error).__name__, "diagnostics": _findings(error.diagnostics)}}
    settings = {"scanDepth": None, "tokenBudget": None, "recursiveScanning": None}
    document = to_document(book)
    return {
        "format": book.source.format,
        "name": book.name,
        "description": book.description,
        "settings": {**settings, **document["settings"]},
        "entries": [_entry(entry) for entry in document["entries"]],
        "diagnostics": _findings(book.diagnostics),
    }


@adapter(STEM, "worldbook.export")
def worldbook_export(given: Json) -> Json:
    return export_world_book(_book(given), given["to"])


@adapter(STEM, "worldbook.store_import")
def worldbook_store_import(given: Json) -> Json:
    stored = import_world_book(given["text"].encode(), id="b", now=NOW, file_name=given["fileName"])
    return {"name": stored.name, "source": to_document(stored.source), "entryCount": len(stored.book.entries)}


@adapter(STEM, "user.create")
def user_create(given: Json) -> Json:
    persona = personas.create_persona(given["input"])
    return to_document(personas.update_persona(persona, given["patch"]) if "patch" in given else persona)
