"""A JSON list that isn't held: its members are made each time they are asked for.

A request over a large book has ten thousand decisions, each a handful of objects. Held for as long as the request they
would be what every collection of garbage walks while nothing else runs.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Any, final, overload


@final
class LazyList(Sequence[Any]):
    """A list of JSON values, equal to any list with equal members.

    Args:
        length: how many members it has.
        make: the member at an index; the same for the same index at all times.
        written: the compact JSON text of the member at an index where it is known already, else None.
    """

    __slots__ = ("_length", "_make", "_written")
    __hash__ = None  # type: ignore[assignment]  # as a list

    def __init__(
        self, length: int, make: Callable[[int], Any], written: Callable[[int], str | None] | None = None
    ) -> None:
        self._length = length
        self._make = make
        self._written = written

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, place: int) -> Any: ...
    @overload
    def __getitem__(self, place: slice) -> list[Any]: ...
    def __getitem__(self, place: int | slice) -> Any:
        if isinstance(place, slice):
            return [self._make(index) for index in range(*place.indices(self._length))]
        return self._make(range(self._length)[place])

    def __iter__(self) -> Iterator[Any]:
        return map(self._make, range(self._length))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, list | tuple | LazyList):
            return NotImplemented
        return len(self) == len(other) and all(mine == its for mine, its in zip(self, other, strict=True))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._length}>"

    def written(self, index: int) -> str | None:
        """The compact JSON text of a member where it is known, so that nobody makes the member to write it."""
        return None if self._written is None else self._written(index)


def chained(lists: Sequence[Sequence[Any]]) -> LazyList:
    """The members of all lists, one list after the other."""
    if len(lists) == 1 and isinstance(lists[0], LazyList):
        return lists[0]
    ends = list(accumulate(map(len, lists)))

    def place(index: int) -> tuple[Sequence[Any], int]:
        number = bisect_right(ends, index)
        return lists[number], index - ends[number] + len(lists[number])

    def make(index: int) -> Any:
        held, within = place(index)
        return held[within]

    def written(index: int) -> str | None:
        held, within = place(index)
        return held.written(within) if isinstance(held, LazyList) else None

    return LazyList(ends[-1] if ends else 0, make, written)
