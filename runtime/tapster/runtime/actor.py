"""An actor: one task that owns state, an inbox before it, and a nursery of work below it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import count
from typing import Any, ClassVar, final

import attrs
import trio

from ._chain import ASKERS
from .cleanup import CLEANUP_GRACE_S, bounded_shield
from .errors import ActorGone, AskCycle, ManyErrors, Overloaded, RuntimeFault
from .inbox import Inbox
from .request import Request, Stage
from .roster import current_roster

_identities = count(1)


@attrs.frozen
class ActorStatistics:
    """A reading of one actor: inbox depth, requests open, age in seconds of the oldest open one."""

    name: str
    queued: int
    open: int
    oldest_s: float
    handled: int


class Actor:
    """The base of every actor.

    A subclass names itself, lists the errors that travel to askers, and writes ``receive``. Anything else that is
    raised is a bug: it ends the actor, and every open request ends with ``ActorGone``.
    """

    name: str = "actor"
    capacity: ClassVar[int] = 64
    declared: ClassVar[tuple[type[Exception], ...]] = ()
    close_grace_s: ClassVar[float] = CLEANUP_GRACE_S

    _work: trio.Nursery
    _open: set[Request]
    _inbox: Inbox
    _identity: int
    _handled: int = 0

    async def open(self) -> None:
        """Get ready; a failure here fails the opening call."""

    def begin(self) -> None:
        """Start work of its own, by ``start_background``; called once, before the first message."""

    def receive(self, request: Request) -> None:
        """Change state for one request, in inbox order, without awaiting.

        Answer it with ``request.settle`` or ``request.fail``, hand it to ``self.start``, or keep it and end it later.
        """
        raise NotImplementedError

    async def close(self) -> None:
        """Give resources back; runs after all work ended, within ``close_grace_s``."""

    def start(self, request: Request, work: Callable[..., Awaitable[Any]], *arguments: Any) -> None:
        """Serve a request by a task of its own under ``request.scope``; the loop goes on."""
        request.stage = Stage.RUNNING
        self._work.start_soon(self._serve, request, work, arguments, name=f"{self.name}: {type(request.body).__name__}")

    def start_background(self, work: Callable[..., Awaitable[Any]], *arguments: Any) -> None:
        """Run work of the actor's own below it, such as a timer or a writer; it ends with the actor."""
        self._work.start_soon(
            self._serve_self, work, arguments, name=f"{self.name}: {getattr(work, '__name__', 'work')}"
        )

    def finish(self) -> None:
        """End the actor from within, as passivation does: the inbox closes, what was never taken gets ``ActorGone``."""
        self._inbox.close()

    @property
    def is_asked(self) -> bool:
        """Whether anybody waits for it, in its inbox or with a request open."""
        return bool(self._open) or len(self._inbox) > 0

    def statistics(self) -> ActorStatistics:
        """A reading for introspection."""
        now = trio.current_time()
        oldest = min((request.asked_at for request in self._open), default=now)
        return ActorStatistics(self.name, len(self._inbox), len(self._open), now - oldest, self._handled)

    async def _serve(self, request: Request, work: Callable[..., Awaitable[Any]], arguments: tuple[Any, ...]) -> None:
        ASKERS.set((*request.chain, self._identity))
        try:
            with request.scope:
                try:
                    request.settle(await work(*arguments))
                except self._travelling as error:
                    request.fail(error)
                except BaseExceptionGroup as group:
                    request.fail(declared_leaf(group, self._travelling))
        finally:
            request.end()

    async def _serve_self(self, work: Callable[..., Awaitable[Any]], arguments: tuple[Any, ...]) -> None:
        ASKERS.set((self._identity,))
        await work(*arguments)

    @property
    def _travelling(self) -> tuple[type[Exception], ...]:
        return (*self.declared, RuntimeFault)

    def _take(self, request: Request) -> None:
        self._handled += 1
        self._open.add(request)
        request.on_end = self._open.discard
        try:
            self.receive(request)
        except self._travelling as error:
            request.fail(error)

    async def _live(self, task_status: trio.TaskStatus[Ref]) -> None:
        self._identity = next(_identities)
        self._inbox = Inbox(self.capacity)
        self._open = set()
        ended = trio.Event()
        ref = Ref(self, self._inbox, ended)
        roster = current_roster()
        try:
            await self.open()
            if roster is not None:
                roster.add(ref)
            async with trio.open_nursery(strict_exception_groups=True) as work:
                self._work = work
                ASKERS.set((self._identity,))
                self.begin()
                task_status.started(ref)
                while (request := await self._inbox.get()) is not None:
                    # Between leaving the inbox and this step its asker may have left: then it must not be begun.
                    if not request.has_ended:
                        self._take(request)
                work.cancel_scope.cancel(reason=f"{self.name} is stopping")
        finally:
            self._inbox.close()
            for request in (*self._inbox.drain(), *self._open):
                request.end()
            try:
                with bounded_shield(self.close_grace_s):
                    await self.close()  # noqa: ASYNC102 - bounded_shield is the shield
            finally:
                # A bug in close must not leave those waiting who want the actor gone.
                ended.set()
                if roster is not None:
                    roster.remove(ref)


