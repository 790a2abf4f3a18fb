"""Savepoints for state held in dictionaries and lists: changes that can be taken back in reverse order."""

from collections.abc import Callable, Sequence
from typing import TypeVar, final

K = TypeVar("K")
V = TypeVar("V")


@final
class UndoLog:
    """Changes to dictionaries that can be taken back in reverse order."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], object]] = []

    def set(self, table: dict[K, V], key: K, value: V) -> None:
        """Put a value, in its old place if there is one."""
        if key in table:
            before = table[key]
            self._undo.append(lambda: table.__setitem__(key, before))
        else:
            self._undo.append(lambda: table.__delitem__(key))
        table[key] = value

    def remove(self, table: dict[K, V], key: K) -> bool:
        """Take a key out; whether it was there."""
        if key not in table:
            return False
        before = dict(table)
        self._undo.append(lambda: _restore(table, before))
        del table[key]
        return True

    def extend(self, items: list[V], more: Sequence[V]) -> None:
        """Add to the end of a list."""
        length = len(items)
        self._undo.append(lambda: items.__delitem__(slice(length, None)))
        items.extend(more)

    def mark(self) -> int:
        """A savepoint."""
        return len(self._undo)

    def back_to(self, mark: int) -> None:
        """Take back what came after a savepoint."""
        while len(self._undo) > mark:
            self._undo.pop()()

    def forget(self) -> None:
        """Keep the changes for good."""
        self._undo.clear()


def _restore(table: dict[K, V], before: dict[K, V]) -> None:
    table.clear()
    table.update(before)
