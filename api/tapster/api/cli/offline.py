"""An assembly without a server: files are read, the session's own computation runs, nothing is kept."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from io import UnsupportedOperation
from pathlib import Path
from typing import IO, Final, TypeVar

import attrs

from tapster.actors.scripts import open_regex_engine
from tapster.actors.session.compute import Computed, FrozenInput, compute
from tapster.actors.session.ports import Bound
from tapster.actors.session.rolls import RollSeed
from tapster.api.shown import profile_json
from tapster.engine.activation.tavern import (
    PRODUCT_MATCHING,
    LibraryBook,
    compile_book,
    compose_books,
    embedded_book,
)
from tapster.engine.ecma import Json, parse_json
from tapster.engine.errors import FormatError, SourceError, TapsterError
from tapster.engine.formats.cards import Card
from tapster.engine.formats.chats import Chat, parse_chat
from tapster.engine.formats.documents import to_document
from tapster.engine.formats.importing import Personas, RegexScripts, import_file
from tapster.engine.formats.personas import create_persona
from tapster.engine.formats.presets import Preset
from tapster.engine.formats.world_books import WorldBookDocument
from tapster.engine.policy import Selection
from tapster.engine.profile import ProfileCharacter, ProfileUser, ResolvedResources
from tapster.engine.projection import HistoryMessage, PendingInput

NOW: Final = "1970-01-01T00:00:00.000Z"
"""Stands for the import time of files that are read and forgotten."""
Parsed = TypeVar("Parsed")
MAX_FILE_BYTES: Final = 64 * 1024 * 1024


class FileUnreadable(SourceError):
    """A file can't be opened or isn't what it was given as; the message names it."""

    code = "FILE_UNREADABLE"


@attrs.frozen
class Files:
    """The files of an assembly; None is "not given"."""

    preset: Path | None = None
    card: Path | None = None
    worlds: tuple[Path, ...] = ()
    persona: Path | None = None
    chat: Path | None = None


@attrs.frozen(eq=False)
class Material:
    """What the files hold."""

    bound: Bound
    chat: Chat | None
    notes: tuple[str, ...] = ()


def read(files: Files) -> Material:
    """Read and parse every file.

    Raises:
        FileUnreadable: one of them can't be used; the message says which and why.
    """
    preset = None if files.preset is None else parsed(files.preset, read_preset)
    card = None if files.card is None else parsed(files.card, _card)
    user = None if files.persona is None else parsed(files.persona, _persona)
    books = {f"world-{index}": parsed(path, _book) for index, path in enumerate(files.worlds, 1)}
    chat = None if files.chat is None else parsed(files.chat, lambda path, data: parse_chat(data))
    embedded = None
    if card is not None and card.data.get("characterBook") is not None:
        embedded = embedded_book(card.id or "card", card.name, card.data["characterBook"], defaults=PRODUCT_MATCHING)
    bound = Bound(
        Selection("preset" if preset else None, "card" if card else None, "persona" if user else None, tuple(books)),
        ResolvedResources(preset, card, user),
        compose_books(list(books), [], [], []),
        {book_id: attrs.evolve(book, id=book_id) for book_id, book in books.items()},
        embedded,
    )
    notes = () if chat is None else tuple(f"{files.chat}: {note.message}" for note in chat.notes)
    return Material(bound, chat, notes)


def assemble(material: Material, *, message: str | None, user_name: str | None, seed: str) -> Json:
    """The assembly as JSON: sections, messages, entries with reasons, diagnostics, call config."""
    done = computed(material, message=message, user_name=user_name, seed=seed)
    sent = [{"role": item.role, "content": item.text} for item in _history(material)]
    if message is not None:
        sent.append({"role": "user", "content": message})
    return _result(done, sent, material.notes)


def computed(material: Material, *, message: str | None, user_name: str | None, seed: str) -> Computed:
    """What a session with these files bound would compute.

    Raises:
        ProfileTooLarge: preset, card and persona alone are over the byte budget.
    """
    frozen = FrozenInput(
        "assemble",
        PendingInput(),
        _history(material),
        material.bound,
        RollSeed(seed, 0, 0),
        {"user": user_name} if user_name else {},
        draft=message,
    )
    return compute(frozen, open_regex_engine())


def _history(material: Material) -> tuple[HistoryMessage, ...]:
    messages = () if material.chat is None else material.chat.messages
    return tuple(
        HistoryMessage(None, "user" if item.is_user else "assistant", item.text, "user" if item.is_user else None)
        for item in messages
        if not item.is_hidden
    )


def describe(result: Json) -> Iterator[str]:
    """The same for a person."""
    yield from describe_profile(result)
    yield f"Messages: {len(result['messages'])}"
    for item in result["messages"][-4:]:
        yield f"  {item['role']}: {_short(item['content'])}"
    yield from (f"note: {note}" for note in result["notes"])


def describe_profile(result: Json) -> Iterator[str]:
    """A compiled profile for a person: sections, entries with reasons, parameters, diagnostics."""
    yield f"System prompt: {len(result['sections'])} sections, mode {result['systemPromptMode']}"
    for section in result["sections"]:
        yield f"--- {section['name']}"
        yield section["text"]
    yield ""
    yield "World-book entries:"
    for entry in result["entries"]:
        mark = "+" if entry["decision"] == "included" else "-"
        hits = f" (keys: {', '.join(entry['primaryMatches'])})" if entry["primaryMatches"] else ""
        yield f"  {mark} {entry['entryName'] or entry['entryId']}: {entry['reason']}{hits}"
    yield ""
    yield f"Parameters: {', '.join(f'{key} = {value}' for key, value in result['callConfig'].items()) or 'none'}"
    for diagnostic in result["diagnostics"]:
        yield f"{diagnostic['severity']}: {diagnostic['message']} [{diagnostic['code']}]"


def _result(computed: Computed, messages: Sequence[Json], notes: Sequence[str]) -> Json:
    return {
        **profile_json(computed.snapshot),
        "messages": list(messages),
        "activation": computed.activation.to_json(),
        "notes": list(notes),
    }


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 100 else f"{line[:100]}…"


def read_bytes(path: Path) -> bytes:
    """A file's bytes, or those of standard input for ``-``.

    Raises:
        FileUnreadable: it can't be opened or is larger than any resource may be.
    """
    if str(path) == "-":
        return _standard_input()
    try:
        with path.open("rb") as file:
            return _bounded(file, str(path))
    except OSError as error:
        raise FileUnreadable(f"{path} can't be read: {error.strerror or error}") from error


def _standard_input() -> bytes:
    try:
        with suppress(UnsupportedOperation):
            # Whoever shares it may have made it answer "nothing yet" instead of waiting.
            os.set_blocking(sys.stdin.fileno(), True)
        return _bounded(sys.stdin.buffer, "standard input")
    except OSError as error:
        raise FileUnreadable(f"standard input can't be read: {error.strerror or error}") from error


def _bounded(file: IO[bytes], name: str) -> bytes:
    # Read rather than asked for its size: a pipe or a device has none, and may never end.
    data = file.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise FileUnreadable(f"{name} is larger than {MAX_FILE_BYTES // 2**20} MiB; no resource is that large")
    return data


def parsed(path: Path, parse: Callable[[Path, bytes], Parsed]) -> Parsed:
    """What a file holds, read by ``parse``.

    Raises:
        FileUnreadable: it can't be opened or used; the message names it and says why.
    """
    data = read_bytes(path)
    try:
        return parse(path, data)
    except TapsterError as error:
        raise FileUnreadable(f"{path}: {error.message}", code=error.code, details=error.details) from error


def decoded(data: bytes) -> str:
    """A file's UTF-8 text, without a byte-order mark."""
    try:
        return data.removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError as error:
        raise FormatError("bad-utf8", f"it is not UTF-8 at byte {error.start}") from error


