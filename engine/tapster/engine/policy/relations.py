"""Which books a persona, preset or card brings along: the two relation documents as pure state.

Source: spec/loader §5.
"""

import re
from collections.abc import Mapping
from typing import Literal, TypeAlias

import attrs

from tapster.engine.ecma import Json, is_record, parse_json, stringify, utf8
from tapster.engine.errors import FormatError, StoreError
from tapster.engine.limits import (
    MAX_BOUND_WORLD_BOOKS,
    RESOURCE_RELATION_BYTES_DEFAULT,
    RESOURCE_RELATION_BYTES_HARD,
    RESOURCE_RELATION_FILE_BYTES,
    RESOURCE_RELATIONS_DEFAULT,
    RESOURCE_RELATIONS_HARD,
    USER_RELATION_BYTES_DEFAULT,
    USER_RELATION_BYTES_HARD,
    USER_RELATION_FILE_BYTES,
    USER_RELATIONS_DEFAULT,
    USER_RELATIONS_HARD,
)

from .bounds import configured_limit

OwnerKind: TypeAlias = Literal["user", "preset", "character"]
Owner: TypeAlias = tuple[OwnerKind, str]
_RESOURCE_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")


class RelationLimitError(StoreError):
    """A relation document doesn't fit its capacity; ``code`` names the document and the limit."""

    code = "RESOURCE_WORLD_BOOK_BINDING_LIMIT_REACHED"


@attrs.frozen
class RelationKind:
    """One relation document: which owners it holds, its code prefix, its limits."""

    owners: tuple[OwnerKind, ...]
    prefix: str
    max_owners: int
    max_state_bytes: int
    max_file_bytes: int


def user_relations(max_users: Json = None, max_state_bytes: Json = None) -> RelationKind:
    """The document of personas' books, with its configured limits."""
    return RelationKind(
        ("user",),
        "USER_WORLD_BOOK_BINDING",
        configured_limit(max_users, USER_RELATIONS_DEFAULT, USER_RELATIONS_HARD),
        configured_limit(max_state_bytes, USER_RELATION_BYTES_DEFAULT, USER_RELATION_BYTES_HARD),
        USER_RELATION_FILE_BYTES,
    )


def resource_relations(max_bindings: Json = None, max_state_bytes: Json = None) -> RelationKind:
    """The document of presets' and cards' books, with its configured limits."""
    return RelationKind(
        ("preset", "character"),
        "RESOURCE_WORLD_BOOK_BINDING",
        configured_limit(max_bindings, RESOURCE_RELATIONS_DEFAULT, RESOURCE_RELATIONS_HARD),
        configured_limit(max_state_bytes, RESOURCE_RELATION_BYTES_DEFAULT, RESOURCE_RELATION_BYTES_HARD),
        RESOURCE_RELATION_FILE_BYTES,
    )


@attrs.frozen
class Relation:
    """One owner's books and when they were set (ISO 8601, UTC, milliseconds)."""

    world_book_ids: tuple[str, ...]
    updated_at: str


@attrs.frozen
class RelationState:
    """The relations of one document."""

    relations: Mapping[Owner, Relation] = attrs.field(factory=dict)

    def books(self, owner: OwnerKind, owner_id: str) -> tuple[str, ...]:
        """The books an owner brings along, empty for none."""
        found = self.relations.get((owner, owner_id))
        return () if found is None else found.world_book_ids


@attrs.frozen
class OpenedRelations:
    """A read document; ``rewrite`` says that the file must be written again."""

    state: RelationState
    rewrite: bool = False


def read_relations(data: bytes | None, kind: RelationKind, *, now: str) -> OpenedRelations:
    """The state a stored document holds; invalid records are dropped. ``data`` None is a missing file.

    Raises:
        RelationLimitError: the file is too large, or holds too many owners.
        FormatError: slug ``bad-json``.
    """
    if data is None:
        return OpenedRelations(RelationState())
    if len(data) > kind.max_file_bytes:
        raise _limit(kind, "FILE_TOO_LARGE", len(data), kind.max_file_bytes)
    document = parse_json(data.decode("utf-8", "replace"))
    bindings = document.get("bindings") if is_record(document) else None
    if not isinstance(bindings, dict) or document.get("schemaVersion") != 1:
        return OpenedRelations(RelationState())
    state = RelationState(
        {
            (owner, key): relation
            for owner in kind.owners
            for key, value in _owner_records(bindings, owner).items()
            if _RESOURCE_ID.fullmatch(key) and (relation := _read_relation(value, now)) is not None
        }
    )
    _check_count(state, kind)
    return OpenedRelations(state, stringify(document) != stringify(relations_json(state, kind)))


