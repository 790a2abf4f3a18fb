"""A value that tasks can wait on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar, final

import attrs
import trio

T = TypeVar("T")


@final
@attrs.define(eq=False)
class Watched(Generic[T]):
    """A value with one owner that sets it and any number of tasks that wait for what it becomes."""

    _value: T
    _changed: trio.lowlevel.ParkingLot = attrs.field(factory=trio.lowlevel.ParkingLot, init=False)

    @property
    def value(self) -> T:
        """The value now."""
        return self._value

    def set(self, value: T) -> None:
        """Change it and wake everyone who waits; an equal value wakes nobody."""
        if value != self._value:
            self._value = value
            self._changed.unpark_all()

    async def wait_value(self, accept: Callable[[T], bool]) -> T:
        """Wait until the value is acceptable, at once if it is already; it still is when this returns.

        A value that is replaced before the waiting task runs may be missed.
        """
        await trio.lowlevel.checkpoint()
        while not accept(self._value):
            await self._changed.park()
        return self._value

    async def wait_transition(self) -> T:
        """Wait for the next change and give the new value."""
        await self._changed.park()
        return self._value
