"""Standalone world books of the library (spec/resources §7, spec/http §5.3)."""

from collections.abc import Sequence
from typing import final

import attrs

from tapster.actors.store import PutResource
from tapster.engine.ecma import Json, utf8
from tapster.engine.formats.documents import to_document
from tapster.engine.formats.world_books import (
    WorldBookDocument,
    edit_world_book,
    export_world_book,
    import_world_book,
    new_world_book,
    world_book_text,
)

from .core import LibraryCore
from .files import JSON_TYPE, ExportedFile
from .writes import DeleteResource, RelationLimits

_UID_CHARACTERS = 12
_ID_BYTES = 8


@final
class WorldBooks:
    """Every method may raise a ``FormatError`` for bad input, ``WORLD_BOOK_NOT_FOUND``, or a ``StoreError``."""

    def __init__(self, core: LibraryCore, limits: RelationLimits) -> None:
        self._core = core
        self._limits = limits

    async def list(self) -> Sequence[Json]:
        """Summaries, last changed first."""
        found = [book_summary(item.value) for item in await self._core.load_all("world-book")]
        by_id = sorted(found, key=lambda item: str(item["id"]))
        return sorted(by_id, key=lambda item: str(item["updatedAt"]), reverse=True)

    async def get(self, book_id: str) -> Json:
        """The stored document."""
        return (await self._core.load("world-book", book_id)).document

    async def create(self, name: Json = None) -> Json:
        """A new empty book's document."""
        return await self._core.ask(self._create, name)

    async def import_file(self, data: bytes, file_name: str | None = None) -> Json:
        """The document of a world-book file."""
        return await self._core.ask(self._import, data, file_name)

    async def update(self, book_id: str, patch: Json) -> Json:
        """The document after an edit; what the patch doesn't name survives."""
        return await self._core.ask(self._update, book_id, patch)

    async def delete(self, book_id: str) -> None:
        """Remove it with its uses: selections and all relations; never a card's own book."""
        await self._core.ask(self._delete, book_id)

    async def export(self, book_id: str) -> ExportedFile:
        """The book in its own format, members sorted."""
        book: WorldBookDocument = (await self._core.load("world-book", book_id)).value
        text = await self._core.compute(lambda: world_book_text(export_world_book(book.book, book.book.source.format)))
        return ExportedFile(utf8(text), JSON_TYPE, book.source.file_name)

    async def _create(self, name: Json) -> Json:
        title = name if isinstance(name, str) else ""
        return await self._put(new_world_book(id=self._new_id(), now=self._core.now(), name=title))

    async def _import(self, data: bytes, file_name: str | None) -> Json:
        identity, now = self._new_id(), self._core.now()
        book = await self._core.compute(lambda: import_world_book(data, id=identity, now=now, file_name=file_name))
        return await self._put(book, data)

    async def _update(self, book_id: str, patch: Json) -> Json:
        async with self._core.alone("world-book", book_id):
            document: WorldBookDocument = (await self._core.load("world-book", book_id)).value
            book = await self._core.compute(lambda: edit_world_book(document.book, patch, new_uid=self._new_uid))
            name = book.name or document.name
            return await self._put(attrs.evolve(document, book=book, name=name, updated_at=self._core.now()))

    async def _delete(self, book_id: str) -> None:
        async with self._core.alone("world-book", book_id):
            write = DeleteResource("world-book", book_id, self._limits, self._core.clock.now_ms())
            await self._core.write(write, lambda cleared: self._core.deleted("world-book", book_id, cleared))

    async def _put(self, book: WorldBookDocument, original: bytes | None = None) -> Json:
        document = await self._core.compute(to_document, book)
        write = PutResource("world-book", book.id, document, self._core.clock.now_ms(), original)
        await self._core.write(write, self._core.publish)
        return document

    def _new_id(self) -> str:
        return f"world-book-{self._core.ids.token(_ID_BYTES)}"

    def _new_uid(self) -> str:
        return f"entry-{self._core.ids.uuid()[:_UID_CHARACTERS]}"


def book_summary(document: WorldBookDocument) -> dict[str, Json]:
    """What a list shows of a book."""
    entries = document.book.entries
    return {
        "id": document.id,
        "name": document.name,
        "createdAt": document.created_at,
        "updatedAt": document.updated_at,
        "format": document.source.format,
        "entryCount": len(entries),
        "enabledEntryCount": sum(entry.enabled for entry in entries),
        "warningCount": sum(item.severity == "warning" for item in document.book.diagnostics),
    }
