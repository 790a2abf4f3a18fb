"""What kind of file a JSON value or a run of bytes is, and words for the kinds Tapster has no use for.

Source: docs/formats.md "What is refused".
"""

from collections.abc import Mapping
from typing import Literal

from tapster.engine.ecma import Json

from .notes import UnsupportedFile
from .presets.old import is_old_preset
from .world_books.foreign import book_shape

JsonKind = Literal["card", "preset", "world_book", "regex_scripts", "personas"]
_CARD_MARKS = ("first_mes", "personality", "mes_example", "char_greeting", "char_persona", "scenario", "description")
_PICTURES = {
    b"\xff\xd8\xff": "JPEG",
    b"GIF8": "GIF",
    b"RIFF": "WebP",
    b"%PDF": "PDF",
    b"SQLite format 3": "SQLite",
}
_REFUSED: tuple[tuple[tuple[str, ...], str], ...] = (
    (("power_user", "user_avatar"), "SillyTavern's settings.json; import its presets, cards and books one by one"),
    (("story_string",), "a context template for text completion; Tapster builds chat completions and does not use it"),
    (("input_sequence", "output_sequence"), "an instruct template for text completion; Tapster does not use it"),
    (("quickReplySlots",), "a set of quick replies (scripts of SillyTavern's page); Tapster does not run them"),
    (("qrList",), "a set of quick replies (scripts of SillyTavern's page); Tapster does not run them"),
    (("main_text_color",), "a theme of SillyTavern's page; Tapster has its own"),
    (("temp", "rep_pen"), "a sampling preset for text completion; Tapster needs a chat-completion preset"),
    (("prefix", "suffix", "separator"), "a reasoning template; Tapster takes reasoning from the model's own stream"),
    (("name", "content"), "a system-prompt preset; paste its text into a preset's main prompt"),
)


def kind_of_json(raw: Json) -> JsonKind:
    """The kind of a JSON value.

    Raises:
        UnsupportedFile: it is another kind, or none that is known.
    """
    if isinstance(raw, list):
        return _kind_of_list(raw)
    if not isinstance(raw, dict):
        raise UnsupportedFile("unknown-kind", "the file holds a single JSON value, not a card, preset, book or script")
    if _is_script(raw):
        return "regex_scripts"
    if "power_user" not in raw:
        kind = _kind_of_object(raw)
        if kind is not None:
            return kind
    for members, words in _REFUSED:
        if all(member in raw for member in members):
            raise UnsupportedFile("unsupported-kind", f"this is {words}")
    raise UnsupportedFile(
        "unknown-kind",
        f"this is no card, preset, world book, regex script, persona or chat (its members: {_members(raw)})",
    )


def _kind_of_object(raw: Mapping[str, Json]) -> JsonKind | None:
    data = raw.get("data")
    if isinstance(raw.get("personas"), dict) or _is_persona(raw):
        return "personas"
    if raw.get("spec") != "lorebook_v3" and (
        str(raw.get("spec", "")).startswith("chara_card") or "char_name" in raw or _has_card_fields(raw)
    ):
        return "card"
    if book_shape(raw) is not None:
        return "world_book"
    if isinstance(data, dict) and _has_card_fields(data):
        return "card"
    if isinstance(raw.get("prompts"), list) or "prompt_order" in raw or is_old_preset(raw):
        return "preset"
    return None


def _has_card_fields(raw: Mapping[str, Json]) -> bool:
    return "name" in raw and "entries" not in raw and any(mark in raw for mark in _CARD_MARKS)


def _is_persona(raw: Mapping[str, Json]) -> bool:
    return set(raw) <= {"id", "name", "description"} and "name" in raw


def _is_script(raw: Mapping[str, Json]) -> bool:
    return "findRegex" in raw and ("scriptName" in raw or "replaceString" in raw or "placement" in raw)


def _kind_of_list(raw: list[Json]) -> JsonKind:
    items = [item for item in raw if isinstance(item, dict)]
    if items and len(items) == len(raw) and all(_is_script(item) for item in items):
        return "regex_scripts"
    if any("template" in item for item in items):
        raise UnsupportedFile("unsupported-kind", "this is a list of templates; put them into prompts or book entries")
    raise UnsupportedFile("unknown-kind", "the file holds a list, but not of regex scripts")


def refuse_binary(data: bytes) -> None:
    """Refuse what is plainly no text.

    Raises:
        UnsupportedFile: a picture without a card, or another binary file.
    """
    for start, name in _PICTURES.items():
        if data.startswith(start):
            raise UnsupportedFile(
                "unsupported-kind",
                f"this is a {name} file; export the card as PNG, CHARX or JSON",
            )


def _members(raw: Mapping[str, Json]) -> str:
    shown = ", ".join(ascii(key)[1:-1][:30] for key in list(raw)[:8])
    return shown + (" …" if len(raw) > 8 else "") if raw else "none"
