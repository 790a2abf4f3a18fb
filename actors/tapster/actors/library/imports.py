"""Bringing any file of a SillyTavern folder into the library: recognised by content, refused whole or taken whole."""

from functools import partial
from typing import Final, TypeAlias, final

import attrs

from tapster.actors.store import PutResource, ResourceHead, ResourceKind, Together
from tapster.engine.ecma import Json
from tapster.engine.errors import FormatError, RequestError
from tapster.engine.formats.cards import Card
from tapster.engine.formats.documents import to_document
from tapster.engine.formats.importing import Imported, Personas, import_file
from tapster.engine.formats.notes import Note, UnsupportedFile
from tapster.engine.formats.personas import Persona
from tapster.engine.formats.png import strip
from tapster.engine.formats.presets import Preset
from tapster.engine.formats.world_books import WorldBookDocument

from .core import LibraryCore

Row: TypeAlias = tuple[ResourceKind, str, str, Json, bytes | None, bytes | None]
"""Kind, id, name, document, the file's bytes, the cover."""
Keepable: TypeAlias = Card | Preset | WorldBookDocument | tuple[Persona, ...]
MAX_FILE_BYTES: Final = 64 * 1024 * 1024


@final
@attrs.frozen
class ImportedResource:
    """What a file became; several for a file of personas."""

    kind: ResourceKind
    id: str
    name: str


@final
@attrs.frozen
class ImportReport:
    """One file that was taken; ``profile`` says whose reading rules fitted."""

    file_name: str
    resources: tuple[ImportedResource, ...]
    profile: str
    notes: tuple[Note, ...] = ()


@final
class Imports:
    """Every method may raise a ``FormatError`` (the file), or a ``StoreError``; then nothing of the file is kept."""

    def __init__(self, core: LibraryCore) -> None:
        self._core = core

    async def import_file(self, file_name: str, data: bytes) -> ImportReport:
        """Take a card, preset, world book or persona file.

        Raises:
            FormatError: it is damaged, too large, or something Tapster can't keep in the library; the message says
                what it is and what to do.
        """
        if len(data) > MAX_FILE_BYTES:
            raise RequestError(
                f"{file_name} has {len(data)} bytes; no file of a library has more than {MAX_FILE_BYTES}",
                code="ARTIFACT_TOO_LARGE",
                status=413,
            )
        return await self._core.ask(self._import, file_name, data)

    async def _import(self, file_name: str, data: bytes) -> ImportReport:
        read = partial(import_file, file_name, data, id=self._core.ids.uuid(), now=self._core.now())
        imported: Imported = await self._core.compute(read)
        kept = self._identified(imported)
        rows = await self._core.compute(rows_of, kept, imported.cover, data)
        writes = [
            PutResource(kind, resource_id, document, self._core.clock.now_ms(), original, cover)
            for kind, resource_id, _, document, original, cover in rows
        ]
        await self._core.write(Together(tuple(writes)), self._publish)
        resources = tuple(ImportedResource(kind, resource_id, name) for kind, resource_id, name, *_ in rows)
        return ImportReport(file_name, resources, imported.profile, imported.notes)

    def _publish(self, heads: tuple[ResourceHead, ...]) -> None:
        for head in heads:
            self._core.publish(head)

    def _identified(self, imported: Imported) -> Keepable:
        match imported.resource:
            case Card() | Preset() as identified:
                return identified
            case WorldBookDocument() as book:
                return attrs.evolve(book, id=f"world-book-{self._core.ids.token(8)}")
            case Personas(personas):
                return tuple(attrs.evolve(persona, id=f"user-{self._core.ids.uuid()}") for persona in personas)
            case _:
                raise UnsupportedFile(
                    "unsupported-kind",
                    f"{imported.kind.replace('_', ' ')} aren't kept in the library by themselves; "
                    "a chat goes into `assemble --chat`, regex scripts belong to a preset or card",
                )


def rows_of(kept: Keepable, cover: bytes | None, data: bytes) -> list[Row]:
    """The rows that keep a file's resources; a world book of thousands of entries takes a tenth of a second."""
    match kept:
        case Card():
            picture = None if cover is None else picture_of(cover)
            return [("character", kept.id, kept.name, to_document(kept), data, picture)]
        case Preset():
            return [("preset", kept.id, kept.name, to_document(kept), data, None)]
        case WorldBookDocument():
            return [("world-book", kept.id, kept.name, to_document(kept), data, None)]
        case personas:
            return [("user", each.id, each.name, to_document(each), None, None) for each in personas]


def picture_of(png: bytes) -> bytes | None:
    """A card's picture without the card in it; None when the container is too damaged to be rewritten."""
    try:
        return strip(png, every_form=True)
    except FormatError:
        return None
