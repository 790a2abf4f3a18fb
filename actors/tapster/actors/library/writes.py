"""Changes of the library that touch several kinds of state, each one transaction.

Source: spec/loader §4 "Deletion of … clears", §5.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Generic, TypeVar, final

import attrs

from tapster.actors.store import (
    ANY_BASE,
    Cleared,
    DocumentKey,
    ResourceKind,
    SelectionTable,
    SessionKey,
    Tables,
    Write,
)
from tapster.actors.store.codec import encode, iso_ms
from tapster.engine.ecma import Json, is_record
from tapster.engine.policy import (
    Owner,
    OwnerKind,
    RelationKind,
    RelationState,
    Selection,
    SelectionLimits,
    drop_book,
    drop_owner,
    read_relations,
    relations_json,
    set_relation,
)

from .core import STATE
from .kinds import KINDS

R = TypeVar("R")
USER_RELATIONS: Final = DocumentKey(STATE, "user-world-book-bindings")
RESOURCE_RELATIONS: Final = DocumentKey(STATE, "resource-world-book-bindings")
PRESET_STATE: Final = DocumentKey(STATE, "state")
CHARACTER_STATE: Final = DocumentKey(STATE, "character-state")


@attrs.frozen
class RelationLimits:
    """The two relation documents with their configured limits."""

    user: RelationKind
    resource: RelationKind

    def place(self, owner: OwnerKind) -> tuple[DocumentKey, RelationKind]:
        """The document that holds an owner's relation, and its limits."""
        return (USER_RELATIONS, self.user) if owner == "user" else (RESOURCE_RELATIONS, self.resource)


def load_relations(tables: Tables, place: DocumentKey, kind: RelationKind, now: int) -> RelationState:
    """The relations that a document holds; invalid ones are dropped."""
    found = tables.documents.get(place)
    return read_relations(None if found is None else encode(found.value), kind, now=iso_ms(now)).state


@final
@attrs.frozen
class SetRelation:
    """Set an owner's books; its answer is the checked ids."""

    owner: Owner
    books: Json
    limits: RelationLimits
    now: int

    def apply(self, tables: Tables) -> tuple[str, ...]:
        place, kind = self.limits.place(self.owner[0])
        before = load_relations(tables, place, kind, self.now)
        after = set_relation(before, self.owner, self.books, kind, now=iso_ms(self.now))
        if after != before:
            tables.documents.put(place, relations_json(after, kind), base=ANY_BASE, now=self.now)
        return after.books(*self.owner)

    def repeat(self, tables: Tables) -> tuple[str, ...]:
        return self.apply(tables)


@final
@attrs.frozen
class EditState:
    """Replace a shared document by what a pure rule makes of it; its answer is the new value."""

    key: DocumentKey
    edit: Callable[[Json | None], Json]
    now: int

    def apply(self, tables: Tables) -> Json:
        found = tables.documents.get(self.key)
        value = self.edit(None if found is None else found.value)
        tables.documents.put(self.key, value, base=ANY_BASE, now=self.now)
        return value

    def repeat(self, tables: Tables) -> Json:
        found = tables.documents.get(self.key)
        return None if found is None else found.value


