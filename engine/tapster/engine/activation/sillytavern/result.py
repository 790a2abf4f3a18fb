"""What a scan gives: the active entries, its passes, the state after it, and a decision for every entry on demand."""

from collections.abc import Iterator, Mapping

import attrs

from tapster.engine.ecma import Json

from .decision import ScanDecision
from .entry import ScanEntry
from .ports import ScanVariables
from .settings import ScanInput
from .timed import TimedState
from .verdict import Rules, ScanState

Place = tuple[int, int]
"""Index of a book among the scanned ones, and of an entry in it."""


@attrs.frozen
class ActiveEntry:
    """An entry that activated; ``content`` after its macros, ``step`` the pass, from 1."""

    entry: ScanEntry
    content: str
    place: Place
    step: int
    by_min_activations: bool = False


@attrs.frozen
class ScanPass:
    """One pass: what it was for, what came next, who took part, who got past the chance."""

    state: ScanState
    following: ScanState
    new: tuple[str, ...]
    successful: tuple[str, ...]
    active_total: int
    overflowed: bool


@attrs.frozen
class VariableWrite:
    """A chat variable that a macro changed, and the entry whose text did it."""

    name: str
    value: Json
    entry: str | None


@attrs.frozen(eq=False)
class ScanResult:
    """The outcome of a scan.

    Attributes:
        active: in activation order.
        timed: the effects to keep for the next turn; a dry run changes none.
        out_of_passes: the scan wanted to go on but the pass limit ended it.
    """

    active: tuple[ActiveEntry, ...]
    passes: tuple[ScanPass, ...]
    budget: float
    overflowed: bool
    timed: TimedState
    variables: ScanVariables
    writes: tuple[VariableWrite, ...]
    given: ScanInput = attrs.field(repr=False)
    scanned: ScanInput = attrs.field(repr=False)
    rules: Rules = attrs.field(repr=False)
    decided: Mapping[Place, ScanDecision] = attrs.field(repr=False)
    out_of_passes: bool = False

    def decisions(self) -> Iterator[ScanDecision]:
        """The decision on every entry of every book, in book order."""
        for book, use in enumerate(self.scanned.books):
            seen, misses = self.rules.seen(book), use.compiled.misses
            for index, by_keys_only in enumerate(use.compiled.always_scanned):
                place = (book, index)
                if by_keys_only and index not in seen and place not in self.decided:
                    yield misses[index]
                else:
                    yield self.decision(place)
        for use in self.given.books:
            if use not in self.scanned.books:
                details = (("winner", use.copy_of),)
                for entry in use.compiled.entries:
                    yield ScanDecision(entry, False, "duplicate_book", details)

    def decision(self, place: Place) -> ScanDecision:
        """The decision on one entry, with where its keys matched."""
        compiled = self.scanned.books[place[0]].compiled
        known = self.decided.get(place)
        if known is None:
            known = compiled.misses[place[1]]
            barred = self.rules.barred(known.entry, ScanState.INITIAL, 0)
            if barred is not None:
                return ScanDecision(known.entry, False, barred.reason, barred.details)
            if place[1] not in self.rules.seen(place[0]):
                return known
        return self._out_of_passes(place, known) or self._with_places(place, known)

    def _with_places(self, place: Place, known: ScanDecision) -> ScanDecision:
        primary, secondary = self.rules.places(*place, recursion=True)
        return attrs.evolve(known, matched=primary, secondary=secondary)

    def _out_of_passes(self, place: Place, known: ScanDecision) -> ScanDecision | None:
        """The decision on an entry that one more pass would have activated."""
        if not self.out_of_passes or known.active or known.reason not in ("no_key_match", "delay_until_recursion"):
            return None
        verdict = self.rules.verdict(*place, ScanState.RECURSION, float("inf"))
        if not verdict.active:
            return None
        details = (("limit", self.given.settings.max_recursion_steps),)
        return self._with_places(place, attrs.evolve(known, reason="max_recursion_steps", details=details))
