"""Listener chains: waterfalls with ``next``, serial hooks that are awaited, and contained notifications.

Source: spec/dsh_host §1, §2 "Ordering guarantees", §3.
"""

from collections.abc import Awaitable, Callable
from typing import Generic, Protocol, TypeAlias, TypeVar, final

import attrs
import trio

from tapster.runtime import LogSink

V = TypeVar("V")
C = TypeVar("C")
R = TypeVar("R")
V_contra = TypeVar("V_contra", contravariant=True)
C_contra = TypeVar("C_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)

Disposer: TypeAlias = Callable[[], None]


class Next(Protocol[V_contra, R_co]):
    """The rest of a chain; without an argument it gets the value unchanged."""

    async def __call__(self, value: V_contra | None = None) -> R_co: ...


@final
@attrs.define(eq=False)
class Waterfall(Generic[V, C, R]):
    """A chain of ``(value, context, next)`` listeners; the first registered is the outermost."""

    name: str
    _listeners: list[Callable[[V, C, Next[V, R]], Awaitable[R]]] = attrs.field(factory=list)

    def add(self, listener: Callable[[V, C, Next[V, R]], Awaitable[R]], *, prepend: bool = False) -> Disposer:
        """Register a listener, innermost or (``prepend``) outermost; call the result to remove it."""
        self._listeners.insert(0 if prepend else len(self._listeners), listener)
        return lambda: _drop(self._listeners, listener)

    async def run(self, value: V, context: C, last: Callable[[V], Awaitable[R]]) -> R:
        """Run the chain around ``last``; listeners that come or go meanwhile don't count."""
        result = await _Link(tuple(self._listeners), 0, value, context, last)()
        await trio.lowlevel.checkpoint_if_cancelled()
        return result


@attrs.frozen
class _Link(Generic[V, C, R]):
    listeners: tuple[Callable[[V, C, Next[V, R]], Awaitable[R]], ...]
    index: int
    value: V
    context: C
    last: Callable[[V], Awaitable[R]]

    async def __call__(self, value: V | None = None) -> R:
        given = self.value if value is None else value
        if self.index == len(self.listeners):
            return await self.last(given)
        following = _Link(self.listeners, self.index + 1, given, self.context, self.last)
        return await self.listeners[self.index](given, self.context, following)


@final
@attrs.define(eq=False)
class Serial(Generic[C]):
    """Listeners that are awaited one after the other; the first failure ends the row."""

    name: str
    _listeners: list[Callable[[C], Awaitable[None]]] = attrs.field(factory=list)

    def add(self, listener: Callable[[C], Awaitable[None]]) -> Disposer:
        """Register a listener; call the result to remove it."""
        self._listeners.append(listener)
        return lambda: _drop(self._listeners, listener)

    async def run(self, context: C) -> None:
        """Await every listener in order."""
        for listener in tuple(self._listeners):
            await listener(context)
        await trio.lowlevel.checkpoint_if_cancelled()


@final
@attrs.define(eq=False)
class Notice(Generic[C]):
    """Synchronous listeners that only hear; what they raise is reported and changes nothing."""

    name: str
    _log: LogSink
    _listeners: list[Callable[[C], None]] = attrs.field(factory=list)

    def add(self, listener: Callable[[C], None]) -> Disposer:
        """Register a listener; call the result to remove it."""
        self._listeners.append(listener)
        return lambda: _drop(self._listeners, listener)

    def emit(self, context: C) -> None:
        """Tell every listener in order."""
        for listener in tuple(self._listeners):
            try:
                listener(context)
            except Exception as error:  # noqa: BLE001 - a listener's fault never reaches the session (dsh_host §3)
                self._log("warning", "host.listener_failed", hook=self.name, error=type(error).__name__)


def at_once(answer: Callable[[V], R]) -> Callable[[V], Awaitable[R]]:
    """The end of a chain that needs no waiting."""

    async def last(value: V) -> R:
        await trio.lowlevel.checkpoint()
        return answer(value)

    return last


def _drop(listeners: list[V], listener: V) -> None:
    if listener in listeners:
        listeners.remove(listener)
