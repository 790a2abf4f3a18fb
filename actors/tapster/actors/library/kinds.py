"""The four kinds of resources: their values, error codes and the words other documents use for them."""

from typing import Any, Final

import attrs

from tapster.actors.store import ResourceKind
from tapster.engine.ecma import Json
from tapster.engine.errors import StoreError
from tapster.engine.formats.cards import Card
from tapster.engine.formats.documents import DocumentInvalid, from_document
from tapster.engine.formats.personas import Persona
from tapster.engine.formats.presets import Preset
from tapster.engine.formats.world_books import WorldBookDocument
from tapster.engine.policy import OwnerKind

from .errors import ResourceExists, ResourceNotFound

MAX_ECHOED_ID: Final = 200
"""Characters of an id that an error gives back; a stored one is never longer."""


@attrs.frozen
class Kind:
    """One kind.

    Attributes:
        code: prefix of its error codes.
        selection: its name in selections.
        owner: its name as an owner of books, None for the books themselves.
        slug: of a bad id.
    """

    name: ResourceKind
    value: type[Any]
    code: str
    selection: str
    owner: OwnerKind | None
    slug: str

    def read(self, document: Json) -> Any:
        """The value a stored document holds.

        Raises:
            DocumentInvalid: code ``<KIND>_DOCUMENT_INVALID``.
        """
        try:
            return from_document(self.value, document)
        except DocumentInvalid as error:
            raise DocumentInvalid(error.message, code=f"{self.code}_DOCUMENT_INVALID") from error

    def unreadable(self, resource_id: str, error: StoreError) -> DocumentInvalid:
        """The error of a stored document that is there and isn't JSON."""
        return DocumentInvalid(f"{self.name} {resource_id}: {error.message}", code=f"{self.code}_DOCUMENT_INVALID")

    def missing(self, resource_id: str) -> ResourceNotFound:
        """The error of an id that nothing has."""
        return ResourceNotFound(
            f"no {self.name} has the id {resource_id!r:.120}",
            code=f"{self.code}_NOT_FOUND",
            details={"id": resource_id[:MAX_ECHOED_ID]},
        )

    def taken(self, resource_id: str) -> ResourceExists:
        """The error of an id that something has."""
        return ResourceExists(f"a {self.name} with the id {resource_id} exists", code=f"{self.code}_ID_EXISTS")


KINDS: Final[dict[ResourceKind, Kind]] = {
    "preset": Kind("preset", Preset, "PRESET", "preset", "preset", "bad-preset-id"),
    "character": Kind("character", Card, "CHARACTER", "character-card", "character", "bad-character-id"),
    "user": Kind("user", Persona, "USER", "user", "user", "bad-user-id"),
    "world-book": Kind("world-book", WorldBookDocument, "WORLD_BOOK", "world-book", None, "bad-world-book-id"),
}
