"""Global settings documents (spec/loader §16): kept whole, checked by the engine's rules at the border."""

from typing import final

from tapster.actors.store import ANY_BASE, Base, DeleteDocument, Document, DocumentKey, PutDocument
from tapster.engine.ecma import Json

from .core import SETTINGS, LibraryCore


@final
class Settings:
    """Every method may raise a ``StoreError``."""

    def __init__(self, core: LibraryCore) -> None:
        self._core = core

    async def get(self, name: str) -> Json:
        """The stored value, None when there is none."""
        found = await self.document(name)
        return None if found is None else found.value

    async def document(self, name: str) -> Document | None:
        """The stored document with its revision, None when there is none.

        Raises:
            ReadFailed: there is one, and it can't be read; never answered as empty.
        """
        return await self._core.store.document(DocumentKey(SETTINGS, name))

    async def put(self, name: str, value: Json, base: Base = ANY_BASE) -> Document:
        """Write it whole.

        Raises:
            DocumentConflict: ``base`` isn't its present revision; nothing was written.
        """
        return await self._core.ask(self._put, name, value, base)

    async def delete(self, name: str) -> None:
        """Go back to the defaults."""
        await self._core.ask(self._delete, name)

    async def _put(self, name: str, value: Json, base: Base) -> Document:
        write = PutDocument(DocumentKey(SETTINGS, name), value, self._core.clock.now_ms(), base)
        return await self._core.write(write, lambda _: self._core.counters.changed("settings"))

    async def _delete(self, name: str) -> None:
        write = DeleteDocument(DocumentKey(SETTINGS, name))
        await self._core.write(write, lambda _: self._core.counters.changed("settings"))
