"""Character cards of the library (spec/resources §3, spec/http §5.2)."""

from collections.abc import Sequence
from typing import Final, final

import attrs

from tapster.actors.store import PutResource
from tapster.actors.store.codec import encode, sha256
from tapster.engine.ecma import Json, is_record
from tapster.engine.errors import RequestError, StoreError
from tapster.engine.formats.cards import (
    Card,
    blank_card,
    card_file_name,
    edit_card,
    export_card_json,
    export_card_png,
    parse_card,
    replace_embedded_book,
)
from tapster.engine.formats.documents import DocumentInvalid, to_document
from tapster.engine.formats.png import is_png, strip
from tapster.engine.formats.regex_scripts import read_regex_scripts, replace_regex_scripts
from tapster.engine.formats.world_books import parse_world_book
from tapster.engine.limits import CARD_BYTES, CARD_DOCUMENT_BYTES, EMBEDDED_BOOK_BYTES

from .core import LibraryCore
from .errors import TooLarge
from .files import JSON_TYPE, PNG_TYPE, ExportedFile
from .placeholder import PLACEHOLDER_PNG
from .sorting import bury, find_lost, read_state, sort_cards, unbury, with_order
from .writes import CHARACTER_STATE, DeleteResource, EditState, RelationLimits, Relink

_STATE_NAME: Final = CHARACTER_STATE.name


