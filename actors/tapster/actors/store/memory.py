"""The engine of tests: plain dictionaries, with savepoints by undo. Nothing survives ``close``.

It is a double, not a mock: the conformance suite runs against it as against the others, so that a test which uses it
sees what it would see with a disk, except crashes.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import final

import attrs

from tapster.engine.ecma import Json
from tapster.engine.errors import TapsterError

from .checks import check_append, check_copy, conflict, last_changed_first
from .checks import event_type as kind_of
from .codec import copy, encode, sha256
from .errors import SessionLogExists, SessionLogMissing
from .interface import Done, EngineInfo, Keyed, Outcome, Refused, Tables
from .memory_resources import MemoryResources
from .retention import Retention
from .undo import UndoLog
from .values import (
    AnyBase,
    Base,
    Document,
    DocumentKey,
    ResourceUse,
    SessionHead,
    SessionKey,
    Warned,
)


def _copied(document: Document) -> Document:
    return attrs.evolve(document, value=copy(document.value))


def _copied_head(head: SessionHead) -> SessionHead:
    return attrs.evolve(head, header=copy(head.header))


@final
class MemoryDocuments:
    """The ``Documents`` of memory."""

    def __init__(self, undo: UndoLog) -> None:
        self._undo = undo
        self._rows: dict[DocumentKey, Document] = {}

    def get(self, key: DocumentKey) -> Document | None:
        found = self._rows.get(key)
        return None if found is None else _copied(found)

    def put(self, key: DocumentKey, value: Json, *, base: Base, now: int) -> Document:
        present = self._rows.get(key)
        revision = None if present is None else present.revision
        if not isinstance(base, AnyBase) and base != revision:
            raise conflict(key, base, revision)
        document = Document(key, copy(value), sha256(encode(value)), now)
        self._undo.set(self._rows, key, document)
        return _copied(document)

    def delete(self, key: DocumentKey) -> bool:
        return self._undo.remove(self._rows, key)

    def items(self, collection: str, scope: str | None = "") -> Iterator[Document]:
        for key, document in list(self._rows.items()):
            if key.collection == collection and scope in (None, key.scope):
                yield _copied(document)

    def collections(self) -> tuple[str, ...]:
        return tuple(sorted({key.collection for key in self._rows}))

    def count(self, collection: str) -> tuple[int, int]:
        sizes = [len(encode(row.value)) for key, row in self._rows.items() if key.collection == collection]
        return len(sizes), sum(sizes)


@final
class MemorySessionLogs:
    """The ``SessionLogs`` of memory."""

    def __init__(self, undo: UndoLog) -> None:
        self._undo = undo
        self._heads: dict[SessionKey, SessionHead] = {}
        self._events: dict[SessionKey, list[Json]] = {}

    def create(self, key: SessionKey, header: Json, *, now: int) -> SessionHead:
        if key in self._heads:
            raise SessionLogExists(f"session {key} has a log already")
        self._undo.set(self._events, key, [])
        return self._write(SessionHead(key, copy(header), 0, now, now))

    def copy_events(self, source: SessionKey, target: SessionKey, through_seq: int, *, now: int) -> int:
        theirs, ours = self._need(source), self._need(target)
        check_copy(source, theirs.next_seq, target, ours.next_seq, through_seq)
        return self._extend(ours, self._events[source][: through_seq + 1], now)

    def append(self, key: SessionKey, first_seq: int, events: Sequence[Json], *, now: int) -> int:
        head = self._need(key)
        check_append(key, head.next_seq, first_seq, events)
        return self._extend(head, copy(list(events)), now)

    def set_header(self, key: SessionKey, header: Json, *, now: int) -> SessionHead:
        head = self._need(key)
        return self._write(SessionHead(key, copy(header), head.next_seq, head.created_at, now))

    def head(self, key: SessionKey) -> SessionHead | None:
        found = self._heads.get(key)
        return None if found is None else _copied_head(found)

    def heads(self, host: str | None = None) -> tuple[SessionHead, ...]:
        found = [head for key, head in self._heads.items() if host in (None, key.host)]
        return tuple(_copied_head(head) for head in last_changed_first(found))

    def read(self, key: SessionKey, since: int = 0, limit: int | None = None) -> tuple[Json, ...]:
        events = self._events.get(key, [])
        return tuple(copy(events[since : None if limit is None else since + limit]))

    def latest(self, key: SessionKey, event_type: str, before: int | None = None) -> Json | None:
        for event in reversed(self._events.get(key, [])[:before]):
            if kind_of(event) == event_type:
                return copy(event)
        return None

    def delete(self, key: SessionKey) -> bool:
        self._undo.remove(self._events, key)
        return self._undo.remove(self._heads, key)

    def _need(self, key: SessionKey) -> SessionHead:
        found = self._heads.get(key)
        if found is None:
            raise SessionLogMissing(f"session {key} has no log")
        return found

    def _extend(self, head: SessionHead, events: list[Json], now: int) -> int:
        self._undo.extend(self._events[head.key], events)
        next_seq = head.next_seq + len(events)
        self._write(SessionHead(head.key, head.header, next_seq, head.created_at, now))
        return next_seq

    def _write(self, head: SessionHead) -> SessionHead:
        self._undo.set(self._heads, head.key, head)
        return _copied_head(head)


@final
class MemoryTraces:
    """The ``Traces`` of memory."""

    def __init__(self, undo: UndoLog, resources: MemoryResources, retention: Retention) -> None:
        self._undo = undo
        self._resources = resources
        self._retention = retention
        self._rows: dict[tuple[SessionKey, str], tuple[Json, int, tuple[ResourceUse, ...]]] = {}

    def put(self, key: SessionKey, record: Json, uses: Sequence[ResourceUse] = ()) -> Json:
        record_id = record.get("id")
        present = self._rows.get((key, record_id))
        row = self._retention.row({**record, "sessionId": key.session}, present and present[0])
        kept = self._resources.keep(uses)
        self._undo.remove(self._rows, (key, record_id))
        self._undo.set(self._rows, (key, record_id), (copy(row.record), row.size_bytes, kept))
        self._forget(present[2] if present else ())
        self._evict(key, self._retention.recorded_at(row.record))
        return copy(row.record)

    def put_audits(self, key: SessionKey, audits: Sequence[Json]) -> None:
        for audit in audits:
            place = (key, audit.get("captureId"))
            present = self._rows.get(place)
            row = self._retention.audited(key.session, audit, present and present[0])
            if row is not None:
                self._undo.set(self._rows, place, (copy(row.record), row.size_bytes, present[2] if present else ()))
        self._evict(key, 0)

    def sweep(self, now: int, limit: int) -> int:
        before = len(self._rows)
        for key in self.sessions():
            self._evict(key, now)
        return before - len(self._rows)

    def get(self, key: SessionKey, record_id: str) -> Json | None:
        found = self._rows.get((key, record_id))
        return None if found is None else copy(found[0])

    def of_session(self, key: SessionKey) -> tuple[Json, ...]:
        return tuple(copy(row[0]) for place, row in self._rows.items() if place[0] == key)

    def sessions(self) -> tuple[SessionKey, ...]:
        return tuple(sorted({place[0] for place in self._rows}, key=lambda key: (key.host, key.session)))

    def in_order(self, host: str) -> Iterator[tuple[SessionKey, Json]]:
        for (key, _), row in list(self._rows.items()):
            if key.host == host:
                yield key, copy(row[0])

    def size(self) -> tuple[int, int]:
        return len(self._rows), sum(row[1] for row in self._rows.values())

    def _evict(self, key: SessionKey, now: int) -> None:
        keep = self._retention
        if keep.max_age_ms is not None:
            for place, row in list(self._rows.items()):
                if keep.recorded_at(row[0]) < now - keep.max_age_ms:
                    self._drop(place)
        if keep.max_per_session is not None:
            mine = [place for place in self._rows if place[0] == key]
            for place in mine[: max(0, len(mine) - keep.max_per_session)]:
                self._drop(place)
        while keep.is_over(*self.size()):
            self._drop(next(iter(self._rows)))

    def _drop(self, place: tuple[SessionKey, str]) -> None:
        uses = self._rows[place][2]
        self._undo.remove(self._rows, place)
        self._forget(uses)

    def _forget(self, uses: Sequence[ResourceUse]) -> None:
        named = {use for row in self._rows.values() for use in row[2]}
        for use in uses:
            if use not in named:
                self._resources.release(use)


@final
class MemoryTables:
    """The ``Tables`` of memory."""

    def __init__(self, retention: Retention) -> None:
        self.undo = UndoLog()
        self.documents = MemoryDocuments(self.undo)
        self.resources = MemoryResources(self.undo)
        self.sessions = MemorySessionLogs(self.undo)
        self.traces = MemoryTraces(self.undo, self.resources, retention)


@final
class MemoryEngine:
    """All state in this process's memory; one lock makes reads consistent."""

    def __init__(self, retention: Retention | None = None) -> None:
        self._tables = MemoryTables(retention or Retention())
        self._keys: dict[str, None] = {}
        self._lock = threading.Lock()

    @property
    def info(self) -> EngineInfo:
        """Engine, place and durability."""
        return EngineInfo("memory", "memory", "none")

    @property
    def warnings(self) -> tuple[Warned, ...]:
        """None: it starts empty."""
        return ()

    def commit(self, batch: Sequence[Keyed], now: int) -> list[Outcome]:
        """Apply the batch in order; a write that fails is undone alone, a bug undoes all."""
        with self._lock:
            try:
                return [self._apply(keyed) for keyed in batch]
            except BaseException:
                self._tables.undo.back_to(0)
                raise
            finally:
                self._tables.undo.forget()

    def _apply(self, keyed: Keyed) -> Outcome:
        mark = self._tables.undo.mark()
        try:
            is_repeat = keyed.key is not None and keyed.key in self._keys
            value = keyed.write.repeat(self._tables) if is_repeat else keyed.write.apply(self._tables)
        except TapsterError as error:
            self._tables.undo.back_to(mark)
            return Refused(error)
        if keyed.key is not None:
            self._tables.undo.set(self._keys, keyed.key, None)
        return Done(value)

    @contextmanager
    def read(self) -> Iterator[Tables]:
        """The state between two batches."""
        with self._lock:
            yield self._tables

    def tidy(self, now: int) -> None:
        """Nothing to do."""

    @property
    def is_behind(self) -> bool:
        """Never: nothing piles up."""
        return False

    def catch_up(self, *, beside: bool) -> None:
        """Nothing to do."""

    def check(self) -> tuple[str, ...]:
        """Nothing can be wrong."""
        return ()

    def backup(self, target: str) -> None:
        """Refused: there is nothing on disk.

        Raises:
            TapsterError: always.
        """
        raise TapsterError(f"the memory engine has no file to copy to {target}", code="BACKUP_UNSUPPORTED")

    def close(self) -> None:
        """Forget everything."""
