"""A bounded queue of requests with one reader; control messages go first."""

from __future__ import annotations

from collections import deque
from typing import final

import attrs
import trio

from .request import Request, Stage

CONTROL_RESERVE = 16
"""Slots beyond the capacity that only control messages may use, so that stop and cancel get in when it's full."""
AT_ONCE = 16
"""Requests that the reader takes before it lets others run: a step costs more than taking one, and all the steps of a
burst together less than anybody would notice."""


@final
@attrs.define(eq=False)
class Inbox:
    """Requests in order of arrival, control before normal; full means that senders wait, oldest first."""

    capacity: int
    _normal: deque[Request] = attrs.field(factory=deque)
    _control: deque[Request] = attrs.field(factory=deque)
    _senders: trio.lowlevel.ParkingLot = attrs.field(factory=trio.lowlevel.ParkingLot)
    _control_senders: trio.lowlevel.ParkingLot = attrs.field(factory=trio.lowlevel.ParkingLot)
    _reader: trio.lowlevel.ParkingLot = attrs.field(factory=trio.lowlevel.ParkingLot)
    _is_closed: bool = False
    _promised: int = 0
    _at_once: int = 0
    _parked: int = 0
    _is_reader_parked: bool = False

    @property
    def is_closed(self) -> bool:
        """Whether it takes no more."""
        return self._is_closed

    def __len__(self) -> int:
        return sum(request.stage is Stage.QUEUED for request in (*self._control, *self._normal))

    def put_nowait(self, request: Request, *, control: bool = False) -> bool:
        """Queue a request; False when there is no room or the inbox is closed."""
        if self._is_closed or not self._has_room(control):
            return False
        self._append(request, control)
        return True

    async def put(self, request: Request, *, control: bool = False) -> bool:
        """Queue a request, waiting for room; False when the inbox closed meanwhile.

        With room there is no step in between: the sender waits for its answer next, which is one.

        Cancellation: a sender that is cancelled while it waits has queued nothing.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        # Whoever waits has used up all room, so a newcomer that finds some passes nobody of its kind.
        if self.put_nowait(request, control=control):
            return True
        while not self._is_closed:
            self._parked += 1
            try:
                await (self._control_senders if control else self._senders).park()
            finally:
                self._parked -= 1
            if self._promised:
                self._promised -= 1
                if not self._is_closed:
                    self._append(request, control)
                    return True
        return False

    async def get(self) -> Request | None:
        """The next request, marked as taken; None once the inbox is closed.

        What waits already is taken without a step in between, up to ``AT_ONCE``.
        """
        while True:
            queue = self._control or self._normal
            if queue and not self._is_closed:
                request = queue.popleft()
                self._wake_sender()
                if request.stage is Stage.QUEUED:
                    request.take()
                    self._at_once += 1
                    if self._at_once >= AT_ONCE:
                        self._at_once = 0
                        await trio.lowlevel.cancel_shielded_checkpoint()
                    return request
                continue
            if self._is_closed:
                return None
            self._at_once = 0
            self._is_reader_parked = True
            await self._reader.park()

    def close(self) -> None:
        """Take no more; wake everyone who waits."""
        self._is_closed = True
        self._promised = 0
        self._reader.unpark_all()
        self._control_senders.unpark_all()
        self._senders.unpark_all()

    def drain(self) -> list[Request]:
        """Remove and give the requests that were never taken."""
        left = [request for request in (*self._control, *self._normal) if request.stage is Stage.QUEUED]
        self._control.clear()
        self._normal.clear()
        return left

    def discard(self, request: Request) -> None:
        """Free the slot of a request whose asker left before it was taken."""
        for queue in (self._control, self._normal):
            if request in queue:
                queue.remove(request)
                self._wake_sender()
                return

    def _has_room(self, control: bool) -> bool:
        used = len(self._normal) + len(self._control) + self._promised
        return used < self.capacity + (CONTROL_RESERVE if control else 0)

    def _append(self, request: Request, control: bool) -> None:
        (self._control if control else self._normal).append(request)
        if self._is_reader_parked:
            self._is_reader_parked = False
            self._reader.unpark()

    def _wake_sender(self) -> None:
        if not self._parked:
            return
        # The freed slot is promised to the longest waiter, so a newcomer can't take it before that one runs.
        for senders, control in ((self._control_senders, True), (self._senders, False)):
            if senders and self._has_room(control):
                self._promised += 1
                senders.unpark()
                return
