"""The embedded host's session logs in the store."""

from collections.abc import Sequence
from typing import final

import attrs

from tapster.actors.store import (
    HOME_HOST,
    LogDiverged,
    LogGap,
    SessionKey,
    SessionLogExists,
    SessionLogMissing,
    Store,
    Tables,
)
from tapster.engine.ecma import Json, stringify
from tapster.engine.projection import Event, LoggedSession, SessionHeader

from .port import SessionExists, SessionNotFound


@final
@attrs.frozen
class BeginLog:
    """A new log with its first events, all or nothing; its answer is the next seq."""

    key: SessionKey
    header: Json
    events: tuple[Json, ...]
    now: int

    def apply(self, tables: Tables) -> int:
        """Create the log and fill it."""
        head = tables.sessions.create(self.key, self.header, now=self.now)
        return tables.sessions.append(self.key, 0, self.events, now=self.now) if self.events else head.next_seq

    def repeat(self, tables: Tables) -> int:
        """Begin it again; a log has no second beginning."""
        return self.apply(tables)


@final
@attrs.frozen
class ExtendLog:
    """Events after those a log has; what it has already, with the same content, is passed over."""

    key: SessionKey
    events: tuple[Json, ...]
    now: int

    def apply(self, tables: Tables) -> int:
        """Append what is new.

        Raises:
            LogGap: the events don't continue the log.
            LogDiverged: the log has other content under a seq.
        """
        head = tables.sessions.head(self.key)
        if head is None:
            raise SessionLogMissing(f"session {self.key} has no log")
        first = int(self.events[0]["seq"])
        if first > head.next_seq:
            raise LogGap(f"session {self.key} continues at {head.next_seq}, not at {first}")
        known = tables.sessions.read(self.key, first, min(len(self.events), head.next_seq - first))
        for stored, given in zip(known, self.events, strict=False):
            if stringify(stored) != stringify(given):
                raise LogDiverged(f"session {self.key} has another event {given['seq']}")
        fresh = self.events[len(known) :]
        return tables.sessions.append(self.key, head.next_seq, fresh, now=self.now) if fresh else head.next_seq

    def repeat(self, tables: Tables) -> int:
        """As ``apply``: it passes over what is there."""
        return self.apply(tables)


@final
@attrs.frozen
class StoredSessionLog:
    """A ``SessionLog`` in the store, for the sessions of one host."""

    store: Store
    host: str = HOME_HOST

    async def create(self, header: SessionHeader, events: Sequence[Event]) -> None:
        """As ``SessionLog.create``."""
        lines = tuple(event.to_json() for event in events)
        try:
            await self.store.write(BeginLog(self._key(header.id), header.to_json(), lines, self.store.now_ms))
        except SessionLogExists:
            raise SessionExists(header.id) from None

    async def append(self, session_id: str, events: Sequence[Event]) -> None:
        """As ``SessionLog.append``."""
        lines = tuple(event.to_json() for event in events)
        if not lines:
            return
        try:
            await self.store.write(ExtendLog(self._key(session_id), lines, self.store.now_ms))
        except SessionLogMissing:
            raise SessionNotFound(session_id) from None

    async def read(self, session_id: str, since: int = 0) -> LoggedSession:
        """As ``SessionLog.read``."""
        key = self._key(session_id)
        head, lines = await self.store.read(
            lambda tables: (tables.sessions.head(key), tables.sessions.read(key, since))
        )
        if head is None:
            raise SessionNotFound(session_id)
        return LoggedSession(SessionHeader.from_json(head.header), tuple(Event.from_json(line) for line in lines))

    async def headers(self) -> tuple[SessionHeader, ...]:
        """As ``SessionLog.headers``."""
        heads = await self.store.session_heads(self.host)
        return tuple(SessionHeader.from_json(head.header) for head in heads)

    def _key(self, session_id: str) -> SessionKey:
        return SessionKey(self.host, session_id)
