"""The bounded outbox of trace records: a request never waits for it and never fails because of it.

Source: design §4 rule 8.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final, final

import attrs
import trio

from tapster.actors.store import Store
from tapster.actors.store.values import ResourceUse, SessionKey
from tapster.engine.ecma import Json
from tapster.engine.errors import TapsterError
from tapster.runtime import LogSink, RuntimeFault, bounded_shield, open_service_nursery

CAPACITY: Final = 1024
"""Captures that wait to be written: some seconds of a busy host on a slow disk."""
WRITERS: Final = 16
"""Writes asked of the store at once, so that they share its commits."""
SETTLE_S: Final = 1.0
DRAIN_S: Final = 5.0


@attrs.define(eq=False)
class _Waiting:
    key: SessionKey
    record: Json | None = None
    uses: tuple[ResourceUse, ...] = ()
    audits: list[Json] = attrs.field(factory=list)


@attrs.frozen
class OutboxStatistics:
    """A reading: captures that wait or are being written, dropped for lack of room, and failed writes."""

    waiting: int
    writing: int
    dropped: int
    failed: int


@final
class TraceOutbox:
    """Records by capture id: what waits is coalesced, what is being written is followed by its newer state.

    Sessions take turns, and a full outbox drops what the session with most in it queued last: one that floods it loses
    its own records, not those of others.
    """

    def __init__(self, store: Store, log: LogSink) -> None:
        self._store = store
        self._log = log
        self._waiting: dict[tuple[SessionKey, str], _Waiting] = {}
        self._turns: OrderedDict[SessionKey, deque[str]] = OrderedDict()
        self._writing: set[tuple[SessionKey, str]] = set()
        self._changed = trio.lowlevel.ParkingLot()
        self._dropped = 0
        self._failed = 0

    def put(self, key: SessionKey, record: Json, uses: Sequence[ResourceUse] = ()) -> None:
        """Queue a record; an older state of the same capture that still waits is replaced."""
        waiting = self._slot(key, str(record["id"]))
        if waiting is not None:
            waiting.record, waiting.uses = record, tuple(uses)

    def put_audits(self, key: SessionKey, audits: Sequence[Json]) -> None:
        """Queue finished audits, each with the record of its capture."""
        for audit in audits:
            waiting = self._slot(key, str(audit["captureId"]))
            if waiting is not None:
                waiting.audits.append(audit)

    async def settled(self, key: SessionKey) -> bool:
        """Wait, at most a second, until what was queued for a session is written; whether it was."""
        with trio.move_on_after(SETTLE_S):
            while self._concerns(key):
                await self._changed.park()
            await trio.lowlevel.checkpoint()
            return True
        return False

    def statistics(self) -> OutboxStatistics:
        """A reading for introspection."""
        return OutboxStatistics(len(self._waiting), len(self._writing), self._dropped, self._failed)

    def _slot(self, key: SessionKey, capture_id: str) -> _Waiting | None:
        place = (key, capture_id)
        if place not in self._waiting:
            if len(self._waiting) >= CAPACITY and not self._make_room(key):
                self._drop(key, capture_id)
                return None
            self._waiting[place] = _Waiting(key)
            self._turns.setdefault(key, deque()).append(capture_id)
            self._changed.unpark_all()
        return self._waiting[place]

    def _make_room(self, key: SessionKey) -> bool:
        """Drop a capture of the session that has most waiting, unless that is the one that asks."""
        fullest = max(self._turns, key=lambda each: len(self._turns[each]))
        if len(self._turns[fullest]) <= len(self._turns.get(key, ())) + 1:
            return False
        capture_id = self._turns[fullest].pop()
        del self._waiting[fullest, capture_id]
        self._drop(fullest, capture_id)
        return True

    def _drop(self, key: SessionKey, capture_id: str) -> None:
        self._dropped += 1
        self._log("warning", "trace.dropped", session=str(key), capture=capture_id, capacity=CAPACITY)

    def _concerns(self, key: SessionKey) -> bool:
        return any(place[0] == key for place in (*self._waiting, *self._writing))

    def _next(self) -> tuple[SessionKey, str] | None:
        """Of the session whose turn it is the oldest capture that isn't being written: its writes keep their order."""
        for key, captures in self._turns.items():
            for capture_id in captures:
                if (key, capture_id) not in self._writing:
                    captures.remove(capture_id)
                    self._turns.move_to_end(key)
                    if not captures:
                        del self._turns[key]
                    return key, capture_id
        return None

    async def _keep_writing(self) -> None:
        while True:
            place = self._next()
            if place is None:
                await self._changed.park()
                continue
            waiting = self._waiting.pop(place)
            self._writing.add(place)
            try:
                await self._write(waiting)
            finally:
                self._writing.discard(place)
                self._changed.unpark_all()

    async def _write(self, waiting: _Waiting) -> None:
        try:
            if waiting.record is not None:
                await self._store.put_trace(waiting.key, waiting.record, waiting.uses)
            if waiting.audits:
                await self._store.put_audits(waiting.key, waiting.audits)
        except (TapsterError, RuntimeFault) as error:
            self._failed += 1
            self._log("warning", "trace.write-failed", session=str(waiting.key), code=error.code)

    async def _drained(self) -> None:
        while self._waiting or self._writing:
            await self._changed.park()


@asynccontextmanager
async def open_trace_outbox(store: Store, log: LogSink) -> AsyncIterator[TraceOutbox]:
    """An outbox for the length of a block; at its end what waits is written, within ``DRAIN_S``."""
    outbox = TraceOutbox(store, log)
    async with open_service_nursery() as services:
        for number in range(WRITERS):
            services.start_soon(outbox._keep_writing, name=f"trace writer {number}")
        try:
            yield outbox
        finally:
            with bounded_shield(DRAIN_S):
                await outbox._drained()  # noqa: ASYNC102 - bounded_shield is the shield
