"""What a session has bound, as mode ``sillytavern`` scans it: compiled books, card, persona, scripts, context size."""

from collections.abc import Callable, Generator, Mapping
from functools import partial
from typing import Final, final

import attrs

from tapster.engine.activation import ActivationSettings
from tapster.engine.activation.sillytavern import (
    BookPlace,
    BookUse,
    CompiledScanBook,
    ScanSettings,
    compile_scan_book_in_parts,
    copied_book,
    scan_entries,
)
from tapster.engine.activation.tavern import BookSelection
from tapster.engine.activation.tavern.projector import ActivationDiagnostic
from tapster.engine.ecma import Json
from tapster.engine.errors import TapsterError
from tapster.engine.formats.cards import Card
from tapster.engine.formats.presets import Preset
from tapster.engine.formats.world_books import WorldBook, WorldBookDocument, parse_world_book
from tapster.engine.profile.render import named_outlets
from tapster.engine.profile.sillytavern import PromptPreset, ScanBook, ScanResources, own_scripts, prompt_preset_of
from tapster.engine.text.regex_scripts import RegexScript, scripts_in_force

from .cache import Slot
from .compiled import CompiledBooks
from .core import LibraryCore, Loaded

_PLACES: Final[Mapping[str, BookPlace]] = {
    "session": "global",
    "preset": "global",
    "user": "persona",
    "character": "character",
}
_ORDER: Final[tuple[BookPlace, ...]] = ("global", "chat", "persona", "character")


@attrs.frozen
class _PresetParts:
    """What a scan needs of a preset."""

    context_tokens: int
    response_tokens: int
    outlets: frozenset[str]
    scripts: tuple[RegexScript, ...]


@final
@attrs.frozen
class Scanning:
    """Makes scan resources; everything of a revision is made once."""

    core: LibraryCore
    compiled: CompiledBooks

    async def resources(
        self,
        settings: ActivationSettings,
        selection: BookSelection,
        books: Mapping[str, Loaded | TapsterError],
        preset: Loaded | TapsterError | None,
        card: Loaded | TapsterError | None,
        user: Loaded | TapsterError | None,
    ) -> ScanResources:
        """The resources of one session."""
        problems: list[ActivationDiagnostic] = []
        uses: list[ScanBook] = []
        names: list[str] = []
        for book_id in selection.effective_ids:
            loaded = books.get(book_id)
            if isinstance(loaded, Loaded):
                uses.append(await self._book(book_id, loaded, selection, settings.scan))
                names.append(loaded.value.name)
            else:
                problems.append(_unusable(book_id, loaded))
        uses.sort(key=lambda book: _ORDER.index(book.use.place))
        if isinstance(card, Loaded) and card.value.data.character_book is not None:
            try:
                uses.append(await self._embedded(card, names, settings.scan))
            except TapsterError as error:
                message = f"the card's embedded book can't be used: {error.message}"
                world = _embedded_world(card.value)
                problems.append(ActivationDiagnostic("EMBEDDED_WORLD_BOOK_INVALID", "warning", message, world))
        parts = await self._preset(preset) if isinstance(preset, Loaded) else _parts(PromptPreset(), None)
        return ScanResources(
            tuple(uses),
            card.value if isinstance(card, Loaded) else None,
            user.value if isinstance(user, Loaded) else None,
            scripts_in_force((), _card_scripts(card), parts.scripts, character_allowed=settings.card_scripts),
            parts.outlets,
            parts.context_tokens,
            parts.response_tokens,
            tuple(problems),
        )

    async def _book(self, book_id: str, loaded: Loaded, selection: BookSelection, settings: ScanSettings) -> ScanBook:
        document: WorldBookDocument = loaded.value
        sources = selection.binding_sources(book_id)
        places = {_PLACES[source] for source in sources}
        summary: dict[str, Json] = {
            "id": book_id,
            "name": document.name,
            "kind": "standalone-world-book",
            "updatedAt": document.updated_at,
            "bindingSources": list(sources),
            "format": document.book.source.format,
            "revision": loaded.head.revision,
        }
        slot = (loaded.head.kind, loaded.head.id, f"{loaded.head.revision} {_variant(settings)}")
        compiled = await self._compiled(slot, loaded, lambda: document.book, book_id, settings)
        place = next(place for place in _ORDER if place in places)
        return ScanBook(book_id, BookUse(place, compiled), summary, loaded.head.revision)

    async def _embedded(self, loaded: Loaded, names: list[str], settings: ScanSettings) -> ScanBook:
        card: Card = loaded.value
        raw: Json = card.data.character_book
        world = _embedded_world(card)
        slot = (loaded.head.kind, loaded.head.id, f"{loaded.head.revision} book {_variant(settings)}")
        compiled = await self._compiled(slot, loaded, partial(_parsed, raw), world, settings)
        linked = card.data.extensions.get("world")
        copy_of = copied_book(linked if isinstance(linked, str) else None, names)
        summary = {
            "id": world,
            "name": raw["name"] if isinstance(raw.get("name"), str) else "",
            "ownerCharacterId": card.id,
            "kind": "embedded-character-book",
            "format": "character-book-v2",
        }
        return ScanBook(world, BookUse("character", compiled, copy_of), summary)

    async def _compiled(
        self, slot: Slot, loaded: Loaded, book: Callable[[], WorldBook], world: str, settings: ScanSettings
    ) -> CompiledScanBook:
        make = partial(_compile, book, world, settings)
        return await self.compiled.get(slot, loaded.head.size_bytes, make)

    async def _preset(self, loaded: Loaded) -> _PresetParts:
        preset: Preset = loaded.value
        slot = (loaded.head.kind, loaded.head.id, f"{loaded.head.revision} scan")
        return await self.compiled.get(slot, loaded.head.size_bytes, partial(_preset_parts, preset))


