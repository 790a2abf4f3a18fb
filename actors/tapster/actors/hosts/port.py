"""What Tapster asks of a host's session, and what the embedded host asks of a store.

``HostSession`` is the one port for the embedded, the linked and the gateway host (design §6). ``SessionLog`` is how
the embedded host keeps its own history; the memory implementation here is the double for tests.
"""

from collections.abc import Sequence
from typing import Protocol, final

import attrs
import trio

from tapster.actors.providers import CallConfig, PreparedCall
from tapster.engine.ecma import Json
from tapster.engine.errors import RequestError, StoreError, TapsterError
from tapster.engine.projection import Event, LoggedSession, SessionHeader, check_contiguous


class HostError(TapsterError):
    """The host can't do what was asked; ``code`` says why."""

    code = "HOST_FAILED"


class SessionNotFound(RequestError):
    """No session of that id is known to the host."""

    code = "SESSION_NOT_FOUND"
    kind = "Error"
    status = 404

    def __init__(self, session_id: str) -> None:
        super().__init__(f"session {session_id!r:.120} doesn't exist", details={"sessionId": session_id[:200]})


class SessionExists(RequestError):
    """A session of that id exists already."""

    code = "SESSION_EXISTS"
    kind = "Error"
    status = 409

    def __init__(self, session_id: str) -> None:
        super().__init__(f"session {session_id!r} exists already", details={"sessionId": session_id})


@attrs.frozen
class Inspection:
    """A cold read of a session: its header line and its events, closed as after a repair."""

    meta: Json
    events: tuple[Event, ...]


@attrs.frozen
class Page:
    """A piece of a session's history, oldest first; ``has_more`` says that older events remain."""

    events: tuple[Event, ...]
    has_more: bool


class HostSession(Protocol):
    """One session as its host shows it."""

    @property
    def session_id(self) -> str:
        """The session's id within its host."""

    async def header(self) -> SessionHeader:
        """Identity, format and lineage.

        Raises:
            SessionNotFound: no such session.
        """

    async def own_events(self, since: int = 0) -> Sequence[Event]:
        """Events after what a fork copied, from seq ``since`` on."""

    async def inspect(self, through: int | None = None) -> Inspection:
        """The whole log up to and including ``through``.

        Raises:
            SessionNotFound: the history is gone.
        """

    async def page(self, before: int | None = None, limit: int = 200) -> Page:
        """The ``limit`` events before seq ``before`` (or the newest)."""

    async def resolve_call_config(self, config: CallConfig) -> PreparedCall:
        """The config as the provider would send it.

        Raises:
            ProviderError: a parameter is refused.
        """


class SessionLog(Protocol):
    """A durable, append-only log per session; every method returns only when its work is on disk."""

    async def create(self, header: SessionHeader, events: Sequence[Event]) -> None:
        """Begin a session with its first events, all or nothing.

        Raises:
            SessionExists: the id is taken.
            StoreError: nothing was written.
        """

    async def append(self, session_id: str, events: Sequence[Event]) -> None:
        """Add events in one transaction; those already stored with the same content are passed over.

        Raises:
            SessionNotFound: no such session.
            StoreError: a gap, other content under a stored seq (``LOG_DIVERGED``), or the disk failed.
        """

    async def read(self, session_id: str, since: int = 0, limit: int | None = None) -> LoggedSession:
        """The header and the events from seq ``since`` on, at most ``limit``; the cost is of those alone.

        Raises:
            SessionNotFound: no such session.
        """

    async def page(self, session_id: str, before: int | None, limit: int) -> Page:
        """As ``HostSession.page``; the cost is of the page alone.

        Raises:
            SessionNotFound: no such session.
            RequestError: ``INVALID_LIMIT``.
        """

    async def headers(self) -> tuple[SessionHeader, ...]:
        """The headers of all sessions, newest first."""


def page_bounds(length: int, before: int | None, limit: int) -> tuple[int, int]:
    """First seq and end of the ``limit`` events before seq ``before``, or of the newest, in a log of a length.

    Raises:
        RequestError: ``INVALID_LIMIT``.
    """
    if limit < 1:
        raise RequestError("a page has at least one event", code="INVALID_LIMIT")
    end = length if before is None else max(0, min(before, length))
    return max(0, end - limit), end


@final
@attrs.define(eq=False)
class MemorySessionLog:
    """A ``SessionLog`` in memory, with faults on demand.

    Attributes:
        delay_s: how long each write takes.
        failing: how many of the next writes fail.
        appends: how many batches were written.
    """

    delay_s: float = 0.0
    failing: int = 0
    appends: int = 0
    _sessions: dict[str, tuple[SessionHeader, list[Event]]] = attrs.field(factory=dict)

    async def create(self, header: SessionHeader, events: Sequence[Event]) -> None:
        """As ``SessionLog.create``."""
        await self._write()
        if header.id in self._sessions:
            raise SessionExists(header.id)
        self._sessions[header.id] = (header, list(check_contiguous(events)))

    async def append(self, session_id: str, events: Sequence[Event]) -> None:
        """As ``SessionLog.append``."""
        await self._write()
        _, stored = self._find(session_id)
        fresh = list(events)
        while fresh and fresh[0].seq < len(stored):
            if stored[fresh[0].seq] != fresh[0]:
                raise StoreError(f"session {session_id!r} has another event {fresh[0].seq}", code="LOG_DIVERGED")
            fresh.pop(0)
        stored.extend(check_contiguous(fresh, len(stored)))
        self.appends += 1

    async def read(self, session_id: str, since: int = 0, limit: int | None = None) -> LoggedSession:
        """As ``SessionLog.read``."""
        await trio.lowlevel.checkpoint()
        header, stored = self._find(session_id)
        return LoggedSession(header, tuple(stored[since : None if limit is None else since + limit]))

    async def page(self, session_id: str, before: int | None, limit: int) -> Page:
        """As ``SessionLog.page``."""
        await trio.lowlevel.checkpoint()
        _, stored = self._find(session_id)
        first, end = page_bounds(len(stored), before, limit)
        return Page(tuple(stored[first:end]), first > 0)

    async def headers(self) -> tuple[SessionHeader, ...]:
        """As ``SessionLog.headers``."""
        await trio.lowlevel.checkpoint()
        return tuple(header for header, _ in reversed(self._sessions.values()))

    async def _write(self) -> None:
        await trio.sleep(self.delay_s)
        if self.failing:
            self.failing -= 1
            raise StoreError("the disk refused the write")

    def _find(self, session_id: str) -> tuple[SessionHeader, list[Event]]:
        if session_id not in self._sessions:
            raise SessionNotFound(session_id)
        return self._sessions[session_id]
