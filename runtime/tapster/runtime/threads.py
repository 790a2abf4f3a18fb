"""Work in threads, with one limiter for each resource and a reading of its use."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar, TypeVarTuple, Unpack, final

import attrs
import outcome
import trio

from .cleanup import unbounded_shield
from .fair import FairLimiter
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


@attrs.frozen
class SimulatedThreads:
    """Threads without threads: work runs in the event loop, so that a run can be repeated exactly.

    Attributes:
        delays: seconds before and after the work of a pool, by its name; drawn anew for each run.
    """

    delays: Callable[[str], tuple[float, float]]


_SIMULATED: ContextVar[SimulatedThreads | None] = ContextVar("tapster_simulated_threads", default=None)


@contextmanager
def simulated_threads(delays: Callable[[str], tuple[float, float]]) -> Iterator[None]:
    """Run the work of every pool in the event loop, for this block and the tasks started in it."""
    token = _SIMULATED.set(SimulatedThreads(delays))
    try:
        yield
    finally:
        _SIMULATED.reset(token)


def check_cancelled() -> None:
    """In work that a pool runs: end it when nobody waits for it any more.

    Raises:
        trio.Cancelled: its caller was cancelled.
    """
    if _SIMULATED.get() is None:
        trio.from_thread.check_cancelled()


@final
class Threads:
    """A named pool of threads, shared fairly; never the default limiter of trio."""

    def __init__(self, name: str, limit: int) -> None:
        self.name = name
        self._limiter = FairLimiter(limit)
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
        share: Hashable = None,
    ) -> T:
        """Run a function in a thread.

        Args:
            function: what to run.
            arguments: what it is given.
            abandon_on_cancel: see below.
            share: on whose behalf; sharers that wait for a thread take turns.

        Cancellation: the thread isn't stopped. The caller waits for it, unless ``abandon_on_cancel`` says that the
        result may be lost (reads yes, writes never); then the slot is free again only when the thread ends.
        """
        simulated = _SIMULATED.get()
        started = trio.current_time()
        try:
            if simulated is not None:
                delays = simulated.delays(self.name)
                return await self._simulate(delays, lambda: function(*arguments), abandon_on_cancel, share)
            return await trio.to_thread.run_sync(
                function,
                *arguments,
                limiter=self._limiter.of(share),  # type: ignore[arg-type]  # trio documents any such object
                abandon_on_cancel=abandon_on_cancel,
            )
        except trio.Cancelled as cancelled:
            # The frames that it came through hold it as their outcome: with them it would be a cycle, and keep all that
            # the function was given until a collection.
            cancelled.__traceback__ = None
            raise
        finally:
            self._runs += 1
            self._total_s += trio.current_time() - started

    async def _simulate(
        self, delays: tuple[float, float], work: Callable[[], T], abandon_on_cancel: bool, share: Hashable
    ) -> T:
        await self._limiter.acquire(share)
        try:
            if abandon_on_cancel:
                return await _delayed(delays, work)
            with unbounded_shield():
                return await _delayed(delays, work)
        finally:
            self._limiter.release()

    def statistics(self) -> ThreadStatistics:
        """A reading for introspection."""
        limiter = self._limiter
        return ThreadStatistics(self.name, limiter.borrowed, limiter.total, limiter.waiting, self._runs, self._total_s)


async def _delayed(delays: tuple[float, float], work: Callable[[], T]) -> T:
    before, after = delays
    await trio.sleep(before)
    result: outcome.Value[T] | outcome.Error = outcome.capture(work)
    await trio.sleep(after)
    return result.unwrap()