@final
class Characters:
    """Every method may raise a ``FormatError`` for bad input, ``CHARACTER_NOT_FOUND``, or a ``StoreError``."""

    def __init__(self, core: LibraryCore, limits: RelationLimits) -> None:
        self._core = core
        self._limits = limits

    async def list(self) -> Json:
        """``{characters, sorting, missingCharacters}`` in the order in force."""
        state = read_state(await self._core.state(_STATE_NAME))
        summaries = [card_summary(item.value) for item in await self._core.load_all("character")]
        return {
            "characters": sort_cards(summaries, state),
            "sorting": {"mode": state["characterSortMode"]},
            "missingCharacters": state["missingCharacters"],
        }

    async def get(self, character_id: str) -> Json:
        """The stored document."""
        return (await self._core.load("character", character_id)).document

    async def create(self, name: Json = None) -> Json:
        """A new blank card's summary."""
        return await self._core.ask(self._create, name)

    async def import_file(self, data: bytes, media_type: str = "", file_name: str | None = None) -> Json:
        """``{character, compatibility, recovery?}`` of a card file; the bytes tell its format.

        Raises:
            TooLarge: ``ARTIFACT_TOO_LARGE``.
        """
        return await self._core.ask(self._import, data, file_name)

    async def update(self, character_id: str, patch: Json) -> Json:
        """The document after an edit of its fields.

        Raises:
            TooLarge: ``CHARACTER_DOCUMENT_TOO_LARGE``.
        """
        return await self._core.ask(self._update, character_id, patch)

    async def set_book(self, character_id: str, book: Json) -> Json:
        """The document with another embedded book.

        Raises:
            TooLarge: ``CHARACTER_WORLD_BOOK_TOO_LARGE``, ``CHARACTER_DOCUMENT_TOO_LARGE``.
        """
        return await self._core.ask(self._set_book, character_id, book)

    async def delete(self, character_id: str) -> None:
        """Remove it with its uses; it's remembered, so that the same card can take its place again."""
        await self._core.ask(self._delete, character_id)

    async def export_json(self, character_id: str) -> ExportedFile:
        """The card's JSON as it was imported, with what was edited since."""
        card = (await self._core.load("character", character_id)).value
        return ExportedFile(await self._core.compute(export_card_json, card), JSON_TYPE, card_file_name(card))

    async def export_png(self, character_id: str) -> ExportedFile:
        """The card inside its cover image, or inside a placeholder."""
        card = (await self._core.load("character", character_id)).value
        cover = await self._core.store.cover("character", character_id)
        image = cover if cover is not None and is_png(cover) else PLACEHOLDER_PNG
        return ExportedFile(
            await self._core.compute(export_card_png, card, image), PNG_TYPE, card_file_name(card, "png")
        )

    async def original(self, character_id: str) -> bytes | None:
        """The imported file, byte for byte."""
        self._core.need("character", character_id)
        return await self._core.store.original("character", character_id)

    async def regex_scripts(self, character_id: str) -> Sequence[Json]:
        """Its regex scripts, word for word."""
        card: Card = (await self._core.load("character", character_id)).value
        return read_regex_scripts(card.source.raw)

    async def set_regex_scripts(self, character_id: str, scripts: Json) -> Sequence[Json]:
        """Replace its regex scripts."""
        return await self._core.ask(self._set_scripts, character_id, scripts)

    async def set_order(self, mode: Json, character_ids: Json = None) -> Json:
        """``{characters, sorting}`` after choosing an order.

        Raises:
            RequestError: the mode is unknown, or the ids aren't each stored card once.
        """
        return await self._core.ask(self._set_order, mode, character_ids)

    async def relink(self, previous_id: Json, character_id: Json) -> Json:
        """Put a card in a deleted card's place: ``{relinkedPlaythroughCount, relinkedSessionCount}``."""
        return await self._core.ask(self._relink, previous_id, character_id)

    async def _create(self, name: Json) -> Json:
        title = name if isinstance(name, str) and name.strip() else "Untitled character"
        card = blank_card(id=self._core.ids.uuid(), now=self._core.now(), name=title)
        await self._put(card)
        return card_summary(card)

    async def _import(self, data: bytes, file_name: str | None) -> Json:
        if len(data) > CARD_BYTES:
            raise TooLarge(f"a card file has at most {CARD_BYTES} bytes; this one has {len(data)}")
        identity, now = self._core.ids.uuid(), self._core.now()
        card = await self._core.compute(lambda: parse_card(data, id=identity, now=now, file_name=file_name))
        if card.source.sha256 is None:
            source = attrs.evolve(card.source, sha256=sha256(data), byte_length=len(data))
            card = attrs.evolve(card, source=source)
        cover = await self._core.compute(strip, data) if is_png(data) else None
        await self._put(card, data, cover)
        answer = {"character": card_summary(card), "compatibility": to_document(card.compatibility)}
        recovery = await self._recover(card)
        return answer if recovery is None else {**answer, "recovery": recovery}

    async def _recover(self, card: Card) -> Json | None:
        state = read_state(await self._core.state(_STATE_NAME))
        names = [head.name for head in self._core.heads("character")]
        found = find_lost(state, card.name, card.source.sha256, names)
        if found is None:
            return None
        recovery = {"previousId": found[0], "characterId": card.id, "match": found[1]}
        try:
            return {**recovery, "restored": True, **(await self._relink(found[0], card.id))}
        except StoreError as error:
            return {**recovery, "restored": False, "error": error.message}

    async def _update(self, character_id: str, patch: Json) -> Json:
        async with self._core.alone("character", character_id):
            card = (await self._core.load("character", character_id)).value
            now = self._core.now()
            return await self._replace(await self._core.compute(lambda: edit_card(card, patch, now=now)))

    async def _set_book(self, character_id: str, book: Json) -> Json:
        async with self._core.alone("character", character_id):
            card = (await self._core.load("character", character_id)).value
            await self._core.compute(check_embedded_book, book)
            return await self._replace(replace_embedded_book(card, book, now=self._core.now()))

    async def _set_scripts(self, character_id: str, scripts: Json) -> Sequence[Json]:
        async with self._core.alone("character", character_id):
            card: Card = (await self._core.load("character", character_id)).value
            raw = replace_regex_scripts(card.source.raw, scripts, kind="character", format=card.source.format)
            source = attrs.evolve(card.source, raw=raw)
            await self._replace(attrs.evolve(card, source=source, updated_at=self._core.now()))
            return read_regex_scripts(raw)

    async def _delete(self, character_id: str) -> None:
        async with self._core.alone("character", character_id):
            gone = await self._tombstone(character_id)
            write = DeleteResource(
                "character",
                character_id,
                self._limits,
                self._core.clock.now_ms(),
                lambda document: bury(document, gone),
            )
            await self._core.write(write, lambda cleared: self._core.deleted("character", character_id, cleared))

    async def _tombstone(self, character_id: str) -> dict[str, Json]:
        head = self._core.need("character", character_id)
        try:
            card: Card = (await self._core.load("character", character_id)).value
            digest = card.source.sha256
        except DocumentInvalid:
            digest = head.original_sha256  # a damaged card can be deleted, too
        gone = {"id": character_id, "name": head.name}
        return gone if digest is None else {**gone, "sha256": digest}

    async def _set_order(self, mode: Json, character_ids: Json) -> Json:
        present = [head.id for head in self._core.heads("character")]
        await self._core.write(
            EditState(
                CHARACTER_STATE,
                lambda document: with_order(document, mode, character_ids, present),
                self._core.clock.now_ms(),
            ),
            lambda _: self._core.counters.changed(_STATE_NAME),
        )
        listed = await self.list()
        return {"characters": listed["characters"], "sorting": listed["sorting"]}

    async def _relink(self, previous_id: Json, character_id: Json) -> Json:
        if not isinstance(previous_id, str) or not isinstance(character_id, str):
            raise RequestError("previousCharacterId and characterId must be card ids")
        self._core.need("character", character_id)
        now = self._core.clock.now_ms()
        sessions = await self._core.write(
            Relink(previous_id, character_id, now, self._core.store.selection_limits), self._core.selections_changed
        )
        await self._core.write(EditState(CHARACTER_STATE, lambda document: unbury(document, previous_id), now))
        return {"relinkedPlaythroughCount": 0, "relinkedSessionCount": len(sessions)}

    async def _replace(self, card: Card) -> Json:
        size = len(await self._core.compute(lambda: encode(to_document(card))))
        if size > CARD_DOCUMENT_BYTES:
            raise TooLarge(
                f"the card's document has {size} bytes, at most {CARD_DOCUMENT_BYTES} are stored",
                code="CHARACTER_DOCUMENT_TOO_LARGE",
            )
        return await self._put(card)

    async def _put(self, card: Card, original: bytes | None = None, cover: bytes | None = None) -> Json:
        document = await self._core.compute(to_document, card)
        write = PutResource("character", card.id, document, self._core.clock.now_ms(), original, cover)
        await self._core.write(write, self._core.publish)
        return document


