"""One reader for any file of a SillyTavern library: what it is, what it holds, what was odd about it.

The kind is found by content, never by the name alone. What Tapster cannot use is refused with words that say what the
file is and what to do.

Source: issue "Every format", "Reading profiles"; docs/formats.md.
"""

from collections.abc import Mapping
from typing import Literal

import attrs

from tapster.engine.ecma import Json
from tapster.engine.errors import FormatError
from tapster.engine.limits import CARD_BYTES, CHAT_BYTES, PRESET_BYTES, WORLD_BOOK_BYTES

from .cards.model import Card
from .cards.open import open_card_file
from .charx import is_charx
from .chats import Chat, parse_chat
from .embedded_books import embedded_book
from .file_kinds import kind_of_json, refuse_binary
from .json_guard import decode_text, load_json
from .notes import Note, Notes
from .personas import Persona
from .personas_file import read_personas
from .png import is_png
from .presets import Preset, parse_preset
from .profiles import Profile
from .world_books import WorldBookDocument, WorldBookValidationError, dotted_path, import_world_book
from .world_books.foreign import BookShape, book_shape
from .zip_files import ZipMember

_BOOK_PATH = "data.character_book"
_BOM = b"\xef\xbb\xbf"

Kind = Literal["card", "preset", "world_book", "regex_scripts", "chat", "personas"]


@attrs.frozen
class RegexScripts:
    """Regex scripts of a file, word for word."""

    scripts: tuple[Mapping[str, Json], ...]


@attrs.frozen
class Personas:
    """The personas of a file."""

    personas: tuple[Persona, ...]


Resource = Card | Preset | WorldBookDocument | RegexScripts | Chat | Personas


@attrs.frozen
class Imported:
    """A file that was read.

    ``profile`` is the one whose rules fitted; ``cover`` the card's picture as found (card chunks still in it),
    ``assets`` what a CHARX holds beside its card.
    """

    kind: Kind
    name: str
    resource: Resource
    profile: Profile
    notes: tuple[Note, ...] = ()
    cover: bytes | None = None
    assets: tuple[ZipMember, ...] = ()


def import_file(name: str, data: bytes, *, id: str, now: str, profile: Profile = "lenient") -> Imported:
    """The resource a file holds. ``id`` and ``now`` become the resource's own; a file of personas numbers them.

    Raises:
        FormatError: the file is damaged or too large; the message says what to do.
        UnsupportedFile: it is known, but nothing Tapster can use.
    """
    if len(data) > max(CARD_BYTES, CHAT_BYTES):
        raise _too_large("file", len(data), max(CARD_BYTES, CHAT_BYTES))
    if is_png(data) or is_charx(data):
        return _card(name, data, id, now, profile)
    refuse_binary(data)
    _refuse_empty(data)
    if _is_chat(name, data):
        chat = parse_chat(data)
        return Imported("chat", _stem(name), chat, profile, chat.notes)
    notes = Notes()
    return _json(name, _text(data, notes, profile), notes, id, now, profile)


def _json(name: str, text: str, notes: Notes, id: str, now: str, profile: Profile) -> Imported:
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > CARD_BYTES:
        raise _too_large("JSON file", size, CARD_BYTES)
    raw = load_json(text)
    kind = kind_of_json(raw)
    if kind == "card":
        return _card(name, text.encode("utf-8", "surrogatepass"), id, now, profile, notes)
    if kind == "world_book":
        shape = book_shape(raw)
        # The reader builds its own value from the text: two at once would double the peak.
        del raw
        return _world_book(name, text, shape, notes, id, now, profile)
    if kind == "preset":
        if size > PRESET_BYTES:
            raise _too_large("preset", size, PRESET_BYTES)
        return _preset(name, raw, notes, id, now, profile)
    if kind == "personas":
        personas = read_personas(raw, id, notes)
        return Imported("personas", _stem(name), Personas(personas), profile, tuple(notes.items))
    scripts = raw if isinstance(raw, list) else [raw]
    return Imported("regex_scripts", _stem(name), RegexScripts(tuple(scripts)), profile, tuple(notes.items))


