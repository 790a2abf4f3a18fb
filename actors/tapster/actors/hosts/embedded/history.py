"""A live session's log: appended in memory at once, durable at every checkpoint, published to subscribers.

An event exists from the moment it is appended; ``flush`` returns once it is on disk. Whatever depends on an event
(a model request, a tool body, an answer to whoever sent a message) flushes first.

Source: spec/dsh_host §2 "Ordering guarantees", §5.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeAlias, final

import attrs
import trio

from tapster.actors.hosts.port import HostError, SessionLog
from tapster.actors.providers import Chunk
from tapster.engine import limits
from tapster.engine.ecma import Json
from tapster.engine.projection import Event, SessionHeader, Surface, SurfaceOp, last_turn, surface_of
from tapster.engine.projection.events import END_SEED, REQUEST_CONTEXT, REQUEST_HEADER
from tapster.runtime import ActorGone, Clock


@attrs.frozen
class LiveChunk:
    """A chunk as it streams in; it is gone once sent, the durable reply comes as an event."""

    turn: int
    step: int
    chunk: Chunk


LiveItem: TypeAlias = Event | LiveChunk


@final
@attrs.define(eq=False)
class Subscription:
    """What one reader gets: the backlog it asked for, then everything live, until it falls behind."""

    backlog: deque[Event]
    _receive: trio.MemoryReceiveChannel[LiveItem]
    _leave: Callable[[], None]

    async def receive(self) -> LiveItem:
        """The next item.

        Raises:
            trio.EndOfChannel: the session closed, or this reader was too slow; ask again after the last seq.
        """
        if self.backlog:
            await trio.lowlevel.checkpoint()
            return self.backlog.popleft()
        return await self._receive.receive()

    def close(self) -> None:
        """Stop listening."""
        self._leave()
        self._receive.close()


def _tell_nobody(event: Event) -> None:
    """The agent that was told has ended."""


@final
@attrs.define(eq=False)
class LiveLog:
    """The events, surface and subscribers of one live session.

    Attributes:
        durable: events from this seq on aren't on disk yet.
        is_closed: its agent has ended; the session's next incarnation has another log.
    """

    header: SessionHeader
    _store: SessionLog
    _clock: Clock
    _publish: Callable[[Event], None]
    events: list[Event] = attrs.field(factory=list)
    surface: Surface = attrs.field(factory=Surface)
    request_header: Event | None = None
    request_context: Event | None = None
    opened_at: int = 0
    turns: int = 0
    durable: int = 0
    is_closed: bool = False
    _is_publishing: bool = False
    _flushing: trio.Lock = attrs.field(factory=trio.Lock)
    _subscribers: list[trio.MemorySendChannel[LiveItem]] = attrs.field(factory=list)

    @property
    def seq(self) -> int:
        """The seq the next event will get."""
        return len(self.events)

    def load(self, events: Sequence[Event], durable: int) -> None:
        """Take over stored events (and closers not yet stored) without telling anyone."""
        self.events = list(events)
        self.durable = durable
        self.surface = surface_of(events)
        self.turns = last_turn(events)
        for event in events:
            self._remember(event)

    def append(
        self,
        kind: str,
        data: Json,
        op: SurfaceOp | None = None,
        sources: tuple[int, ...] | None = None,
        *,
        ignorable: bool = False,
    ) -> Event:
        """Add an event and tell every listener before returning.

        Raises:
            ActorGone: the agent has ended; nothing would write the event.
            HostError: ``REENTRANT_APPEND`` when a listener of an event of this session appends.
            FormatError: a replacement names nodes that aren't on the surface.
        """
        if self.is_closed:
            raise ActorGone(f"agent:{self.header.id}", taken=False)
        if self._is_publishing:
            message = f"session {self.header.id!r} can't take {kind!r} while another event is being published"
            raise HostError(message, code="REENTRANT_APPEND")
        event = Event(kind, self.seq, self._clock.now_ms(), data, op, sources, ignorable)
        self.surface.apply(event)
        self.events.append(event)
        self._remember(event)
        self._is_publishing = True
        try:
            self._publish(event)
        finally:
            self._is_publishing = False
        self.send(event)
        return event

    async def begin(self) -> None:
        """Store a new session with the events it has so far.

        Raises:
            SessionExists: the id is taken.
            StoreError: nothing was written.
        """
        async with self._flushing:
            events = tuple(self.events)
            await self._store.create(self.header, events)
            self.durable = len(events)

    async def flush(self) -> None:
        """Wait until every event up to now is durable; what waits meanwhile goes in one batch.

        Raises:
            StoreError: the store refused; the events stay and go with the next flush.

        Cancellation: the batch may be written or not; the next flush sends it again, which the store passes over.
        """
        target = self.seq
        async with self._flushing:
            while self.durable < target:
                batch = tuple(self.events[self.durable :])
                await self._store.append(self.header.id, batch)
                self.durable = batch[-1].seq + 1

    def own_events(self, since: int = 0) -> tuple[Event, ...]:
        """Events after what a fork copied, from seq ``since`` on."""
        return tuple(self.events[max(since, self.header.seed_length) :])

    def subscribe(self, after: int | None) -> Subscription:
        """Everything from now on, after the events later than seq ``after`` if one is given."""
        send, receive = trio.open_memory_channel[LiveItem](limits.HOST_SUBSCRIBER_SLOTS)
        self._subscribers.append(send)
        backlog = deque[Event]() if after is None else deque(self.events[after + 1 :])
        return Subscription(backlog, receive, lambda: self._forget(send))

    def send(self, item: LiveItem) -> None:
        """Hand an item to every subscriber; one without room is ended."""
        for channel in tuple(self._subscribers):
            try:
                channel.send_nowait(item)
            except (trio.WouldBlock, trio.BrokenResourceError):
                self._forget(channel)

    def end_subscribers(self) -> None:
        """End every subscription."""
        for channel in tuple(self._subscribers):
            self._forget(channel)

    def close(self) -> None:
        """The agent ends: there are no more events."""
        self.end_subscribers()
        self.is_closed = True
        self._publish = _tell_nobody

    @property
    def subscriber_count(self) -> int:
        """How many readers listen."""
        return len(self._subscribers)

    def _forget(self, channel: trio.MemorySendChannel[LiveItem]) -> None:
        if channel in self._subscribers:
            self._subscribers.remove(channel)
            channel.close()

    def _remember(self, event: Event) -> None:
        if event.type == REQUEST_HEADER:
            self.request_header = event
        elif event.type == REQUEST_CONTEXT:
            self.request_context = event
        elif event.type == END_SEED:
            self.opened_at = event.seq
