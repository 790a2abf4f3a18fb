"""One message under way: its body, the scope of its work, and how it ended."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, final

import attrs
import outcome
import trio

from .cleanup import unbounded_shield
from .errors import ActorGone


class Stage(enum.Enum):
    """Where a request is."""

    QUEUED = "queued"
    HELD = "held"
    RUNNING = "running"
    ENDED = "ended"


@final
@attrs.define(eq=False)
class Request:
    """A message and its answer; made by ``Ref``, ended by exactly one of answer, declared error, or the actor's end.

    Attributes:
        body: the message.
        chain: names of the actors that wait for this answer, outermost first.
        on_leave: what a held request does when its asker leaves; None ends it at once. The owner sets it while
            the request is held and must see to it that the request ends.
        on_end: the kernel's book-keeping, called once when it ends.
    """

    body: Any
    actor: str
    chain: tuple[int, ...] = ()
    asked_at: float = 0.0
    on_leave: Callable[[], None] | None = None
    on_end: Callable[[Request], None] | None = None
    stage: Stage = Stage.QUEUED
    has_left: bool = False
    _taken: bool = False
    _result: outcome.Outcome[Any] | None = None
    _ended: trio.Event = attrs.field(factory=trio.Event)
    _scope: trio.CancelScope | None = None

    @property
    def scope(self) -> trio.CancelScope:
        """The cancel scope of the work that serves it; made when there is some."""
        if self._scope is None:
            self._scope = trio.CancelScope()
        return self._scope

    @property
    def is_settled(self) -> bool:
        """Whether an answer or an error is fixed, though the work may still be unwinding."""
        return self._result is not None

    @property
    def was_taken(self) -> bool:
        """Whether it ever left the inbox."""
        return self._taken

    @property
    def has_ended(self) -> bool:
        """Whether nothing of it runs any more."""
        return self.stage is Stage.ENDED

    def settle(self, value: Any = None) -> None:
        """Fix the answer; a request that no work runs for ends here."""
        self._fix(outcome.Value(value))

    def fail(self, error: BaseException) -> None:
        """Fix a declared error; a request that no work runs for ends here."""
        self._fix(outcome.Error(error))

    def cancel(self, error: Exception, reason: str) -> None:
        """Stop its work because of the actor (superseded, shutting down); the asker gets ``error``."""
        if self._result is None:
            self._result = outcome.Error(error)
        if self.stage is Stage.RUNNING:
            self.scope.cancel(reason=reason)
        else:
            self.end()

    def take(self) -> None:
        """Mark it as taken from the inbox."""
        self._taken = True
        self.stage = Stage.HELD

    def end(self) -> None:
        """Nothing of it runs any more; unsettled it becomes ``ActorGone``."""
        if self.stage is not Stage.ENDED:
            self.stage = Stage.ENDED
            self._ended.set()
            on_end = self.on_end
            # Both may refer to the request; with them it would wait, body and all, for a collection to be freed.
            self.on_leave = self.on_end = None
            if on_end is not None:
                on_end(self)

    def leave(self, reason: str) -> None:
        """The asker goes: cancel the work; a held request ends as its owner says."""
        self.has_left = True
        if self.stage is Stage.RUNNING:
            self.scope.cancel(reason=reason)
        elif self.stage is Stage.HELD and self.on_leave is not None:
            self.on_leave()
        else:
            self.end()

    async def wait_ended(self) -> None:
        """Wait until nothing of it runs any more, whoever ended it."""
        await self._ended.wait()

    async def answer(self) -> Any:
        """The asker's side: the answer once all work has ended.

        Raises:
            ActorGone: the actor ended first.

        Cancellation: the work is cancelled, and ``Cancelled`` is raised only after it ended.
        """
        try:
            await self._ended.wait()
        except trio.Cancelled:
            self.leave("asker left")
            with unbounded_shield():
                await self._ended.wait()  # noqa: ASYNC102 - the work's own rules bound it
            raise
        if self._result is None:
            raise ActorGone(self.actor, taken=self._taken)
        return self._result.unwrap()

    def _fix(self, result: outcome.Outcome[Any]) -> None:
        if self._result is None:
            self._result = result
        if self.stage is not Stage.RUNNING:
            self.end()
