"""Work in threads, with one limiter for each resource and a reading of its use."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, TypeVarTuple, Unpack, final

import attrs
import trio

from .roster import current_roster

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")


@attrs.frozen
class ThreadStatistics:
    """A reading: threads in use and allowed, tasks that wait, runs and seconds spent so far."""

    name: str
    used: int
    limit: int
    waiting: int
    runs: int
    total_s: float


@final
class Threads:
    """A named pool of threads; never the default limiter of trio."""

    def __init__(self, name: str, limit: int) -> None:
        self.name = name
        self._limiter = trio.CapacityLimiter(limit)
        self._runs = 0
        self._total_s = 0.0
        roster = current_roster()
        if roster is not None:
            roster.pools.append(self)

    async def run(
        self,
        function: Callable[[Unpack[Arguments]], T],
        *arguments: *Arguments,
        abandon_on_cancel: bool = False,
    ) -> T:
        """Run a function in a thread.

        Cancellation: the thread isn't stopped. The caller waits for it, unless ``abandon_on_cancel`` says that the
        result may be lost (reads yes, writes never); then the slot is free again only when the thread ends.
        """
        started = trio.current_time()
        try:
            return await trio.to_thread.run_sync(
                function, *arguments, limiter=self._limiter, abandon_on_cancel=abandon_on_cancel
            )
        finally:
            self._runs += 1
            self._total_s += trio.current_time() - started

    def statistics(self) -> ThreadStatistics:
        """A reading for introspection."""
        limiter = self._limiter.statistics()
        return ThreadStatistics(
            self.name,
            limiter.borrowed_tokens,
            int(limiter.total_tokens),
            limiter.tasks_waiting,
            self._runs,
            self._total_s,
        )
