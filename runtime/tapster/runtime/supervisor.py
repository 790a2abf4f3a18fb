"""Keeps actors running: starts them in order, restarts the crashed, stops in reverse order."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import Context, copy_context
from typing import Any, Literal, final

import attrs
import trio

from ._chain import ASKERS
from .actor import Actor, Ref, open_actor
from .causes import described
from .cleanup import unbounded_shield
from .errors import ActorGone, Draining, Quarantined, RestartLimit
from .ports import LogSink
from .roster import current_roster
from .watch import Watched


@attrs.frozen
class Restart:
    """How often a child may crash: more than ``intensity`` times within ``period_s`` seconds is too often.

    ``exceeded`` says what then happens: the child is quarantined until a reset, or its supervisor ends with it.
    """

    intensity: int = 1
    period_s: float = 5.0
    exceeded: Literal["quarantine", "give-up"] = "give-up"


State = Literal["starting", "running", "restarting", "quarantined", "ended"]


def _nothing_more(child: Child) -> None:
    """Nobody keeps a list of the children."""


@final
@attrs.define(eq=False)
class Child:
    """One supervised actor over all its incarnations."""

    name: str
    restart: Restart
    state: Watched[State] = attrs.field(factory=lambda: Watched[State]("starting"))
    restarts: int = 0
    _opening: trio.TaskStatus[None] | None = None
    """Whom to tell that it is ready, until it is: through this, trio refers to the task that asked."""
    _ref: Ref | None = None
    _crashes: deque[float] = attrs.field(factory=deque)
    _scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    _gone: trio.Event = attrs.field(factory=trio.Event)

    @property
    def current(self) -> Ref | None:
        """The incarnation that takes messages now, None between two."""
        return self._ref if self._ref is not None and self._ref.is_alive else None

    async def ref(self) -> Ref:
        """The incarnation that runs now, waiting for a restart in progress.

        Raises:
            Quarantined: it crashed too often.
            ActorGone: it has ended for good.
        """
        while True:
            state = await self.state.wait_value(lambda state: state not in ("starting", "restarting"))
            if state == "quarantined":
                raise Quarantined(self.name, len(self._crashes), self.restart.period_s)
            if state == "ended" or self._ref is None:
                raise ActorGone(self.name, taken=False)
            if self._ref.is_alive:
                return self._ref
            # It has just crashed or finished; its supervisor says in a moment what comes next.
            await self.state.wait_transition()

    async def ask(self, body: Any) -> Any:
        """Ask the incarnation that runs, or the next one when none had begun with it.

        Raises:
            ActorGone: it ended while it was at it, or for good.
            Quarantined: it crashed too often.
            AskCycle, Exception: as ``Ref.ask``.
        """
        while True:
            # Waiting for what is there would cost each message a step of the scheduler.
            ref = self.current if self.state.value == "running" else None
            ref = ref or await self.ref()
            try:
                return await ref.ask(body)
            except ActorGone as gone:
                if gone.taken:
                    raise

    def reset(self) -> None:
        """End a quarantine: the next message starts it afresh."""
        if self.state.value == "quarantined":
            self._crashes.clear()
            self.state.set("restarting")

    async def wait_gone(self) -> None:
        """Wait until it has ended for good, whoever ended it."""
        await self._gone.wait()

    def leave(self) -> None:
        """End it for good, without waiting."""
        if self._ref is not None:
            self._ref.stop()
        self._scope.cancel(reason=f"{self.name} is stopped")

    async def stop(self) -> None:
        """End it for good and wait until it is gone."""
        self.leave()
        await self._gone.wait()


@final
@attrs.define(eq=False)
class Supervisor:
    """Runs children; made by ``open_supervisor``."""

    _nursery: trio.Nursery
    _log: LogSink
    _context: Context = attrs.field(factory=copy_context)
    _children: dict[Child, None] = attrs.field(factory=dict)
    _is_closing: bool = False

    @property
    def children(self) -> tuple[Child, ...]:
        """Children that have started and not ended for good, oldest first."""
        return tuple(self._children)

    async def start(
        self,
        name: str,
        make: Callable[[], Actor],
        restart: Restart | None = None,
        *,
        on_gone: Callable[[Child], None] = _nothing_more,
    ) -> Child:
        """Start a child and wait until it is ready.

        Args:
            name: for people.
            make: a new incarnation.
            restart: how often it may crash.
            on_gone: called when it has ended for good.

        Raises:
            Exception: what the first ``open`` raised; the child isn't kept then.
            Draining: the supervisor is closing.
        """
        if self._is_closing:
            raise Draining
        child = Child(name, restart or Restart())
        await self._nursery.start(self._keep, child, make, on_gone, name=f"supervisor: {name}")
        return child

    async def _keep(  # noqa: ASYNC128 - in _run_once
        self,
        child: Child,
        make: Callable[[], Actor],
        on_gone: Callable[[Child], None],
        task_status: trio.TaskStatus[None],
    ) -> None:
        # The child knows neither function: what they know knows the child, and a cycle would keep it.
        child._opening = task_status
        del task_status
        roster = current_roster()
        if roster is not None:
            roster.add_child(child)
        try:
            with child._scope:
                await self._leave_callers_context()
                await self._run_once(child, make)
                while await child.state.wait_value(lambda state: state != "quarantined") == "restarting":
                    await self._run_once(child, make)
        finally:
            # Whoever still holds the child doesn't hold what its last incarnation had.
            child._opening = child._ref = None
            child.state.set("ended")
            child._gone.set()
            if roster is not None:
                roster.remove_child(child)
            self._children.pop(child, None)
            on_gone(child)

    async def _leave_callers_context(self) -> None:
        """Go on in the supervisor's context: a request over HTTP that starts a child must not live as long as it."""
        context = self._context.copy()
        context.run(ASKERS.set, ASKERS.get())
        trio.lowlevel.current_task().context = context
        await trio.lowlevel.checkpoint()

    async def _run_once(self, child: Child, make: Callable[[], Actor]) -> None:
        try:
            async with open_actor(make()) as ref:
                child._ref = ref
                self._children[child] = None
                child.state.set("running")
                if child._opening is not None:
                    child._opening.started()
                    child._opening = None
                await ref.wait_ended()
            child.state.set("ended")
        except Exception as error:
            if child._opening is not None:
                raise
            self._crashed(child, error)
        except BaseExceptionGroup as group:
            # It crashed in the moment in which it was stopped; that must not take its supervisor along.
            cancelled, bugs = group.split(trio.Cancelled)
            try:
                if cancelled is None or not isinstance(bugs, ExceptionGroup) or child._opening is not None:
                    raise
                self._crashed(child, bugs)
                raise cancelled from None
            finally:
                # With its traceback it would be a cycle through this frame, and keep all that the child had.
                del cancelled, bugs

    def _crashed(self, child: Child, error: Exception) -> None:
        now = trio.current_time()
        child._ref = None
        child._crashes.append(now)
        while child._crashes[0] < now - child.restart.period_s:
            child._crashes.popleft()
        crashes = len(child._crashes)
        self._log("error", "actor.crashed", actor=child.name, **described(error), crashes=crashes)
        if crashes <= child.restart.intensity:
            child.restarts += 1
            child.state.set("restarting")
        elif child.restart.exceeded == "quarantine":
            child.state.set("quarantined")
        else:
            raise RestartLimit(child.name, crashes, child.restart.period_s) from error


@asynccontextmanager
async def open_supervisor(log: LogSink) -> AsyncIterator[Supervisor]:
    """A supervisor for the length of a block; children stop in reverse order when it ends."""
    async with trio.open_nursery(strict_exception_groups=True) as nursery:
        supervisor = Supervisor(nursery, log)
        try:
            yield supervisor
        finally:
            supervisor._is_closing = True
            with unbounded_shield():
                for child in reversed(supervisor.children):
                    await child.stop()  # noqa: ASYNC102 - each actor's close is bounded
            nursery.cancel_scope.cancel(reason="the supervisor is closed")
