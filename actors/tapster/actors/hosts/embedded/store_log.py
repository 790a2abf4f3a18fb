"""Session logs kept in Tapster's own store."""

from collections.abc import Sequence
from typing import final

import attrs

from tapster.actors.hosts.port import SessionExists, SessionNotFound
from tapster.actors.store import HOME_HOST, SessionKey, SessionLogExists, SessionLogMissing, Store, Tables
from tapster.engine.ecma import Json
from tapster.engine.projection import Event, LoggedSession, SessionHeader, check_contiguous


@final
@attrs.frozen
class BeginLog:
    """Begin a log with its first events in one change; a fork's seed is copied within the store."""

    key: SessionKey
    header: Json
    events: Sequence[Json]
    parent: SessionKey | None
    seed_length: int
    now: int

    def apply(self, tables: Tables) -> int:
        """Create the log; its next seq."""
        tables.sessions.create(self.key, self.header, now=self.now)
        written = 0
        if self.parent is not None and self.seed_length and self._has_seed(tables, self.parent):
            written = tables.sessions.copy_events(self.parent, self.key, self.seed_length - 1, now=self.now)
        rest = self.events[written:]
        return tables.sessions.append(self.key, written, rest, now=self.now) if rest else written

    def repeat(self, tables: Tables) -> int:
        """As ``Write.repeat``; this write is given without a key."""
        head = tables.sessions.head(self.key)
        return head.next_seq if head is not None else 0

    def _has_seed(self, tables: Tables, parent: SessionKey) -> bool:
        head = tables.sessions.head(parent)
        return head is not None and head.next_seq >= self.seed_length


@final
@attrs.frozen
class StoreSessionLog:
    """A ``SessionLog`` over the store; ``host`` is the id under which its sessions are kept."""

    store: Store
    host: str = HOME_HOST

    async def create(self, header: SessionHeader, events: Sequence[Event]) -> None:
        """As ``SessionLog.create``."""
        parent = SessionKey(self.host, header.parent_session) if header.parent_session else None
        lines = [event.to_json() for event in events]
        key = SessionKey(self.host, header.id)
        seed_length = header.seed_length if header.is_seeded else 0
        try:
            await self.store.write(BeginLog(key, header.to_json(), lines, parent, seed_length, self.store.now_ms))
        except SessionLogExists as error:
            raise SessionExists(header.id) from error

    async def append(self, session_id: str, events: Sequence[Event]) -> None:
        """As ``SessionLog.append``."""
        key = SessionKey(self.host, session_id)
        try:
            await self.store.append_events(key, events[0].seq, [event.to_json() for event in events])
        except SessionLogMissing as error:
            raise SessionNotFound(session_id) from error

    async def read(self, session_id: str, since: int = 0) -> LoggedSession:
        """As ``SessionLog.read``; header and events are of one moment."""
        key = SessionKey(self.host, session_id)

        def question(tables: Tables) -> LoggedSession | None:
            head = tables.sessions.head(key)
            if head is None:
                return None
            events = (Event.from_json(line) for line in tables.sessions.read(key, since))
            return LoggedSession(SessionHeader.from_json(head.header), check_contiguous(events, since))

        logged = await self.store.read(question)
        if logged is None:
            raise SessionNotFound(session_id)
        return logged

    async def headers(self) -> tuple[SessionHeader, ...]:
        """As ``SessionLog.headers``."""
        heads = await self.store.session_heads(self.host)
        return tuple(SessionHeader.from_json(head.header) for head in heads)