def read_preset(path: Path, data: bytes) -> Preset:
    """The preset that a file holds, read as ``import`` reads it.

    Raises:
        FormatError: it holds none.
    """
    return _resource(path, data, "preset", Preset)


def read_card(path: Path, data: bytes) -> Card:
    """The card that a file holds, read as ``import`` reads it.

    Raises:
        FormatError: it holds none.
    """
    return _resource(path, data, "card", Card)


def read_book(path: Path, data: bytes) -> WorldBookDocument:
    """The world book that a file holds, read as ``import`` reads it.

    Raises:
        FormatError: it holds none.
    """
    return _resource(path, data, "world", WorldBookDocument)


def _resource(path: Path, data: bytes, id: str, kind: type[Parsed]) -> Parsed:
    resource = import_file(path.name, data, id=id, now=NOW).resource
    if not isinstance(resource, kind):
        raise FormatError("wrong-kind", f"it isn't {_WORDS[kind]} but {_WORDS[type(resource)]}")
    return resource


_WORDS: Final[Mapping[type, str]] = {
    Preset: "a preset",
    Card: "a character card",
    WorldBookDocument: "a world book",
    RegexScripts: "regex scripts",
    Chat: "a chat",
    Personas: "personas",
}


def _card(path: Path, data: bytes) -> ProfileCharacter:
    return ProfileCharacter.from_document(to_document(read_card(path, data)))


def standard_input() -> str:
    """What is given on standard input.

    Raises:
        FileUnreadable: it is closed, or larger than any resource may be.
        FormatError: it isn't UTF-8.
    """
    return decoded(_standard_input())


def persona_members(data: bytes) -> Json:
    """The members of a persona file that Tapster reads."""
    given = parse_json(decoded(data))
    known = ("name", "description")
    return {key: given[key] for key in known if key in given} if isinstance(given, dict) else given


def _persona(path: Path, data: bytes) -> ProfileUser:
    persona = create_persona(persona_members(data), generated_id="persona")
    return ProfileUser(persona.id, persona.name, persona.description)


def _book(path: Path, data: bytes) -> LibraryBook:
    document = read_book(path, data)
    return LibraryBook(document.id, document.name, compile_book(document.book, PRODUCT_MATCHING))