def _card_scripts(card: Loaded | TapsterError | None) -> tuple[RegexScript, ...]:
    return own_scripts(card.value.source.raw) if isinstance(card, Loaded) else ()


def _variant(settings: ScanSettings) -> str:
    """The settings that a compiled book depends on, as part of its name in the cache."""
    reading = "exact" if settings.quirks == "exact" else "repaired"
    return f"scan {reading} case={settings.case_sensitive} whole={settings.match_whole_words}"


def _compile(
    book: Callable[[], WorldBook], world: str, settings: ScanSettings
) -> Generator[None, None, CompiledScanBook]:
    entries = scan_entries(world, book(), exact=settings.quirks == "exact")
    yield
    return (
        yield from compile_scan_book_in_parts(
            world, entries, case_sensitive=settings.case_sensitive, match_whole_words=settings.match_whole_words
        )
    )


def _parsed(raw: Json) -> WorldBook:
    return parse_world_book(raw, format="character-book-v2")


def _preset_parts(preset: Preset) -> Generator[None, None, _PresetParts]:
    yield
    return _parts(prompt_preset_of(preset).preset, preset)


def _parts(reading: PromptPreset, preset: Preset | None) -> _PresetParts:
    scripts = own_scripts(preset.source.raw) if preset is not None else ()
    return _PresetParts(reading.context_tokens, reading.response_tokens, named_outlets(preset), scripts)


def _embedded_world(card: Card) -> str:
    return f"character:{card.id}:embedded-world-book"


def _unusable(book_id: str, found: TapsterError | None) -> ActivationDiagnostic:
    if found is None:
        message = f"world book {book_id} is bound but not in the library"
        return ActivationDiagnostic("WORLD_BOOK_NOT_FOUND", "warning", message, book_id)
    message = f"world book {book_id} can't be used: {found.message}"
    return ActivationDiagnostic("WORLD_BOOK_DOCUMENT_INVALID", "warning", message, book_id)
