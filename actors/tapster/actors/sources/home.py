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
from tapster.runtime import Threads

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

    def start(self, function: Callable[..., object], arguments: tuple[object, ...], wake: Callable[[], None]) -> "Call":
        """Start a function of the source here.

        Args:
            function: a function of the source.
            arguments: what it is called with.
            wake: called when the call has ended or no answer will count any more.

        Raises:
            SourceGone: the registration has ended.
            SourceDeaf: an earlier call still hasn't ended.
        """
        if not self.is_open:
            raise SourceGone(self.source_id, f"the source {self.source_id} was unregistered")
        if self.strays:
            raise SourceDeaf(self.source_id, f"{self.source_id} still hasn't ended an earlier call that was cancelled")
        call = Call(self, wake, trio.current_time() + self.deadline_s)
        self.calls += 1
        self._running.add(call)
        self._nursery.start_soon(call.run, function, arguments, name=f"source {self.source_id}")
        return call

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
    """One call of one source: a task in its home, for a request that waits elsewhere.

    Attributes:
        deadline: when it is late, on trio's clock.
        is_ended: whether its task is over.
        is_stray: whether its request gave up on it.
    """

    home: Home
    _wake: Callable[[], None]
    deadline: float
    is_ended: bool = False
    is_stray: bool = False
    _is_late: bool = False
    _is_withdrawn: bool = False
    _scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    _value: object = None
    _has_value: bool = False
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
            self.is_ended = True
            self.home.ended(self)
            self._wake()

    async def _perform(self, function: Callable[..., object], arguments: tuple[object, ...]) -> object:
        if inspect.iscoroutinefunction(function) or self.home.threads is None:
            answer = function(*arguments)
        else:
            answer = await self.home.threads.run(_call, function, arguments, abandon_on_cancel=True)
        return await answer if isinstance(answer, Awaitable) else answer

    @property
    def is_hopeless(self) -> bool:
        """Whether no answer of it can count any more."""
        return self._is_late or self._is_withdrawn

    def withdraw(self) -> None:
        """Cancel it because its source goes, and let its request know."""
        self._is_withdrawn = not self.is_ended
        self._scope.cancel(reason="the source was unregistered")
        self._wake()

    def expire(self, now: float) -> None:
        """Cancel it if its deadline has passed."""
        if now >= self.deadline and not self.is_ended:
            self._is_late = True
            self._scope.cancel(reason="the deadline passed")

    def cancel(self) -> None:
        """Cancel it because its request is over."""
        self._scope.cancel(reason="the request is over")

    def give_up(self) -> None:
        """Count it as stray: it was cancelled and goes on."""
        if not self.is_ended and not self.is_stray:
            self.is_stray = True
            self.home.strays += 1

    def outcome(self) -> object:
        """What the source answered, once it has ended or was given up.

        Raises:
            TapsterError: what the source raised, or one of ``SourceFailed``, ``SourceTimeout``, ``SourceDeaf``,
                ``SourceGone``.
        """
        if self._has_value and not self.is_hopeless:
            return self._value
        error = self._failure()
        self.home.failures += 1
        self.home.last_error = error.code
        raise error from (None if error is self._error else self._error)

    def _failure(self) -> TapsterError:
        source_id = self.home.source_id
        if self.is_stray:
            return SourceDeaf(source_id, f"{source_id} didn't end within {GRACE_S:g} s of being cancelled")
        if self._is_late:
            return SourceTimeout(source_id, f"{source_id} didn't answer within {self.home.deadline_s:g} s")
        if self._error is None or self._is_withdrawn:
            return SourceGone(source_id, f"the source {source_id} was unregistered")
        if isinstance(self._error, TapsterError):
            return self._error
        return SourceFailed(source_id, f"{source_id} failed with {type(self._error).__name__}")


def _call(function: Callable[..., object], arguments: tuple[object, ...]) -> object:
    return function(*arguments)