def check_embedded_book(book: Json) -> None:
    """Refuse an embedded book that isn't one.

    Raises:
        RequestError: it has no list of entries.
        TooLarge: ``CHARACTER_WORLD_BOOK_TOO_LARGE``.
        WorldBookValidationError: it can't be read as a card's book.
    """
    if not is_record(book) or not isinstance(book.get("entries"), list):
        raise RequestError("characterBook must be an object with a list of entries")
    size = len(encode(book))
    if size > EMBEDDED_BOOK_BYTES:
        raise TooLarge(
            f"the book has {size} bytes, at most {EMBEDDED_BOOK_BYTES} are stored in a card",
            code="CHARACTER_WORLD_BOOK_TOO_LARGE",
        )
    parse_world_book(book, format="character-book-v2")


def card_summary(card: Card) -> dict[str, Json]:
    """What a list shows of a card."""
    book = card.data.character_book
    entries = book.get("entries") if book is not None else None
    return {
        "id": card.id,
        "name": card.name,
        "createdAt": card.created_at,
        "updatedAt": card.updated_at,
        "sourceFormat": card.source.format,
        "specVersion": card.source.spec_version,
        "container": card.source.container,
        "tags": list(card.data.tags),
        "creator": card.data.creator,
        "greetingCount": 1 + len(card.data.alternate_greetings),
        "embeddedBookEntryCount": len(entries) if isinstance(entries, list | dict) else 0,
        "warningCount": len(card.compatibility.warnings),
    }
