"""What a caller may set for one activation: rolls, costs, budgets, limits.

Source: spec/activation §5.4-§5.6, §7.
"""

from collections.abc import Mapping

import attrs

from tapster.engine import limits
from tapster.engine.ecma import Json, is_number, number_text
from tapster.engine.formats.world_books import WorldBookEntry
from tapster.engine.projection import bounded_option


@attrs.frozen
class Rolls:
    """Numbers supplied for entries, by candidate key, uid or uid text."""

    values: Mapping[str, Json] = attrs.field(factory=dict)

    def of(self, candidate_key: str, entry: WorldBookEntry) -> float | None:
        """The number for one entry, or None when none was supplied."""
        if not self.values:
            return None
        for name in (candidate_key, uid_text(entry.uid)):
            value: Json = self.values.get(name)
            if is_number(value):
                return float(value)
        return None


@attrs.frozen
class ActivationOptions:
    """Options of a run; ``default_token_budget`` None is unlimited."""

    max_scan_characters: int = limits.DEFAULT_SCAN_CHARACTERS
    max_scan_messages: int = limits.DEFAULT_SCAN_MESSAGES
    max_runtime_entries: int = limits.MAX_RUNTIME_ENTRIES
    default_token_budget: float | None = None
    use_group_scoring: bool = False
    probability_rolls: Rolls = attrs.field(factory=Rolls)
    group_rolls: Mapping[str, float] = attrs.field(factory=dict)
    token_costs: Rolls = attrs.field(factory=Rolls)
    vector_matches: frozenset[str] = frozenset()

    @classmethod
    def from_options(cls, options: Mapping[str, Json]) -> "ActivationOptions":
        """The options in the contract's names; odd values fall back to the defaults, larger ones are clamped."""
        budget: Json = options.get("defaultTokenBudget")
        return cls(
            bounded_option(options, "maxScanCharacters", limits.DEFAULT_SCAN_CHARACTERS, limits.MAX_SCAN_CHARACTERS),
            bounded_option(options, "maxScanMessages", limits.DEFAULT_SCAN_MESSAGES, limits.MAX_SCAN_MESSAGES),
            bounded_option(options, "maxRuntimeEntries", limits.MAX_RUNTIME_ENTRIES, limits.MAX_RUNTIME_ENTRIES),
            float(budget) if is_number(budget) else None,
            options.get("useGroupScoring") is True,
            Rolls(_record(options.get("probabilityRolls"))),
            {name: float(roll) for name, roll in _record(options.get("groupRolls")).items() if is_number(roll)},
            Rolls(_record(options.get("tokenCosts"))),
            frozenset(name for name, matched in _record(options.get("vectorMatches")).items() if matched),
        )


def uid_text(uid: int | str) -> str:
    """A uid as an object key."""
    return uid if isinstance(uid, str) else number_text(uid)


def clamp_roll(roll: float | None) -> float:
    """A roll in [0, 1); an absent one is 0."""
    return min(max(roll or 0.0, 0.0), limits.MAX_ROLL)


def _record(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, dict) else {}
