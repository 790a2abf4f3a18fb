"""Server-sent events: bounded subscribers that resume by sequence number.

Publishing never waits. A subscriber that has not read 256 events is ended; its client connects again with
``Last-Event-ID`` and gets what it missed, or a ``reset`` when that is gone.
"""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import Final, Protocol, TypeAlias, final

import attrs
import trio
from quart import Response
from quart.wrappers.response import ResponseBody

from tapster.engine.contract import SECURITY_HEADERS
from tapster.engine.ecma import stringify, utf8

from .ports import Notice

SLOTS: Final = 256
KEPT: Final = 1024
KEEP_ALIVE_S: Final = 15.0
MAX_ID_DIGITS: Final = 16
BEFORE_FIRST: Final = "-1"
RESET_EVENT: Final = "reset"
CONTENT_TYPE: Final = "text/event-stream; charset=utf-8"
CONNECTED: Final = b": connected\n\n"
KEEP_ALIVE: Final = b": keep-alive\n\n"
HEADERS: Final = {
    **SECURITY_HEADERS,
    "Cache-Control": "no-cache, no-transform",
    "X-Accel-Buffering": "no",
}


@final
class Feed:
    """A numbered stream of events with any number of subscribers and a short memory."""

    def __init__(self, *, slots: int = SLOTS, kept: int = KEPT) -> None:
        self._slots = slots
        self._last_seq = -1
        self._recent: deque[Notice] = deque(maxlen=kept)
        self._subscribers: set[trio.MemorySendChannel[Notice]] = set()

    @property
    def subscribers(self) -> int:
        """How many are listening."""
        return len(self._subscribers)

    def publish(self, event: str, data: object) -> Notice:
        """Give every subscriber an event; one without a free slot is ended."""
        self._last_seq += 1
        notice = Notice(self._last_seq, event, data)
        self._recent.append(notice)
        for channel in list(self._subscribers):
            try:
                channel.send_nowait(notice)
            except trio.WouldBlock:
                self._end(channel)
        return notice

    def end(self) -> None:
        """End every subscriber."""
        for channel in list(self._subscribers):
            self._end(channel)

    @contextmanager
    def subscribe(self, after_seq: int | None = None) -> Iterator["Subscription"]:
        """The events after a seq (from now on when None), until the feed or the slow subscriber is ended."""
        send, receive = trio.open_memory_channel[Notice](self._slots)
        with receive:
            subscription = Subscription(deque(self._missed(after_seq)), receive)
            self._subscribers.add(send)
            try:
                yield subscription
            finally:
                self._end(send)

    def _missed(self, after_seq: int | None) -> list[Notice]:
        if after_seq is None or after_seq == self._last_seq:
            return []
        first = self._recent[0].seq if self._recent else self._last_seq + 1
        if after_seq > self._last_seq or after_seq < first - 1:
            return [Notice(self._last_seq, RESET_EVENT, {"lastSeq": self._last_seq})]
        return [notice for notice in self._recent if notice.seq > after_seq]

    def _end(self, channel: trio.MemorySendChannel[Notice]) -> None:
        self._subscribers.discard(channel)
        channel.close()


@final
@attrs.define(eq=False)
class Subscription:
    """One subscriber's events: what it missed first, then what comes."""

    _missed: deque[Notice]
    _receive: trio.MemoryReceiveChannel[Notice]

    async def receive(self) -> Notice:
        """The next event.

        Raises:
            trio.EndOfChannel: the stream was ended; the client may connect again.
        """
        if self._missed:
            await trio.lowlevel.checkpoint()
            return self._missed.popleft()
        return await self._receive.receive()


class Receiver(Protocol):
    """Whatever gives notices one by one and ends with ``trio.EndOfChannel``."""

    async def receive(self) -> Notice: ...


Subscribe: TypeAlias = Callable[[], AbstractContextManager[Receiver]]


@final
class EventStream(ResponseBody):
    """A response body of events: a piece at once, so that a client knows it is connected, then events and comments.

    It subscribes when the response begins and unsubscribes when it ends, however it ends.
    """

    def __init__(self, subscribe: Subscribe, keep_alive_s: float = KEEP_ALIVE_S) -> None:
        self._opened = subscribe()
        self._keep_alive_s = keep_alive_s
        self._subscription: Receiver | None = None
        self._is_greeted = False

    async def __aenter__(self) -> "EventStream":
        # The only place to be cancelled is before: what was entered is always left again.
        await trio.lowlevel.checkpoint()
        self._subscription = self._opened.__enter__()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_value: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._opened.__exit__(exc_type, exc_value, tb)

    def __aiter__(self) -> "EventStream":
        return self

    async def __anext__(self) -> bytes:
        if not self._is_greeted:
            self._is_greeted = True
            await trio.lowlevel.checkpoint()
            return CONNECTED
        assert self._subscription is not None, "iterated inside its own block"
        try:
            with trio.move_on_after(self._keep_alive_s):
                return frame(await self._subscription.receive())
        except trio.EndOfChannel:
            raise StopAsyncIteration from None
        return KEEP_ALIVE


def stream_response(subscribe: Subscribe) -> Response:
    """A response that lasts as long as its subscription."""
    response = Response(EventStream(subscribe), 200, headers=HEADERS, content_type=CONTENT_TYPE)
    # The framework would otherwise cut the stream after a minute.
    response.timeout = None
    return response


def frame(notice: Notice) -> bytes:
    """One event on the wire."""
    return utf8(f"id: {notice.seq}\nevent: {notice.event}\ndata: {stringify(notice.data)}\n\n")


def last_event_id(value: str | None) -> int | None:
    """The seq of a ``Last-Event-ID`` header, None when it isn't one; -1 is the place before the first event."""
    if value == BEFORE_FIRST:
        return -1
    is_number = value is not None and value.isascii() and value.isdigit() and len(value) < MAX_ID_DIGITS
    return int(value) if value is not None and is_number else None
