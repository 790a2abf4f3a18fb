"""Parsed resources by revision, bounded by the size of their documents."""

from collections import OrderedDict
from typing import Any, Final, TypeAlias, final

from tapster.actors.store import ResourceKind

CACHE_BYTES: Final = 64 * 1024 * 1024
"""Of stored documents; a parsed one takes a few times as much."""
Slot: TypeAlias = tuple[ResourceKind, str, str]


@final
class ParsedCache:
    """Least recently used first out. A revision never changes, so an entry is never stale, only unused."""

    def __init__(self, limit_bytes: int = CACHE_BYTES) -> None:
        self._limit = limit_bytes
        self._slots: OrderedDict[Slot, tuple[Any, int]] = OrderedDict()
        self._bytes = 0

    def get(self, slot: Slot) -> Any | None:
        """What is kept for a revision, None when nothing is."""
        found = self._slots.get(slot)
        if found is None:
            return None
        self._slots.move_to_end(slot)
        return found[0]

    def put(self, slot: Slot, value: Any, size_bytes: int) -> None:
        """Keep it, and drop the least used beyond the limit; what alone is over it isn't kept."""
        if size_bytes > self._limit or slot in self._slots:
            return
        self._slots[slot] = value, size_bytes
        self._bytes += size_bytes
        while self._bytes > self._limit:
            _, (_, dropped) = self._slots.popitem(last=False)
            self._bytes -= dropped

    @property
    def size_bytes(self) -> int:
        """Bytes of the documents kept."""
        return self._bytes
