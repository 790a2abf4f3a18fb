"""Which books a persona, preset or card brings along (spec/loader §5)."""

from collections.abc import Sequence
from typing import final

from tapster.actors.store import ResourceKind, Tables
from tapster.engine.ecma import Json
from tapster.engine.policy import OwnerKind, RelationState, check_book_ids

from .core import LibraryCore
from .writes import Naming, RelationLimits, SetRelation, load_relations


@final
class Relations:
    """Every method may raise ``<KIND>_NOT_FOUND``, a ``FormatError``, a ``RelationLimitError`` or a ``StoreError``."""

    def __init__(self, core: LibraryCore, limits: RelationLimits) -> None:
        self._core = core
        self._limits = limits

    async def books(self, owner: OwnerKind, owner_id: str) -> Sequence[str]:
        """The books of an owner, in order."""
        self._core.need(owner, owner_id)
        return (await self.state(owner)).books(owner, owner_id)

    async def set_books(self, owner: OwnerKind, owner_id: str, book_ids: Json) -> Sequence[str]:
        """Set the books of an owner; an empty list removes its relation. Owner and books must exist."""
        return await self._core.ask(self._set, owner, owner_id, book_ids)

    async def state(self, owner: OwnerKind) -> RelationState:
        """The whole relation document that an owner kind belongs to."""
        now = self._core.clock.now_ms()
        return await self._core.store.read(lambda tables: self.read(tables, owner, now))

    def read(self, tables: Tables, owner: OwnerKind, now: int) -> RelationState:
        """The same inside a read; ``now`` stands for times that the document lacks."""
        return load_relations(tables, *self._limits.place(owner), now)

    async def _set(self, owner: OwnerKind, owner_id: str, book_ids: Json) -> Sequence[str]:
        self._core.need(owner, owner_id)
        named: list[tuple[ResourceKind, str]] = [("world-book", book) for book in check_book_ids(book_ids)]
        for kind, resource_id in named:
            self._core.need(kind, resource_id)
        change = SetRelation((owner, owner_id), book_ids, self._limits, self._core.clock.now_ms())
        write = Naming([(owner, owner_id), *named], change)
        return await self._core.write(write, lambda _: self._core.counters.changed("relations"))
