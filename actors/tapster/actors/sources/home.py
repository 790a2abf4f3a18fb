"""Where a source's calls run: the nursery of its registration.

A request waits for its calls and cancels them, but never owns their tasks: a source that doesn't listen to
cancellation costs the request a second, not for ever, and is refused until it has ended.

Source: design §4 rule 12.
"""

import inspect
from collections.abc import Awaitable, Callable

import attrs
import trio

from tapster.engine.errors import TapsterError
from tapster.runtime import Threads, bounded_shield

from .errors import SourceDeaf, SourceFailed, SourceGone, SourceTimeout

GRACE_S = 1.0
"""How long a cancelled call may take to end."""


@attrs.frozen
class SourceStatistics:
    """A reading of one source, for introspection."""

    source_id: str
    plugin_id: str
    running: int
    strays: int
    calls: int
    failures: int
    last_error: str | None


@attrs.define(eq=False)
class Home:
    """One registration's place to run, and what happened there."""

    source_id: str
    plugin_id: str
    deadline_s: float
    threads: Threads | None
    _nursery: trio.Nursery
    is_open: bool = True
    strays: int = 0
    calls: int = 0
    failures: int = 0
    last_error: str | None = None
    _running: set["Call"] = attrs.field(factory=set)

    async def ask(
        self, function: Callable[..., object], *arguments: object, refusing: Callable[[], None] = lambda: None
    ) -> object:
        """Run a function of the source here and wait for its answer.

        Args:
            function: a function of the source.
            arguments: what it is called with.
            refusing: called as soon as it is clear that no answer will count, before the call's end is waited for.

        Raises:
            TapsterError: what the source raised, or one of ``SourceFailed``, ``SourceTimeout``, ``SourceDeaf``,
                ``SourceGone``.

        Cancellation: cancels the call and waits until it has ended, at most ``GRACE_S``.
        """
        if not self.is_open:
            raise SourceGone(self.source_id, f"the source {self.source_id} was unregistered")
        if self.strays:
            raise SourceDeaf(self.source_id, f"{self.source_id} still hasn't ended an earlier call that was cancelled")
        call = Call(self)
        self.calls += 1
        self._running.add(call)
        self._nursery.start_soon(call.run, function, arguments, name=f"source {self.source_id}")
        try:
            return await call.answer(refusing)
        except TapsterError as error:
            self.failures += 1
            self.last_error = error.code
            raise

    def close(self) -> None:
        """Take no more calls and cancel those that run; the requests waiting for them are refused."""
        self.is_open = False
        for call in self._running:
            call.withdraw()

    def ended(self, call: "Call") -> None:
        """Note that a call's task is over."""
        self._running.discard(call)
        if call.is_stray:
            self.strays -= 1

    def statistics(self) -> SourceStatistics:
        """A reading for introspection."""
        return SourceStatistics(
            self.source_id,
            self.plugin_id,
            len(self._running),
            self.strays,
            self.calls,
            self.failures,
            self.last_error,
        )


@attrs.define(eq=False)
class Call:
    """One call of one source: a task in its home, and a request that waits for it."""

    home: Home
    is_stray: bool = False
    _scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    _wake: trio.Event = attrs.field(factory=trio.Event)
    _ended: trio.Event = attrs.field(factory=trio.Event)
    _value: object = None
    _has_value: bool = False
    _is_withdrawn: bool = False
    _error: Exception | None = None

    async def run(self, function: Callable[..., object], arguments: tuple[object, ...]) -> None:
        """The call's own task."""
        try:
            with self._scope:
                self._value = await self._perform(function, arguments)
                self._has_value = True
        except Exception as error:  # noqa: BLE001 - it belongs to the request that waits; the home must live on
            self._error = error
        finally:
            self.home.ended(self)
            self._ended.set()
            self._wake.set()

    async def _perform(self, function: Callable[..., object], arguments: tuple[object, ...]) -> object:
        if inspect.iscoroutinefunction(function) or self.home.threads is None:
            answer = function(*arguments)
        else:
            answer = await self.home.threads.run(_call, function, arguments, abandon_on_cancel=True)
        return await answer if isinstance(answer, Awaitable) else answer

    def withdraw(self) -> None:
        """Cancel the call because its source goes, and let its request know."""
        self._is_withdrawn = not self._ended.is_set()
        self._scope.cancel(reason="the source was unregistered")
        self._wake.set()

    async def answer(self, refusing: Callable[[], None]) -> object:
        """Wait for the call to end, by its deadline."""
        try:
            with trio.move_on_after(self.home.deadline_s) as waiting:
                await self._wake.wait()
        except trio.Cancelled:
            self._scope.cancel(reason="the request was cancelled")
            await self._wait_for_end()  # noqa: ASYNC102 - shielded inside, for at most GRACE_S
            raise
        if waiting.cancelled_caught:
            self._scope.cancel(reason="the deadline passed")
        if waiting.cancelled_caught or self._is_withdrawn:
            refusing()
        await self._wait_for_end()
        return self._outcome(is_late=waiting.cancelled_caught)

    async def _wait_for_end(self) -> None:
        if not self._ended.is_set():
            with bounded_shield(GRACE_S):
                await self._ended.wait()
        if not self._ended.is_set():
            self.is_stray = True
            self.home.strays += 1

    def _outcome(self, *, is_late: bool) -> object:
        source_id = self.home.source_id
        if self.is_stray:
            raise SourceDeaf(source_id, f"{source_id} didn't end within {GRACE_S:g} s of being cancelled")
        if is_late:
            message = f"{source_id} didn't answer within {self.home.deadline_s:g} s"
            raise SourceTimeout(source_id, message) from self._error
        if self._has_value and not self._is_withdrawn:
            return self._value
        if self._error is None or self._is_withdrawn:
            raise SourceGone(source_id, f"the source {source_id} was unregistered") from self._error
        if isinstance(self._error, TapsterError):
            raise self._error
        raise SourceFailed(source_id, f"{source_id} failed with {type(self._error).__name__}") from self._error


def _call(function: Callable[..., object], arguments: tuple[object, ...]) -> object:
    return function(*arguments)
