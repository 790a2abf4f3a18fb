"""One protocol for each kind of state, and the engine that holds them all.

Everything here is synchronous and used by one thread at a time: the store actor calls ``commit`` in its own thread, the
read pool calls ``read`` in others. Values that go in or come out are never shared with the engine's own state.

Engines: ``sqlite`` (default), ``files`` (the contract's JSON files), ``memory`` (a test double). An engine for a shared
database is another implementation of these protocols; nothing above them knows which one it has.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import attrs

from tapster.engine.ecma import Json
from tapster.engine.errors import TapsterError

from .values import (
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

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Documents(Protocol):
    """Small JSON documents in collections: selections, relations, templates, settings, strategies, chats."""

    def get(self, key: DocumentKey) -> Document | None:
        """The document, None when there is none.

        Raises:
            ReadFailed: there is one, and it can't be read.
        """

    def put(self, key: DocumentKey, value: Json, *, base: Base, now: int) -> Document:
        """Write it whole if its present revision is ``base``.

        Raises:
            DocumentConflict: it isn't; nothing was written.
        """

    def delete(self, key: DocumentKey) -> bool:
        """Remove it; whether there was one."""

    def items(self, collection: str, scope: str | None = "") -> Iterator[Document]:
        """All of a collection in order of first writing; scope None = of all hosts."""

    def collections(self) -> tuple[str, ...]:
        """Every collection that has a document."""

    def count(self, collection: str) -> tuple[int, int]:
        """How many documents a collection has, and the bytes of their values."""


class Resources(Protocol):
    """Library documents with the bytes they came from, and earlier revisions that a trace still names."""

    def get(self, kind: ResourceKind, resource_id: str) -> StoredResource | None:
        """The present revision, None when there is none.

        Raises:
            ReadFailed: there is one, and it can't be read.
        """

    def head(self, kind: ResourceKind, resource_id: str) -> ResourceHead | None:
        """The present revision without its body."""

    def heads(self, kind: ResourceKind) -> tuple[ResourceHead, ...]:
        """All of a kind; documents that can't be read are left out."""

    def revision(self, kind: ResourceKind, resource_id: str, revision: str) -> Json | None:
        """The document of a revision, present or kept; None when it's gone."""

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
        """Write a document; bytes given replace those stored, None leaves them."""

    def delete(self, kind: ResourceKind, resource_id: str) -> bool:
        """Remove it with its bytes; revisions that a trace names stay."""

    def original(self, kind: ResourceKind, resource_id: str) -> bytes | None:
        """The imported file, byte for byte."""

    def cover(self, kind: ResourceKind, resource_id: str) -> bytes | None:
        """The cover image."""

    def drop_cover(self, kind: ResourceKind, resource_id: str) -> None:
        """Forget the cover image."""


class SessionLogs(Protocol):
    """Append-only event logs of the embedded host's sessions; seq starts at 0 and has no gap."""

    def create(self, key: SessionKey, header: Json, *, now: int) -> SessionHead:
        """Begin a log.

        Raises:
            SessionLogExists: there is one.
        """

    def copy_events(self, source: SessionKey, target: SessionKey, through_seq: int, *, now: int) -> int:
        """Give an empty log a copy of another's events up to a seq, that one included; its next seq."""

    def append(self, key: SessionKey, first_seq: int, events: Sequence[Json], *, now: int) -> int:
        """Add events; the log's next seq.

        Raises:
            SessionLogMissing: there is no log.
            LogGap: ``first_seq`` isn't the log's next seq, or an event's own ``seq`` isn't its place.
        """

    def set_header(self, key: SessionKey, header: Json, *, now: int) -> SessionHead:
        """Replace a log's header.

        Raises:
            SessionLogMissing: there is no log.
        """

    def head(self, key: SessionKey) -> SessionHead | None:
        """A log's head, None when there is none."""

    def heads(self, host: str | None = None) -> tuple[SessionHead, ...]:
        """All logs, of one host or of all, last changed first."""

    def read(self, key: SessionKey, since: int = 0, limit: int | None = None) -> tuple[Json, ...]:
        """Events from a seq on, at most ``limit``; the cost depends on what is read, not on the log's length."""

    def latest(self, key: SessionKey, event_type: str, before: int | None = None) -> Json | None:
        """The last event of a type, below a seq if one is given; looked for from there backwards."""

    def delete(self, key: SessionKey) -> bool:
        """Remove a log; whether there was one."""