def _card(name: str, data: bytes, id: str, now: str, profile: Profile, notes: Notes | None = None) -> Imported:
    if len(data) > CARD_BYTES:
        raise _too_large("card", len(data), CARD_BYTES, code="ARTIFACT_TOO_LARGE")
    opened = open_card_file(data, id=id, now=now, file_name=name, profile=profile)
    said = (*(notes.items if notes else ()), *opened.notes, *_book_notes(opened.card, profile))
    return Imported("card", opened.card.name, opened.card, opened.profile, said, opened.cover, opened.assets)


def _book_notes(card: Card, profile: Profile) -> tuple[Note, ...]:
    """What is odd about the card's own book; it never keeps the card from being imported."""
    notes = Notes()
    try:
        book = embedded_book(card, profile)
    except WorldBookValidationError as error:
        notes.add("embedded-book-unreadable", f"the card's world book will not be used: {error.message}", _BOOK_PATH)
        return tuple(notes.items)
    if book is not None and book.source.entry_container == "object-map":
        notes.add("entries_object", "'entries' of the card's book was an object", f"{_BOOK_PATH}.entries")
    for item in book.diagnostics if book else ():
        if item.code != "entries_object":
            notes.add(item.code, item.message, f"{_BOOK_PATH}.{dotted_path(item.path)}")
    return tuple(notes.items)


def _preset(name: str, raw: Json, notes: Notes, id: str, now: str, profile: Profile) -> Imported:
    own = raw.get("name")
    title = own if isinstance(own, str) and own.strip() else _stem(name)
    used: Profile = "contract"
    if not isinstance(raw.get("prompts"), list):
        used = profile
        notes.add("preset_without_prompts", "an old preset without 'prompts'; its texts took their default places")
    elif not raw.get("prompt_order"):
        notes.add("preset_without_prompt_order", "there is no 'prompt_order'; the prompts keep the order of the file")
    preset = parse_preset(raw, id=id, now=now, name=title, profile=profile)
    return Imported("preset", preset.name, preset, used, tuple(notes.items))


def _world_book(
    name: str, text: str, shape: BookShape | None, notes: Notes, id: str, now: str, profile: Profile
) -> Imported:
    data = text.encode("utf-8", "surrogatepass")
    if len(data) > WORLD_BOOK_BYTES:
        raise _too_large("world book", len(data), WORLD_BOOK_BYTES, code="WORLD_BOOK_ARTIFACT_TOO_LARGE")
    used, stored = profile, None
    if profile == "lenient" and shape in ("standalone", "embedded"):
        stored = _contract_book(name, data, id, now)
        used = profile if stored is None else "contract"
    if stored is None:
        stored = import_world_book(data, id=id, now=now, file_name=name, profile=profile)
    for item in stored.book.diagnostics:
        notes.add(item.code, item.message, dotted_path(item.path))
    return Imported("world_book", stored.name, stored, used, tuple(notes.items))


def _contract_book(name: str, data: bytes, id: str, now: str) -> WorldBookDocument | None:
    """The book by the contract's rules; None when another profile may still read it."""
    try:
        return import_world_book(data, id=id, now=now, file_name=name, profile="contract")
    except WorldBookValidationError as error:
        if error.over_limit:
            raise
        return None


def _refuse_empty(data: bytes) -> None:
    if not data.strip(b"\0 \t\r\n"):
        what = "only NUL bytes, as after a crash" if b"\0" in data else "nothing"
        raise FormatError("empty-file", f"the file holds {what}; restore it from a backup")


def _text(data: bytes, notes: Notes, profile: Profile) -> str:
    if profile != "contract" and data.startswith((b"\xff\xfe", b"\xfe\xff")):
        notes.add("utf-16", "the file is UTF-16; it was read as that")
        return data.decode("utf-16", "replace")
    if data.startswith(_BOM):
        notes.add("bom", "a byte-order mark at the start was skipped")
    return decode_text(data)


def _is_chat(name: str, data: bytes) -> bool:
    if name.lower().endswith(".jsonl"):
        return True
    first, newline, rest = data.removeprefix(_BOM).lstrip().partition(b"\n")
    starts = first.startswith(b"{") and first.rstrip().endswith(b"}")
    return bool(newline) and starts and rest[:4096].lstrip().startswith(b"{")


def _stem(name: str) -> str:
    return name.rpartition(".")[0] or name


def _too_large(what: str, size: int, limit: int, code: str = "FILE_TOO_LARGE") -> FormatError:
    return FormatError(
        "file-too-large", f"a {what} has at most {limit} bytes; this one has {size}", code=code, status=413
    )
