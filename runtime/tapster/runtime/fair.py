"""A limiter that is fair between sharers: whoever floods it waits behind its own work, not before that of others."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Hashable
from typing import final

import attrs
import trio


@attrs.define(eq=False)
class _Waiter:
    granted: trio.Event = attrs.field(factory=trio.Event)


@final
@attrs.define(eq=False)
class FairLimiter:
    """So many tokens at once; sharers that wait take turns, and each is served in its own order."""

    total: int
    borrowed: int = 0
    _queues: OrderedDict[Hashable, deque[_Waiter]] = attrs.field(factory=OrderedDict)

    @property
    def waiting(self) -> int:
        """Tasks that wait for a token."""
        return sum(map(len, self._queues.values()))

    async def acquire(self, share: Hashable = None) -> None:
        """Take a token, waiting for the share's turn.

        Cancellation: no token was taken.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        if self.borrowed < self.total:
            self.borrowed += 1
            await trio.lowlevel.cancel_shielded_checkpoint()
            return
        waiter = _Waiter()
        self._queues.setdefault(share, deque()).append(waiter)
        try:
            await waiter.granted.wait()
        except trio.Cancelled:
            self._forget(share, waiter)
            raise

    def release(self) -> None:
        """Give a token back; the share whose turn it is gets it."""
        self.borrowed -= 1
        if self._queues:
            share, queue = self._queues.popitem(last=False)
            waiter = queue.popleft()
            if queue:
                self._queues[share] = queue
            self.borrowed += 1
            waiter.granted.set()

    def of(self, share: Hashable) -> Share:
        """The limiter as ``trio.to_thread.run_sync`` takes it, for one sharer."""
        return Share(self, share)

    def _forget(self, share: Hashable, waiter: _Waiter) -> None:
        if waiter.granted.is_set():
            self.release()
            return
        queue = self._queues[share]
        queue.remove(waiter)
        if not queue:
            del self._queues[share]


@final
@attrs.frozen(eq=False)
class Share:
    """A sharer's way to the limiter."""

    _limiter: FairLimiter
    _share: Hashable

    async def acquire_on_behalf_of(self, borrower: object) -> None:
        """As ``FairLimiter.acquire``."""
        await self._limiter.acquire(self._share)

    def release_on_behalf_of(self, borrower: object) -> None:
        """As ``FairLimiter.release``."""
        self._limiter.release()