def declared_leaf(group: BaseExceptionGroup[BaseException], declared: tuple[type[Exception], ...]) -> Exception:
    """The declared error a group stands for; several become one ``ManyErrors``.

    Raises:
        BaseExceptionGroup: the group itself when it holds anything undeclared (a bug, or ``Cancelled``).
    """
    matching, rest = group.split(declared)
    _, bugs = rest.split(trio.Cancelled) if rest is not None else (None, None)
    if matching is None or bugs is not None:
        raise group
    leaves = list(_leaves(matching))
    return leaves[0] if len(leaves) == 1 else ManyErrors(leaves)


def _leaves(group: BaseExceptionGroup[BaseException]) -> list[Exception]:
    found: list[Exception] = []
    for member in group.exceptions:
        if isinstance(member, BaseExceptionGroup):
            found += _leaves(member)
        elif isinstance(member, Exception):
            found.append(member)
    return found


@final
@attrs.define(eq=False)
class Ref:
    """A handle on one incarnation of an actor; safe to pass around."""

    _actor: Actor
    _inbox: Inbox
    _ended: trio.Event

    @property
    def name(self) -> str:
        """The actor's name."""
        return self._actor.name

    @property
    def is_alive(self) -> bool:
        """Whether it still takes messages."""
        return not self._inbox.is_closed

    async def ask(self, body: Any, *, control: bool = False) -> Any:
        """Send a message and wait for its answer, waiting for room first.

        Raises:
            ActorGone: the actor ended before it answered.
            AskCycle: the actor waits for the caller.
            Exception: an error that the actor declares.

        Cancellation: the work is cancelled; ``Cancelled`` is raised once it has ended.
        """
        request = self._request(body)
        if not await self._inbox.put(request, control=control):
            raise ActorGone(self.name, taken=False)
        try:
            return await request.answer()
        finally:
            self._free_slot(request)

    async def offer(self, body: Any) -> Any:
        """As ``ask``, for borders: a full inbox is ``Overloaded`` at once."""
        request = self._request(body)
        if not self._inbox.put_nowait(request):
            await trio.lowlevel.checkpoint()
            raise ActorGone(self.name, taken=False) if self._inbox.is_closed else Overloaded(self.name)
        try:
            return await request.answer()
        finally:
            self._free_slot(request)

    def tell(self, body: Any, *, control: bool = False) -> bool:
        """Send a message nobody waits for; False when the inbox is full or closed."""
        # Nobody waits for it, so it can't close a circle and its work begins a chain of its own.
        request = Request(body, self.name, (), trio.current_time())
        return self._inbox.put_nowait(request, control=control)

    def stop(self) -> None:
        """Ask the actor to end: nothing more is taken, running work is cancelled."""
        self._inbox.close()

    async def wait_ended(self) -> None:
        """Wait until the actor is gone and its cleanup is done."""
        await self._ended.wait()

    def statistics(self) -> ActorStatistics:
        """A reading for introspection."""
        return self._actor.statistics()

    def _request(self, body: Any) -> Request:
        chain = ASKERS.get()
        if self._actor._identity in chain:
            raise AskCycle([*(f"#{identity}" for identity in chain), self.name])
        return Request(body, self.name, chain, trio.current_time())

    def _free_slot(self, request: Request) -> None:
        if not request.was_taken:
            self._inbox.discard(request)


@asynccontextmanager
async def open_actor(actor: Actor) -> AsyncIterator[Ref]:
    """Run an actor for the length of a block; it is ready when the block begins and gone when it ends.

    Raises:
        Exception: what ``actor.open`` raised, as it is. A bug in the actor cancels the block and is raised as a group.
    """
    is_ready = False
    try:
        async with trio.open_nursery(strict_exception_groups=True) as nursery:
            ref = await nursery.start(actor._live)
            is_ready = True
            try:
                yield ref
            finally:
                ref.stop()
                with bounded_shield(actor.close_grace_s + CLEANUP_GRACE_S):
                    await ref.wait_ended()  # noqa: ASYNC102 - bounded_shield is the shield
                nursery.cancel_scope.cancel(reason=f"{actor.name} is closed")
    except BaseExceptionGroup as group:
        if is_ready or len(group.exceptions) != 1:
            raise
        raise group.exceptions[0] from None  # noqa: ASYNC123 - nothing else ran yet, the group says no more