@final
@attrs.frozen
class DeleteResource:
    """Remove a resource with every reference to it; its answer is what was cleared.

    ``bury`` changes the cards' shared document in the same transaction (a deleted card leaves a tombstone).
    """

    kind: ResourceKind
    id: str
    limits: RelationLimits
    now: int
    bury: Callable[[Json | None], Json] | None = None

    def apply(self, tables: Tables) -> Cleared:
        if not tables.resources.delete(self.kind, self.id):
            raise KINDS[self.kind].missing(self.id)
        sessions = SelectionTable(tables).clear(KINDS[self.kind].selection, self.id, self.now)
        relations = sum(self._clear(tables, *self.limits.place(owner)) for owner in self._owners())
        if self.kind == "preset":
            self._clear_default(tables)
        if self.bury is not None:
            EditState(CHARACTER_STATE, self.bury, self.now).apply(tables)
        return Cleared(sessions, relations)

    def repeat(self, tables: Tables) -> Cleared:
        return Cleared()

    def _owners(self) -> tuple[OwnerKind, ...]:
        """One owner kind for each relation document to change."""
        owner = KINDS[self.kind].owner
        return ("user", "preset") if owner is None else (owner,)

    def _clear(self, tables: Tables, place: DocumentKey, kind: RelationKind) -> int:
        owner = KINDS[self.kind].owner
        before = load_relations(tables, place, kind, self.now)
        after = (
            drop_book(before, self.id, now=iso_ms(self.now)) if owner is None else drop_owner(before, (owner, self.id))
        )
        if after == before:
            return 0
        tables.documents.put(place, relations_json(after, kind), base=ANY_BASE, now=self.now)
        return sum(after.relations.get(key) != relation for key, relation in before.relations.items())

    def _clear_default(self, tables: Tables) -> None:
        found = tables.documents.get(PRESET_STATE)
        if found is not None and is_record(found.value) and found.value.get("selectedId") == self.id:
            tables.documents.put(PRESET_STATE, {"schemaVersion": 1, "selectedId": None}, base=ANY_BASE, now=self.now)


@final
@attrs.frozen
class Relink:
    """Point every selection of one card at another; its answer is the sessions that changed."""

    previous: str
    card: str
    now: int
    limits: SelectionLimits | None = None

    def apply(self, tables: Tables) -> tuple[SessionKey, ...]:
        changed = []
        table = SelectionTable(tables, self.limits)
        for key, selection in table.all():
            if selection.character_card_id == self.previous:
                table.put(key, attrs.evolve(selection, character_card_id=self.card), self.now)
                changed.append(key)
        return tuple(changed)

    def repeat(self, tables: Tables) -> tuple[SessionKey, ...]:
        return self.apply(tables)


@final
@attrs.frozen
class Naming(Generic[R]):
    """A change that names resources: refused when one was deleted since it was looked at."""

    named: Sequence[tuple[ResourceKind, str]]
    write: Write[R]

    def apply(self, tables: Tables) -> R:
        for kind, resource_id in self.named:
            if tables.resources.head(kind, resource_id) is None:
                raise KINDS[kind].missing(resource_id)
        return self.write.apply(tables)

    def repeat(self, tables: Tables) -> R:
        return self.write.repeat(tables)


@final
@attrs.frozen
class Defaulting(Generic[R]):
    """A change that may fall back on the default preset, unless that was deleted since it was looked at."""

    defaults: Selection
    make: Callable[[Selection], Write[R]]

    def apply(self, tables: Tables) -> R:
        return self._made(tables).apply(tables)

    def repeat(self, tables: Tables) -> R:
        return self._made(tables).repeat(tables)

    def _made(self, tables: Tables) -> Write[R]:
        preset = self.defaults.preset_id
        if preset is not None and tables.resources.head("preset", preset) is None:
            return self.make(attrs.evolve(self.defaults, preset_id=None))
        return self.make(self.defaults)


def named_by(patch: Mapping[str, Json]) -> tuple[tuple[ResourceKind, str], ...]:
    """The resources that the members of a selection name."""
    members: tuple[tuple[ResourceKind, Json], ...] = (
        ("preset", patch.get("presetId")),
        ("character", patch.get("characterCardId")),
        ("user", patch.get("userId")),
        *(("world-book", book) for book in patch.get("worldBookIds") or ()),
    )
    return tuple((kind, str(identity)) for kind, identity in members if identity is not None)


@final
@attrs.frozen
class PutSelection:
    """Write a whole selection; its answer is whether it changed."""

    key: SessionKey
    selection: Selection
    now: int
    limits: SelectionLimits | None = None

    def apply(self, tables: Tables) -> bool:
        return SelectionTable(tables, self.limits).put(self.key, self.selection, self.now)

    def repeat(self, tables: Tables) -> bool:
        return False
