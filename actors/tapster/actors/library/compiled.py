"""Compiled books: made once for all sessions, off the trio thread in parts, and swapped in when whole."""

from collections.abc import Callable, Generator
from typing import Any, TypeVar, final

import attrs

from .cache import Slot
from .core import LibraryCore

T = TypeVar("T")


@final
@attrs.frozen
class _Done:
    value: Any


@final
@attrs.frozen
class CompiledBooks:
    """A cache of compiled values over the library's own; whoever wants one that is being made waits for it."""

    core: LibraryCore

    async def get(self, slot: Slot, size_bytes: int, make: Callable[[], Generator[None, None, T]]) -> T:
        """The value of a slot, made if need be.

        Cancellation: between two parts; the next who asks begins anew.
        """
        known: T | None = self.core.cache.get(slot)
        if known is not None:
            return known
        async with self.core.alone("compiled", "/".join(slot)):
            known = self.core.cache.get(slot)
            if known is None:
                known = await self._made(make())
                self.core.cache.put(slot, known, size_bytes)
            return known

    async def _made(self, parts: Generator[None, None, T]) -> T:
        while True:
            done = await self.core.compute(_next_part, parts)
            if done is not None:
                value: T = done.value
                return value


def _next_part(parts: Generator[None, None, Any]) -> _Done | None:
    try:
        next(parts)
    except StopIteration as stop:
        return _Done(stop.value)
    return None