def _owner_records(bindings: Mapping[str, Json], owner: OwnerKind) -> Mapping[str, Json]:
    records = bindings if owner == "user" else bindings.get(owner)
    return records if isinstance(records, dict) else {}


def _read_relation(value: Json, now: str) -> Relation | None:
    books = value.get("worldBookIds") if is_record(value) else None
    try:
        checked = check_book_ids(books)
    except FormatError:
        return None
    updated = value.get("updatedAt")
    return Relation(checked, updated if isinstance(updated, str) else now) if checked else None


def relations_json(state: RelationState, kind: RelationKind) -> Json:
    """The document of a state."""
    by_owner: dict[str, dict[str, Json]] = {owner: {} for owner in kind.owners}
    for (owner, key), relation in state.relations.items():
        by_owner[owner][key] = {"worldBookIds": list(relation.world_book_ids), "updatedAt": relation.updated_at}
    return {"schemaVersion": 1, "bindings": by_owner["user"] if kind.owners == ("user",) else by_owner}


def relations_text(state: RelationState, kind: RelationKind) -> str:
    """The document as it's written: two-space indent, one newline at the end."""
    return stringify(relations_json(state, kind), indent=2) + "\n"


def check_book_ids(value: Json) -> tuple[str, ...]:
    """Checked book ids, each once, in order.

    Raises:
        FormatError: slug ``not-array``, ``too-many-world-books`` or ``bad-world-book-id``.
    """
    if not isinstance(value, list):
        raise FormatError("not-array", "the world books must be a list of ids")
    if len(value) > MAX_BOUND_WORLD_BOOKS:
        raise FormatError(
            "too-many-world-books", f"{len(value)} world books, at most {MAX_BOUND_WORLD_BOOKS} may be bound"
        )
    for book in value:
        if not isinstance(book, str) or not _RESOURCE_ID.fullmatch(book):
            raise FormatError("bad-world-book-id", f"{book!r:.120} is no world-book id (letters, digits, _ and -)")
    return tuple(dict.fromkeys(value))


def set_relation(state: RelationState, owner: Owner, books: Json, kind: RelationKind, *, now: str) -> RelationState:
    """Set an owner's books; an empty list removes its record.

    Raises:
        FormatError: slug ``not-array``, ``too-many-world-books``, ``bad-world-book-id`` or ``bad-owner-id``.
        RelationLimitError: the new state has no room.
    """
    if not _RESOURCE_ID.fullmatch(owner[1]):
        raise FormatError("bad-owner-id", f"{owner[1]!r:.120} is no {owner[0]} id (letters, digits, _ and -)")
    checked = check_book_ids(books)
    others = {key: value for key, value in state.relations.items() if key != owner or checked}
    after = RelationState({**others, owner: Relation(checked, now)} if checked else others)
    _check_count(after, kind)
    size = len(utf8(relations_text(after, kind)))
    if size > kind.max_state_bytes:
        raise _limit(kind, "STORAGE_LIMIT_REACHED", size, kind.max_state_bytes)
    return after


def drop_owner(state: RelationState, owner: Owner) -> RelationState:
    """The relations without those of a deleted owner."""
    return RelationState({key: value for key, value in state.relations.items() if key != owner})


def drop_book(state: RelationState, book: str, *, now: str) -> RelationState:
    """The relations without a deleted book; an owner left without books loses its record."""
    after: dict[Owner, Relation] = {}
    for key, value in state.relations.items():
        kept = tuple(item for item in value.world_book_ids if item != book)
        if kept:
            after[key] = value if kept == value.world_book_ids else Relation(kept, now)
    return RelationState(after)


def _check_count(state: RelationState, kind: RelationKind) -> None:
    if len(state.relations) > kind.max_owners:
        raise _limit(kind, "LIMIT_REACHED", len(state.relations), kind.max_owners)


def _limit(kind: RelationKind, suffix: str, actual: int, maximum: int) -> RelationLimitError:
    return RelationLimitError(
        f"the world-book relations ask for {actual}, at most {maximum} are allowed ({suffix.lower()})",
        code=f"{kind.prefix}_{suffix}",
        details={"actual": actual, "maximum": maximum},
    )
