"""The store as the rest of Tapster sees it: typed writes that are durable when they return, and reads."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar, final

import trio

from tapster.engine.ecma import Json
from tapster.engine.policy import Selection, SelectionLimits
from tapster.runtime import ActorGone, Child, Clock, Overloaded, Threads

from .actor import Commit, Settle, StoreStatistics
from .errors import WriteUnknown
from .interface import Engine, EngineInfo, Tables, Write
from .selections import SelectionTable
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
    StoredResource,
    Warned,
)
from .writes import (
    AppendEvents,
    CreateSession,
    DeleteDocument,
    DeleteSession,
    EnsureSelection,
    MergeSelection,
    PutAudits,
    PutDocument,
    PutResource,
    PutTrace,
    SetHeader,
)

R = TypeVar("R")
QUEUED_WRITES: Final = 256
"""Writes under way; more wait in their askers' scopes. Two full batches of the largest measured burst."""


@final
class Store:
    """A handle on the open store.

    Every writing method returns once the change is durable.

    Raises (writes):
        CommitFailed: it didn't become durable; nothing of it remains, a retry is sane.
        StoreError: the data is locked, damaged or full in a way that the message names.
        WriteUnknown: the store failed in the middle of it; whether it became durable is in what is stored.
        ActorGone: the store closed first.

    Raises (reads):
        ReadFailed: something exists and can't be read; never answered as empty.

    Cancellation: a write that is still queued never happens; one in a batch is waited for, then ``Cancelled`` is
    raised.
    """

    def __init__(
        self,
        child: Child,
        reading: Callable[[], StoreStatistics],
        engine: Engine,
        readers: Threads,
        clock: Clock,
        selection_limits: SelectionLimits | None,
    ) -> None:
        self._child = child
        self._reading = reading
        self._engine = engine
        self._readers = readers
        self._clock = clock
        self._room = trio.Semaphore(QUEUED_WRITES)
        self.selection_limits = selection_limits

    @property
    def info(self) -> EngineInfo:
        """Engine, location, durability."""
        return self._engine.info

    @property
    def warnings(self) -> tuple[Warned, ...]:
        """What the start went on without."""
        return self._engine.warnings

    @property
    def now_ms(self) -> int:
        """The time that writes are stamped with."""
        return self._clock.now_ms()

    def statistics(self) -> StoreStatistics:
        """Queue, batches and commit times."""
        return self._reading()

    async def write(self, write: Write[R], *, key: str | None = None, applied: Callable[[R], None] | None = None) -> R:
        """Make a change durable, waiting for room.

        Args:
            key: idempotency key; a repeated write changes nothing and gives the same kind of answer.
            applied: called with the answer in commit order before this returns, even when the caller is leaving.

        Raises:
            TapsterError: the change itself was refused.
        """
        try:
            self._room.acquire_nowait()
        except trio.WouldBlock:
            await self._room.acquire()
        return await self._ask(write, key, applied)

    async def offer(self, write: Write[R], *, key: str | None = None, applied: Callable[[R], None] | None = None) -> R:
        """As ``write``, for borders.

        Raises:
            Overloaded: too many writes are under way.
        """
        try:
            self._room.acquire_nowait()
        except trio.WouldBlock:
            raise Overloaded("store") from None
        return await self._ask(write, key, applied)

    async def _ask(self, write: Write[R], key: str | None, applied: Callable[[R], None] | None) -> R:
        try:
            answer: R = await self._child.ask(Commit(write, key, applied))
            return answer
        except ActorGone as gone:
            if not gone.taken:
                raise
            raise WriteUnknown("the store failed in the middle of a write: look whether it is there") from None
        finally:
            self._room.release()

    @property
    def restarts(self) -> int:
        """How often the writing side crashed and began afresh."""
        return self._child.restarts

    async def wait_restart(self, since: int) -> None:
        """Wait until it crashed once more: what is stored may be more than what was acknowledged then."""
        while self.restarts == since:
            await self._child.state.wait_transition()

    async def read(self, question: Callable[[Tables], R]) -> R:
        """The answer of a function over one consistent view, computed in a reading thread."""
        return await self._readers.run(self._read_now, question, abandon_on_cancel=True)

    def _read_now(self, question: Callable[[Tables], R]) -> R:
        with self._engine.read() as tables:
            return question(tables)

    async def drain(self) -> None:
        """Wait until everything queued so far is durable or refused."""
        await self._child.ask(Settle())

    async def check(self) -> tuple[str, ...]:
        """What an integrity check finds wrong; empty when all is well."""
        return await self._readers.run(self._engine.check)

    async def backup(self, target: str) -> None:
        """Write a complete copy while serving."""
        await self._readers.run(self._engine.backup, target)

    # Documents ------------------------------------------------------------------------------------------------

    async def document(self, key: DocumentKey) -> Document | None:
        """A document, None when there is none."""
        return await self.read(lambda tables: tables.documents.get(key))

    async def documents(self, collection: str, scope: str | None = "") -> tuple[Document, ...]:
        """All of a collection in order of first writing; scope None = of all hosts."""
        return await self.read(lambda tables: tuple(tables.documents.items(collection, scope)))

    async def put_document(self, key: DocumentKey, value: Json, *, base: Base = ANY_BASE) -> Document:
        """Write a document whole if ``base`` is its present revision.

        Raises:
            DocumentConflict: it isn't; nothing was written.
        """
        return await self.write(PutDocument(key, value, self.now_ms, base))

    async def delete_document(self, key: DocumentKey) -> bool:
        """Remove a document; whether there was one."""
        return await self.write(DeleteDocument(key))

    # Resources ------------------------------------------------------------------------------------------------

    async def resource(self, kind: ResourceKind, resource_id: str) -> StoredResource | None:
        """A resource with its document, None when there is none."""
        return await self.read(lambda tables: tables.resources.get(kind, resource_id))

    async def resource_heads(self, kind: ResourceKind) -> tuple[ResourceHead, ...]:
        """All of a kind without bodies."""
        return await self.read(lambda tables: tables.resources.heads(kind))

    async def resource_revision(self, kind: ResourceKind, resource_id: str, revision: str) -> Json | None:
        """The document of a revision, present or kept by a trace; None when it's gone."""
        return await self.read(lambda tables: tables.resources.revision(kind, resource_id, revision))

    async def original(self, kind: ResourceKind, resource_id: str) -> bytes | None:
        """The imported file, byte for byte."""
        return await self.read(lambda tables: tables.resources.original(kind, resource_id))

    async def cover(self, kind: ResourceKind, resource_id: str) -> bytes | None:
        """The cover image."""
        return await self.read(lambda tables: tables.resources.cover(kind, resource_id))

    async def put_resource(
        self,
        kind: ResourceKind,
        resource_id: str,
        document: Json,
        *,
        original: bytes | None = None,
        cover: bytes | None = None,
    ) -> ResourceHead:
        """Write a document; bytes given replace those stored, None leaves them."""
        return await self.write(PutResource(kind, resource_id, document, self.now_ms, original, cover))

    # Session logs -----------------------------------------------------------------------------------------------

    async def create_session(
        self,
        key: SessionKey,
        header: Json,
        *,
        parent: SessionKey | None = None,
        seed_through: int | None = None,
        defaults: Selection | None = None,
    ) -> SessionHead:
        """Begin a session's log; a fork gets its parent's events up to ``seed_through`` in the same change.

        Args:
            defaults: given, the selection is frozen too: the parent's row, else these.

        Raises:
            SessionLogExists, SessionLogMissing (the parent's), LogGap (``seed_through`` isn't in the parent's log).
        """
        write = CreateSession(key, header, self.now_ms, parent, seed_through, defaults, self.selection_limits)
        return await self.write(write)

    async def append_events(
        self, key: SessionKey, first_seq: int, events: Sequence[Json], *, idempotency_key: str | None = None
    ) -> int:
        """Add events to a log; its next seq.

        Raises:
            SessionLogMissing, LogGap: see there; nothing was written.
        """
        return await self.write(AppendEvents(key, first_seq, events, self.now_ms), key=idempotency_key)

    async def set_session_header(self, key: SessionKey, header: Json) -> SessionHead:
        """Replace a log's header.

        Raises:
            SessionLogMissing: there is no log.
        """
        return await self.write(SetHeader(key, header, self.now_ms))

    async def delete_session(self, key: SessionKey) -> bool:
        """Remove a session's log and selection; whether there was a log."""
        return await self.write(DeleteSession(key))

    async def session_head(self, key: SessionKey) -> SessionHead | None:
        """A log's head, None when there is none."""
        return await self.read(lambda tables: tables.sessions.head(key))

    async def session_heads(self, host: str | None = None) -> tuple[SessionHead, ...]:
        """All logs of a host, or of all, last changed first."""
        return await self.read(lambda tables: tables.sessions.heads(host))

    async def events(self, key: SessionKey, since: int = 0, limit: int | None = None) -> tuple[Json, ...]:
        """Events from a seq on, at most ``limit``."""
        return await self.read(lambda tables: tables.sessions.read(key, since, limit))

    async def latest_event(self, key: SessionKey, event_type: str, before: int | None = None) -> Json | None:
        """The last event of a type, below a seq if one is given."""
        return await self.read(lambda tables: tables.sessions.latest(key, event_type, before))

    # Traces -----------------------------------------------------------------------------------------------------

    async def put_trace(self, key: SessionKey, record: Json, uses: Sequence[ResourceUse] = ()) -> Json:
        """Write a trace record and keep the resource revisions it names; the record as stored.

        Raises:
            RequestError: it isn't a schema-4 record with a usable session and id.
        """
        return await self.write(PutTrace(key, record, uses))

    async def put_audits(self, key: SessionKey, audits: Sequence[Json]) -> None:
        """Set the v1 audits inside a session's records.

        Raises:
            RequestError: an audit has no capture id.
        """
        await self.write(PutAudits(key, audits))

    async def trace(self, key: SessionKey, record_id: str) -> Json | None:
        """One trace record."""
        return await self.read(lambda tables: tables.traces.get(key, record_id))

    async def traces(self, key: SessionKey) -> tuple[Json, ...]:
        """A session's trace records in write order."""
        return await self.read(lambda tables: tables.traces.of_session(key))

    async def trace_size(self) -> tuple[int, int]:
        """Trace records kept, and the bytes that retention counts."""
        return await self.read(lambda tables: tables.traces.size())

    # Selections -------------------------------------------------------------------------------------------------

    async def selection(self, key: SessionKey) -> Selection | None:
        """A session's stored selection, None when it has none."""
        return await self.read(lambda tables: SelectionTable(tables).find(key))

    async def merge_selection(
        self,
        key: SessionKey,
        patch: Mapping[str, Json],
        defaults: Selection,
        *,
        applied: Callable[[tuple[Selection, bool]], None] | None = None,
    ) -> tuple[Selection, bool]:
        """Write a patch over a session's selection; the selection and whether it changed.

        Raises:
            FormatError: slug ``bad-session-id`` or ``empty-session-id``.
            SessionSelectionLimitError: there is no room for another session.
        """
        write = MergeSelection(key, patch, defaults, self.now_ms, self.selection_limits)
        return await self.write(write, applied=applied)

    async def ensure_selection(
        self,
        key: SessionKey,
        parent: SessionKey | None,
        defaults: Selection,
        *,
        applied: Callable[[tuple[Selection, bool]], None] | None = None,
    ) -> tuple[Selection, bool]:
        """Freeze a starting session's selection; the selection and whether it's new.

        Raises:
            FormatError, SessionSelectionLimitError: as ``merge_selection``.
        """
        write = EnsureSelection(key, parent, defaults, self.now_ms, self.selection_limits)
        return await self.write(write, applied=applied)
