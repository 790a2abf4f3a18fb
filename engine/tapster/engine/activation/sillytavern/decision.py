"""The decision on one entry: in or out, by which rule, with the rule's data.

Source: the vectors' README, table "Words"; docs/activation.md.
"""

from typing import Literal

import attrs

from tapster.engine.ecma import Json

from .entry import ScanEntry

PlaceKind = Literal["message", "source", "injection", "recursion", "none"]
ActiveReason = Literal["primary_key", "secondary_keys", "constant", "sticky", "decorator", "forced"]
InactiveReason = Literal[
    "no_key_match",
    "no_usable_key",
    "needs_external_match",
    "secondary_keys",
    "disabled",
    "trigger",
    "character_filter",
    "tag_filter",
    "delay",
    "cooldown",
    "delay_until_recursion",
    "exclude_recursion",
    "decorator",
    "group_lost",
    "probability",
    "budget",
    "max_recursion_steps",
    "duplicate_book",
]


@attrs.frozen
class KeyPlace:
    """A key that matched, and where: code points of that text (of a message's own text: a name in front is negative).

    ``label`` is the message's index from the oldest, the name of the extra text or injection, or the number of the
    recursion text; ``none`` is a key that is blank and matches anything.
    """

    key: str
    kind: PlaceKind
    label: int | str
    start: int
    end: int


@attrs.frozen
class ScanDecision:
    """What became of one entry.

    Attributes:
        details: the data that belongs to the reason: group winner, chance and roll, what a filter wanted.
        matched: the primary keys that matched, in the entry's order, each with its place.
        step: the pass it was decided in, from 1; 0 when no pass looked at it.
        by_min_activations: it was only found because too few entries had activated.
    """

    entry: ScanEntry
    active: bool
    reason: ActiveReason | InactiveReason
    details: tuple[tuple[str, Json], ...] = ()
    matched: tuple[KeyPlace, ...] = ()
    secondary: tuple[KeyPlace, ...] = ()
    step: int = 0
    by_min_activations: bool = False

    def to_json(self) -> Json:
        """The decision as data."""
        return {
            "entry": self.entry.name,
            "active": self.active,
            "reason": self.reason,
            **dict(self.details),
            "matched": [attrs.asdict(place) for place in self.matched],
            "secondary": [attrs.asdict(place) for place in self.secondary],
            "pass": self.step or None,
            "minActivations": self.by_min_activations,
        }
