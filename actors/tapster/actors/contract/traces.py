"""Retained trace records as the API reads them, proved against the host's stored log.

A detail reads only the events that its record refers to and the last one, so its cost doesn't grow with the session.

Source: spec/trace §8, §12.
"""

from collections.abc import Mapping
from typing import final

import attrs
import trio

from tapster.actors.store import Retention, SessionKey, Store, Tables
from tapster.actors.store.files.traces import LegacyTraces
from tapster.actors.traces import TraceOutbox
from tapster.engine.ecma import Json
from tapster.engine.trace import (
    History,
    Inspection,
    NoHistory,
    TraceSources,
    referenced_seqs,
)

from .readings import AuditReading


@final
class ContractTraces:
    """The traces of one host's sessions.

    Attributes:
        legacy: read-only rows of older files by session, for a data folder that has them.
    """

    def __init__(
        self,
        store: Store,
        outbox: TraceOutbox | None,
        host_id: str,
        retention: Retention | None = None,
        legacy: LegacyTraces | None = None,
    ) -> None:
        self._store = store
        self._outbox = outbox
        self._host_id = host_id
        self._retention = retention or Retention()
        self._legacy = legacy

    async def sources(self, session_id: str) -> TraceSources:
        """Everything an answer about a session reads; what is on its way to the store is waited for."""
        key = SessionKey(self._host_id, session_id)
        if self._outbox is not None:
            await self._outbox.settled(key)
        records = await self._store.traces(key)
        legacy = self._legacy.rows(session_id) if self._legacy is not None else TraceSources()
        return attrs.evolve(legacy, records=records)

    async def history(self, record: Mapping[str, Json]) -> History:
        """What a detail of this record looks up in the session's log, read in one consistent view."""
        key = SessionKey(self._host_id, str(record.get("sessionId")))
        seqs = referenced_seqs(record)
        return await self._store.read(lambda tables: _inspected(tables, key, seqs))

    async def storage(self) -> Mapping[str, Json]:
        """The bounds in force."""
        await trio.lowlevel.checkpoint()
        return self._retention.to_json()

    async def audits(self, session_id: str) -> AuditReading:
        """The v1 audits, inside their records, and what the store holds."""
        count, size_bytes = await self._store.trace_size()
        return AuditReading(await self.sources(session_id), size_bytes if count else 0)


def _inspected(tables: Tables, key: SessionKey, seqs: tuple[int, ...]) -> History:
    head = tables.sessions.head(key)
    if head is None:
        return NoHistory("history-unavailable")
    last = head.next_seq - 1
    wanted = sorted({seq for seq in seqs if seq < last} | {last}) if last >= 0 else []
    events = [event for seq in wanted for event in tables.sessions.read(key, seq, 1)]
    return Inspection(head.header, events)
