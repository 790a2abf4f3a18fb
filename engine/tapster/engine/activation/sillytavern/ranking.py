"""The order in which entries are looked at: where their book comes from, then the larger order first.

Source: the recorded behaviour in st_world_info.jsonl, areas books, constant.
"""

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import TypeVar

from .result import Place
from .settings import BookUse, Strategy

Item = TypeVar("Item")
_TIERS: dict[Strategy, dict[str, int]] = {
    "evenly": {"chat": 0, "persona": 1, "global": 2, "character": 2},
    "character_first": {"chat": 0, "persona": 1, "character": 2, "global": 3},
    "global_first": {"chat": 0, "persona": 1, "global": 2, "character": 3},
}


def sort_by_order(items: Sequence[Item], order: Callable[[Item], float]) -> list[Item]:
    """Items from the largest order down, ties as they were; one without an order is equal to every other.

    V8 sorts with the algorithm that Python has, so the same comparisons lead to the same list.
    """

    def compare(left: Item, right: Item) -> int:
        difference = order(right) - order(left)
        return 0 if math.isnan(difference) else int(difference > 0) - int(difference < 0)

    return sorted(items, key=functools.cmp_to_key(compare))


class Ranking:
    """The evaluation order of a scan's entries, without sorting all of them."""

    def __init__(self, books: Sequence[BookUse], strategy: Strategy) -> None:
        self._books = books
        self._tiers = [_TIERS[strategy][use.place] for use in books]
        self._ranks = self._all_ranks() if any(use.compiled.lacks_order for use in books) else {}

    def key(self, place: Place) -> tuple[float, ...]:
        """The sort key of an entry."""
        if self._ranks:
            return (self._ranks[place],)
        return self._tiers[place[0]], -self._order(place), *self._listed(place)

    def _order(self, place: Place) -> float:
        return self._books[place[0]].compiled.entries[place[1]].order

    def _listed(self, place: Place) -> tuple[int, int, int]:
        return (self._books[place[0]].place == "character", *place)

    def _tier(self, place: Place) -> int:
        return self._tiers[place[0]]

    def _all_ranks(self) -> dict[Place, int]:
        """Ranks where some entries have no order: comparing with those decides nothing, so all must be sorted."""
        places = [(book, index) for book, use in enumerate(self._books) for index in range(len(use.compiled.entries))]
        places.sort(key=lambda place: (self._tier(place), self._listed(place)))
        tiers = [list(group) for _, group in itertools.groupby(places, key=self._tier)]
        ordered = [place for tier in tiers for place in sort_by_order(tier, self._order)]
        return {place: rank for rank, place in enumerate(ordered)}
