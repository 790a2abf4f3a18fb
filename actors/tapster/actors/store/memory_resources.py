"""Resources of the memory engine."""

from collections.abc import Sequence
from typing import final

import attrs

from tapster.engine.ecma import Json, is_record

from .codec import copy, encode, sha256
from .undo import UndoLog
from .values import ResourceHead, ResourceKind, ResourceUse, StoredResource

_Place = tuple[ResourceKind, str]


@final
class MemoryResources:
    """The ``Resources`` of memory."""

    def __init__(self, undo: UndoLog) -> None:
        self._undo = undo
        self._rows: dict[_Place, StoredResource] = {}
        self._kept: dict[ResourceUse, Json] = {}
        self._originals: dict[_Place, bytes] = {}
        self._covers: dict[_Place, bytes] = {}

    def get(self, kind: ResourceKind, resource_id: str) -> StoredResource | None:
        found = self._rows.get((kind, resource_id))
        return None if found is None else attrs.evolve(found, document=copy(found.document))

    def head(self, kind: ResourceKind, resource_id: str) -> ResourceHead | None:
        found = self._rows.get((kind, resource_id))
        return None if found is None else found.head

    def heads(self, kind: ResourceKind) -> tuple[ResourceHead, ...]:
        return tuple(row.head for place, row in self._rows.items() if place[0] == kind)

    def revision(self, kind: ResourceKind, resource_id: str, revision: str) -> Json | None:
        present = self._rows.get((kind, resource_id))
        if present is not None and present.head.revision == revision:
            return copy(present.document)
        return copy(self._kept.get(ResourceUse(kind, resource_id, revision)))

    def put(
        self,
        kind: ResourceKind,
        resource_id: str,
        document: Json,
        *,
        now: int,
        original: bytes | None = None,
        cover: bytes | None = None,
    ) -> ResourceHead:
        place = (kind, resource_id)
        before = self._rows.get(place)
        body = encode(document)
        if original is not None:
            self._undo.set(self._originals, place, original)
        if cover is not None:
            self._undo.set(self._covers, place, cover)
        name = document.get("name") if is_record(document) else None
        first = self._originals.get(place)
        head = ResourceHead(
            kind,
            resource_id,
            name if isinstance(name, str) else "",
            sha256(body),
            len(body),
            now if before is None else before.head.created_at,
            now,
            None if first is None else sha256(first),
            place in self._covers,
        )
        self._undo.set(self._rows, place, StoredResource(head, copy(document)))
        return head

    def delete(self, kind: ResourceKind, resource_id: str) -> bool:
        place = (kind, resource_id)
        self._undo.remove(self._originals, place)
        self._undo.remove(self._covers, place)
        return self._undo.remove(self._rows, place)

    def original(self, kind: ResourceKind, resource_id: str) -> bytes | None:
        return self._originals.get((kind, resource_id))

    def cover(self, kind: ResourceKind, resource_id: str) -> bytes | None:
        return self._covers.get((kind, resource_id))

    def drop_cover(self, kind: ResourceKind, resource_id: str) -> None:
        place = (kind, resource_id)
        found = self._rows.get(place)
        if found is not None and self._undo.remove(self._covers, place):
            self._undo.set(self._rows, place, StoredResource(attrs.evolve(found.head, has_cover=False), found.document))

    def keep(self, uses: Sequence[ResourceUse]) -> tuple[ResourceUse, ...]:
        """Hold on to the present revisions that a trace names; those that exist."""
        found = []
        for use in uses:
            document = self.revision(use.kind, use.id, use.revision)
            if document is not None:
                self._undo.set(self._kept, use, document)
                found.append(use)
        return tuple(found)

    def release(self, use: ResourceUse) -> None:
        """Let a revision go that no trace names any more."""
        self._undo.remove(self._kept, use)