class Traces(Protocol):
    """Trace records of schema 4 under retention. Source: spec/trace §10."""

    def put(self, key: SessionKey, record: Json, uses: Sequence[ResourceUse] = ()) -> Json:
        """Write a record at the end of the write order, and drop what retention no longer keeps.

        Returns the record as stored: the minimal one when it is too big.

        Raises:
            FormatError: session id, record id or schema version is bad.
        """

    def put_audits(self, key: SessionKey, audits: Sequence[Json]) -> None:
        """Set the v1 audit of each record named by ``captureId``, creating records that aren't there.

        Raises:
            FormatError: an audit has no capture id.
        """

    def sweep(self, now: int, limit: int) -> int:
        """Drop up to ``limit`` records beyond retention's count, bytes and age at a time; how many went."""

    def get(self, key: SessionKey, record_id: str) -> Json | None:
        """One record."""

    def of_session(self, key: SessionKey) -> tuple[Json, ...]:
        """A session's records in write order."""

    def sessions(self) -> tuple[SessionKey, ...]:
        """Every session that has a record."""

    def in_order(self, host: str) -> Iterator[tuple[SessionKey, Json]]:
        """All records of a host's sessions in write order."""

    def size(self) -> tuple[int, int]:
        """Records kept, and the bytes that retention counts."""


class Tables(Protocol):
    """All state, inside one transaction or one consistent read."""

    @property
    def documents(self) -> Documents: ...
    @property
    def resources(self) -> Resources: ...
    @property
    def sessions(self) -> SessionLogs: ...
    @property
    def traces(self) -> Traces: ...


class Write(Protocol[R_co]):
    """A change. It runs alone inside the batch's transaction; when it raises, only it is undone."""

    def apply(self, tables: Tables) -> R_co:
        """Make the change and give its answer.

        Raises:
            TapsterError: it can't be made; nothing of it remains.
        """

    def repeat(self, tables: Tables) -> R_co:
        """The answer for a write whose idempotency key was applied before; changes nothing."""


@attrs.frozen
class Keyed:
    """A write with its idempotency key; None = it has none."""

    write: Write[Any]
    key: str | None = None


@attrs.frozen
class Done(Generic[R]):
    """A write that is durable, with its answer."""

    value: R


@attrs.frozen
class Refused:
    """A write that failed alone; the batch went on without it."""

    error: TapsterError


Outcome: TypeAlias = Done[Any] | Refused


@attrs.frozen
class EngineInfo:
    """What is in force: engine, its files, whether reads see one consistent state."""

    engine: str
    location: str
    durability: str


class Engine(Protocol):
    """Holds all state of one data folder; open by one process at a time."""

    @property
    def info(self) -> EngineInfo: ...

    @property
    def warnings(self) -> tuple[Warned, ...]:
        """What the start went on without."""

    def commit(self, batch: Sequence[Keyed], now: int) -> list[Outcome]:
        """Apply writes in order in one transaction, and return when all are durable.

        Raises:
            CommitFailed: nothing of the batch is acknowledged; the next call starts afresh.
        """

    def read(self) -> AbstractContextManager[Tables]:
        """A consistent view for one thread; writing through it is refused or has no effect."""

    def tidy(self, now: int) -> None:
        """Work for idle moments: checkpoint, retention, forget old idempotency keys."""

    @property
    def is_behind(self) -> bool:
        """Whether so much of that work has piled up that it shouldn't wait for an idle moment."""

    def catch_up(self, *, beside: bool) -> None:
        """Do what ``is_behind`` speaks of: most of it beside commits (in another thread), then the rest between two.

        Raises:
            StoreError: it couldn't be done; nothing is lost, and the next call tries again.
        """

    def check(self) -> tuple[str, ...]:
        """What an integrity check finds wrong; empty when all is well."""

    def backup(self, target: str) -> None:
        """Write a complete copy to a new file, while serving; ``restore_backup`` puts it back."""

    def close(self) -> None:
        """Give everything back; what was acknowledged is on disk."""


OpenEngine: TypeAlias = Callable[[], Engine]
