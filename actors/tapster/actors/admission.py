"""Who is let in at the border: by cost, so many units at once for a session and for all.

A message costs one unit. A preview costs what the session's last ones took: one unit for every 10 ms of a thread. A
session with nothing under way is always let in, so that a costly one isn't shut out for ever.

Source: design §4 rule 1 ("at a border a full inbox is Overloaded at once").
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, final

import attrs
import trio

from tapster.runtime import Overloaded

UNIT_S: Final = 0.01
REMEMBERED: Final = 4096
"""Sessions whose costs are known; one that is forgotten costs a unit until it is measured again."""
SMOOTHING: Final = 0.5
MAX_RETRY_S: Final = 60.0
RESERVED_S: Final = 10.0
"""How long a stream may take from being let in to its beginning; its client may be gone by then."""


@attrs.frozen
class AdmissionLimits:
    """Units under way and live streams at once, of one session and of all."""

    per_session: int = 64
    total: int = 1024
    streams_per_session: int = 64
    streams: int = 256


@attrs.frozen
class AdmissionStatistics:
    """A reading: units under way and allowed, sessions they belong to, requests let in and refused, live streams."""

    pending: int
    limit: int
    sessions: int
    admitted: int
    refused: int
    streams: int = 0


@final
@attrs.define(eq=False)
class StreamPlace:
    """Room for one live stream: entered when the stream begins, left when it ends."""

    session: str
    _held: set[StreamPlace]
    reserved_at: float

    def __enter__(self) -> None:
        self.reserved_at = math.inf
        self._held.add(self)

    def __exit__(self, *details: object) -> None:
        self._held.discard(self)


@final
@attrs.define(eq=False)
class Admission:
    """Counts what is under way; made once for a runtime and used by its borders."""

    limits: AdmissionLimits = attrs.field(factory=AdmissionLimits)
    threads: int = 1
    _pending: dict[str, int] = attrs.field(factory=dict)
    _total: int = 0
    _streams: set[StreamPlace] = attrs.field(factory=set)
    _seconds: OrderedDict[str, float] = attrs.field(factory=OrderedDict)
    _admitted: int = 0
    _refused: int = 0

    @contextmanager
    def message(self, session: str, waiting: int = 0) -> Iterator[None]:
        """Let a message in; ``waiting`` are those of the session that no turn has taken yet.

        Raises:
            Overloaded: the session, or all together, have too much under way.
        """
        if waiting >= self.limits.per_session:
            raise self._refuse(f"session {session}", waiting)
        with self._entered(session, 1):
            yield

    @contextmanager
    def computation(self, session: str) -> Iterator[None]:
        """Let a computation in, and remember what it took.

        Raises:
            Overloaded: as ``message``.
        """
        with self._entered(session, self.cost(session)):
            started = trio.current_time()
            beside = max(1, self._total // max(1, self.cost(session)))
            yield
            # Time spent waiting for a thread isn't the session's own doing.
            self._measured(session, (trio.current_time() - started) * self.threads / max(self.threads, beside))

    def stream(self, session: str) -> StreamPlace:
        """A place for a live stream, kept for it until it begins and then until it ends.

        Raises:
            Overloaded: the session, or all together, have as many streams as they may.
        """
        self._forget_streams_that_never_began()
        mine = sum(place.session == session for place in self._streams)
        if mine >= self.limits.streams_per_session:
            raise self._refuse(f"session {session}", mine)
        if len(self._streams) >= self.limits.streams:
            raise self._refuse("Tapster", len(self._streams))
        place = StreamPlace(session, self._streams, trio.current_time())
        self._streams.add(place)
        return place

    def _forget_streams_that_never_began(self) -> None:
        limit = trio.current_time() - RESERVED_S
        self._streams.difference_update([each for each in self._streams if each.reserved_at < limit])

    def cost(self, session: str) -> int:
        """Units that the session's next computation counts."""
        units = math.ceil(self._seconds.get(session, 0.0) / UNIT_S)
        return min(max(1, units), self.limits.per_session)

    def statistics(self) -> AdmissionStatistics:
        """A reading for introspection."""
        return AdmissionStatistics(
            self._total, self.limits.total, len(self._pending), self._admitted, self._refused, len(self._streams)
        )

    @contextmanager
    def _entered(self, session: str, cost: int) -> Iterator[None]:
        mine = self._pending.get(session, 0)
        if mine and mine + cost > self.limits.per_session:
            raise self._refuse(f"session {session}", mine)
        if self._total and self._total + cost > self.limits.total:
            raise self._refuse("Tapster", self._total)
        self._admitted += 1
        self._total += cost
        self._pending[session] = mine + cost
        try:
            yield
        finally:
            self._total -= cost
            left = self._pending.pop(session) - cost
            if left:
                self._pending[session] = left

    def _refuse(self, name: str, pending: int) -> Overloaded:
        self._refused += 1
        return Overloaded(name, min(MAX_RETRY_S, max(1.0, pending * UNIT_S / self.threads)))

    def _measured(self, session: str, took_s: float) -> None:
        before = self._seconds.pop(session, took_s)
        self._seconds[session] = before + SMOOTHING * (took_s - before)
        if len(self._seconds) > REMEMBERED:
            self._seconds.popitem(last=False)
