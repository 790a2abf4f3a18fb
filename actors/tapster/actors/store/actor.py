"""The store actor: everything that waits goes into one transaction and one fsync.

A write is answered only when it is durable. While it is queued its asker may leave and it never happens; once it is
in a batch its asker waits for the commit, the owner applies it to memory, and only then ``Cancelled`` is raised.

Source: design §4 rule 13, §5; style §5 trap 12.
"""

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Final, final

import attrs
import trio

from tapster.engine.errors import StoreError, TapsterError
from tapster.runtime import Actor, Clock, LogSink, Request, Threads

from .errors import anew
from .interface import Done, Engine, Keyed

MAX_BATCH: Final = 512
"""Writes in one transaction: enough for any burst that fits the queue, small enough for a bounded rollback."""
GATHER_STEPS: Final = 2
"""Scheduler steps from the answer of one write to the next one of the same writer in the queue."""
IDLE_S: Final = 2.0
"""Quiet time before the WAL is moved into the database file."""
SWEEP_S: Final = 3600.0
"""Longest time between two looks at what retention no longer keeps, when nothing is written."""
COMMIT_GRACE_S: Final = 5.0
"""How long a closing store waits for what is queued (style §3 rule 4)."""


@final
@attrs.frozen
class Commit(Keyed):
    """Make a change durable.

    Attributes:
        applied: called with the answer in commit order, once it is durable and before the asker goes on, even when
            the asker is leaving. It must not raise.
    """

    applied: Callable[[Any], None] | None = None


@final
@attrs.frozen
class Settle:
    """Answer when everything queued before is durable or refused."""


@final
@attrs.frozen
class StoreStatistics:
    """A reading: writes queued, commits and writes so far, failed commits, last batch, seconds spent committing.

    Attributes:
        problem: code of the failure that writes meet now; None when the last commit became durable.
        catch_ups: how often the WAL was moved into the file beside commits.
    """

    queued: int
    commits: int
    writes: int
    failures: int
    largest_batch: int
    last_batch: int
    commit_s: float
    longest_commit_s: float
    problem: str | None = None
    catch_ups: int = 0


@final
@attrs.frozen
class StorePools:
    """The threads of all incarnations: one that commits, one beside it."""

    commits: Threads = attrs.field(factory=lambda: Threads("store.commit", 1))
    checkpoints: Threads = attrs.field(factory=lambda: Threads("store.checkpoint", 1))


