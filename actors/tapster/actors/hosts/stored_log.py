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

from .port import Page, SessionExists, SessionNotFound, page_bounds


@final
@attrs.frozen
class BeginLog:
    """A new log with its first events, all or nothing; its answer is the next seq.

    What a fork shares with its parent is copied inside the store, not written anew.
    """

    key: SessionKey
    header: SessionHeader
    events: tuple[Event, ...]
    now: int

    def apply(self, tables: Tables) -> int:
        """Create the log and fill it."""
        head = tables.sessions.create(self.key, self.header.to_json(), now=self.now)
        copied = self._copy_of_parent(tables)
        rest = [event.to_json() for event in self.events[copied:]]
        return tables.sessions.append(self.key, copied, rest, now=self.now) if rest else max(head.next_seq, copied)

    def _copy_of_parent(self, tables: Tables) -> int:
        """Copy the seed from the parent's log, if that still ends as the seed does; how many events."""
        length = self.header.seed_length
        if not self.header.is_seeded or self.header.parent_session is None or not 0 < length <= len(self.events):
            return 0
        parent = SessionKey(self.key.host, self.header.parent_session)
        last = tables.sessions.read(parent, length - 1, 1)
        if not last or stringify(last[0]) != stringify(self.events[length - 1].to_json()):
            return 0
        return tables.sessions.copy_events(parent, self.key, length - 1, now=self.now)

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
        try:
            await self.store.write(BeginLog(self._key(header.id), header, tuple(events), self.store.now_ms))
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

    async def read(self, session_id: str, since: int = 0, limit: int | None = None) -> LoggedSession:
        """As ``SessionLog.read``."""
        key = self._key(session_id)
        head, lines = await self.store.read(
            lambda tables: (tables.sessions.head(key), tables.sessions.read(key, since, limit))
        )
        if head is None:
            raise SessionNotFound(session_id)
        return LoggedSession(SessionHeader.from_json(head.header), tuple(Event.from_json(line) for line in lines))

    async def page(self, session_id: str, before: int | None, limit: int) -> Page:
        """As ``SessionLog.page``."""
        key = self._key(session_id)

        def one_view(tables: Tables) -> Page:
            head = tables.sessions.head(key)
            if head is None:
                raise SessionNotFound(session_id)
            first, end = page_bounds(head.next_seq, before, limit)
            lines = tables.sessions.read(key, first, end - first)
            return Page(tuple(Event.from_json(line) for line in lines), first > 0)

        return await self.store.read(one_view)

    async def headers(self) -> tuple[SessionHeader, ...]:
        """As ``SessionLog.headers``."""
        heads = await self.store.session_heads(self.host)
        return tuple(SessionHeader.from_json(head.header) for head in heads)

    def _key(self, session_id: str) -> SessionKey:
        return SessionKey(self.host, session_id)
