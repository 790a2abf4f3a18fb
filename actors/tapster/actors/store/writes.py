"""The changes a store can be asked for; each is one message, applied whole or not at all."""

from collections.abc import Mapping, Sequence
from typing import Any, final

import attrs

from tapster.engine.ecma import Json
from tapster.engine.policy import Selection, SelectionLimits

from .codec import same
from .errors import LogDiverged, LogGap
from .interface import Tables, Write
from .selections import SelectionTable
from .session_documents import forget_session
from .values import (
    ANY_BASE,
    Base,
    Document,
    DocumentKey,
    ResourceHead,
    ResourceKind,
    ResourceUse,
    SessionHead,
    SessionKey,
)


@final
@attrs.frozen
class PutDocument:
    """Write a document whole; its answer is the stored document."""

    key: DocumentKey
    value: Json
    now: int
    base: Base = ANY_BASE

    def apply(self, tables: Tables) -> Document:
        return tables.documents.put(self.key, self.value, base=self.base, now=self.now)

    def repeat(self, tables: Tables) -> Document:
        return tables.documents.get(self.key) or self.apply(tables)


@final
@attrs.frozen
class DeleteDocument:
    """Remove a document; its answer is whether there was one."""

    key: DocumentKey

    def apply(self, tables: Tables) -> bool:
        return tables.documents.delete(self.key)

    def repeat(self, tables: Tables) -> bool:
        return True


@final
@attrs.frozen
class PutResource:
    """Write a resource document; its answer is the new head."""

    kind: ResourceKind
    id: str
    document: Json
    now: int
    original: bytes | None = None
    cover: bytes | None = None

    def apply(self, tables: Tables) -> ResourceHead:
        return tables.resources.put(
            self.kind, self.id, self.document, now=self.now, original=self.original, cover=self.cover
        )

    def repeat(self, tables: Tables) -> ResourceHead:
        return tables.resources.head(self.kind, self.id) or self.apply(tables)


@final
@attrs.frozen
class CreateSession:
    """Begin a session's log, with a copy of its parent's events if it is a fork; its answer is the head.

    The selection is frozen in the same change: the session's own, else the parent's row, else the defaults.
    """

    key: SessionKey
    header: Json
    now: int
    parent: SessionKey | None = None
    seed_through: int | None = None
    defaults: Selection | None = None
    limits: SelectionLimits | None = None

    def apply(self, tables: Tables) -> SessionHead:
        head = tables.sessions.create(self.key, self.header, now=self.now)
        if self.parent is not None and self.seed_through is not None:
            next_seq = tables.sessions.copy_events(self.parent, self.key, self.seed_through, now=self.now)
            head = attrs.evolve(head, next_seq=next_seq)
        if self.defaults is not None:
            SelectionTable(tables, self.limits).ensure(self.key, self.parent, self.defaults, self.now)
        return head

    def repeat(self, tables: Tables) -> SessionHead:
        return tables.sessions.head(self.key) or self.apply(tables)


@final
@attrs.frozen
class AppendEvents:
    """Add events to a log, the first of them at ``first_seq``; its answer is the next seq.

    Events that are stored already with the same content are passed over, so a host may send its tail again.
    """

    key: SessionKey
    first_seq: int
    events: Sequence[Json]
    now: int

    def apply(self, tables: Tables) -> int:
        try:
            return tables.sessions.append(self.key, self.first_seq, self.events, now=self.now)
        except LogGap:
            head = tables.sessions.head(self.key)
            known = head.next_seq - self.first_seq if head is not None else 0
            if known <= 0:
                raise
        stored = tables.sessions.read(self.key, self.first_seq, len(self.events))
        for seq, (old, new) in enumerate(zip(stored, self.events, strict=False), self.first_seq):
            if not same(old, new):
                raise LogDiverged(f"session {self.key} has another event {seq}", details={"seq": seq})
        fresh = self.events[known:]
        next_seq = self.first_seq + len(stored)
        return tables.sessions.append(self.key, next_seq, fresh, now=self.now) if fresh else next_seq

    def repeat(self, tables: Tables) -> int:
        return self.first_seq + len(self.events)


@final
@attrs.frozen
class SetHeader:
    """Replace a log's header; its answer is the head."""

    key: SessionKey
    header: Json
    now: int

    def apply(self, tables: Tables) -> SessionHead:
        return tables.sessions.set_header(self.key, self.header, now=self.now)

    def repeat(self, tables: Tables) -> SessionHead:
        return self.apply(tables)


@final
@attrs.frozen
class DeleteSession:
    """Remove a session's log, selection, settings and state; its answer is whether there was a log."""

    key: SessionKey

    def apply(self, tables: Tables) -> bool:
        SelectionTable(tables).delete(self.key)
        forget_session(tables, self.key)
        return tables.sessions.delete(self.key)

    def repeat(self, tables: Tables) -> bool:
        return True


@final
@attrs.frozen
class PutTrace:
    """Write a trace record and keep the resource revisions it names; its answer is the record as stored."""

    key: SessionKey
    record: Json
    uses: Sequence[ResourceUse] = ()

    def apply(self, tables: Tables) -> Json:
        return tables.traces.put(self.key, self.record, self.uses)

    def repeat(self, tables: Tables) -> Json:
        return tables.traces.get(self.key, self.record["id"])


@final
@attrs.frozen
class SweepTraces:
    """Drop trace records beyond retention, at most ``limit``; its answer is how many went."""

    now: int
    limit: int

    def apply(self, tables: Tables) -> int:
        return tables.traces.sweep(self.now, self.limit)

    def repeat(self, tables: Tables) -> int:
        return 0


@final
@attrs.frozen
class PutAudits:
    """Set the v1 audits inside a session's records."""

    key: SessionKey
    audits: Sequence[Json]

    def apply(self, tables: Tables) -> None:
        tables.traces.put_audits(self.key, self.audits)

    def repeat(self, tables: Tables) -> None:
        return None


@final
@attrs.frozen
class MergeSelection:
    """Write a patch over a session's selection; its answer is the selection and whether it changed."""

    key: SessionKey
    patch: Mapping[str, Json]
    defaults: Selection
    now: int
    limits: SelectionLimits | None = None

    def apply(self, tables: Tables) -> tuple[Selection, bool]:
        return SelectionTable(tables, self.limits).merge(self.key, self.patch, self.defaults, self.now)

    def repeat(self, tables: Tables) -> tuple[Selection, bool]:
        return SelectionTable(tables).find(self.key) or self.defaults, False


@final
@attrs.frozen
class EnsureSelection:
    """Freeze a starting session's selection; its answer is the selection and whether it's new."""

    key: SessionKey
    parent: SessionKey | None
    defaults: Selection
    now: int
    limits: SelectionLimits | None = None

    def apply(self, tables: Tables) -> tuple[Selection, bool]:
        return SelectionTable(tables, self.limits).ensure(self.key, self.parent, self.defaults, self.now)

    def repeat(self, tables: Tables) -> tuple[Selection, bool]:
        return self.apply(tables)


@final
@attrs.frozen
class Together:
    """Several changes as one; its answer is the tuple of theirs."""

    writes: Sequence[Write[Any]]

    def apply(self, tables: Tables) -> tuple[Any, ...]:
        return tuple(write.apply(tables) for write in self.writes)

    def repeat(self, tables: Tables) -> tuple[Any, ...]:
        return tuple(write.repeat(tables) for write in self.writes)