@final
class StoreActor(Actor):
    """Owns the engine's writing side."""

    name = "store"
    capacity = 256
    declared: ClassVar[tuple[type[Exception], ...]] = (TapsterError,)
    close_grace_s = COMMIT_GRACE_S

    def __init__(
        self,
        engine: Engine,
        pools: StorePools,
        clock: Clock,
        log: LogSink,
        counted: StoreStatistics | None = None,
        max_batch: int = MAX_BATCH,
    ) -> None:
        """Take over an engine.

        Args:
            counted: what earlier incarnations counted.
            max_batch: writes that share a commit at most.
        """
        self._max_batch = max_batch
        self._engine = engine
        self._clock = clock
        self._log = log
        self._threads = pools.commits
        self._beside = pools.checkpoints
        self._is_catching_up = False
        self._is_rest_due = False
        self._queue: deque[Request] = deque()
        self._in_batch: list[Request] = []
        self._wake = trio.Event()
        self._reading = counted or StoreStatistics(0, 0, 0, 0, 0, 0, 0.0, 0.0)

    def begin(self) -> None:
        """Commit from now on."""
        self.start_background(self._keep_committing)

    def receive(self, request: Request) -> None:
        """Queue a write; the committer takes all that wait."""
        if isinstance(request.body, Settle) and not self._queue and not self._in_batch:
            request.settle()
            return
        self._queue.append(request)
        request.on_leave = partial(self._withdraw, request)
        self._wake.set()

    def reading(self) -> StoreStatistics:
        """Queue and commits, for metrics."""
        return attrs.evolve(self._reading, queued=len(self._queue))

    def _withdraw(self, request: Request) -> None:
        if request in self._queue:
            self._queue.remove(request)
            request.end()

    async def _keep_committing(self) -> None:
        quiet_s = IDLE_S
        while True:
            if self._is_rest_due:
                await self._finish_catching_up()
            if self._queue:
                await self._gather()
                await self._commit_waiting()
                self._keep_up()
                quiet_s = IDLE_S
                continue
            self._wake = trio.Event()
            with trio.move_on_after(quiet_s):
                await self._wake.wait()
                continue
            await self._do_beside_writes(self._threads, partial(self._engine.tidy, self._clock.now_ms()))
            quiet_s = SWEEP_S

    def _keep_up(self) -> None:
        """Start what can't wait for an idle moment, beside the next commits."""
        if self._engine.is_behind and not self._is_catching_up:
            self._is_catching_up = True
            self.start_background(self._catch_up)

    async def _catch_up(self) -> None:
        await self._do_beside_writes(self._beside, partial(self._engine.catch_up, beside=True))
        self._is_rest_due = True
        self._wake.set()

    async def _finish_catching_up(self) -> None:
        self._is_rest_due = False
        await self._do_beside_writes(self._threads, partial(self._engine.catch_up, beside=False))
        self._count(catch_ups=self._reading.catch_ups + 1)
        self._is_catching_up = False

    async def _gather(self) -> None:
        """Let the writers that the last commit woke queue their next write, so that they share one fsync, not two."""
        queued = -1
        while queued < len(self._queue) < self._max_batch:
            queued = len(self._queue)
            for _ in range(GATHER_STEPS):
                await trio.lowlevel.checkpoint()

    async def _do_beside_writes(self, threads: Threads, work: Callable[[], None]) -> None:
        """Run what no asker waits for; a disk that refuses it is a diagnostic, the next time tries again."""
        try:
            await threads.run(work)
        except StoreError as error:
            self._count(failures=self._reading.failures + 1)
            self._log("warning", "store.upkeep-failed", code=error.code, reason=error.message)

    async def _commit_waiting(self) -> None:
        batch = [self._queue.popleft() for _ in range(min(len(self._queue), self._max_batch))]
        writes = [request for request in batch if isinstance(request.body, Commit)]
        commits = [request.body for request in writes]
        self._in_batch = batch
        started = trio.current_time()
        try:
            outcomes = await self._threads.run(self._engine.commit, commits, self._clock.now_ms()) if commits else []
        except StoreError as error:
            self._note_failure(error, len(writes))
            for request in batch:
                request.fail(anew(error))
            return
        finally:
            self._in_batch = []
        self._measure(len(writes), trio.current_time() - started)
        for request, outcome in zip(writes, outcomes, strict=True):
            if isinstance(outcome, Done):
                if request.body.applied is not None:
                    request.body.applied(outcome.value)
                request.settle(outcome.value)
            else:
                request.fail(outcome.error)
        for request in batch:
            if not isinstance(request.body, Commit):
                request.settle()

    def _note_failure(self, error: StoreError, writes: int) -> None:
        self._count(failures=self._reading.failures + 1, problem=error.code)
        self._log("error", "store.commit-failed", code=error.code, reason=error.message, writes=writes)

    def _measure(self, size: int, took_s: float) -> None:
        if size and self._reading.problem is not None:
            self._log("info", "store.recovered", after=self._reading.problem, failures=self._reading.failures)
            self._count(problem=None)
        if size:
            now = self._reading
            self._count(
                commits=now.commits + 1,
                writes=now.writes + size,
                last_batch=size,
                largest_batch=max(now.largest_batch, size),
                commit_s=now.commit_s + took_s,
                longest_commit_s=max(now.longest_commit_s, took_s),
            )

    def _count(self, **changes: Any) -> None:
        self._reading = attrs.evolve(self._reading, **changes)
