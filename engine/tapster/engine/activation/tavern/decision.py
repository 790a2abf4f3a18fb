"""The decision on one entry of a book: included or rejected, by which rule, and where it went.

Source: spec/activation §6.
"""

from typing import Literal

import attrs

from tapster.engine.ecma import Json, quote, stringify, trim
from tapster.engine.formats.world_books import WorldBookEntry

from .candidate import Candidate

LorePosition = Literal["before", "after"]
EXACT_POSITIONS = frozenset({"before_character_definition", "after_character_definition"})
_BEFORE = frozenset({"before_character_definition", "before_author_note", "before_example_messages"})
EMPTY_CONTENT = "empty-content"
OUTLET_UNSUPPORTED = "outlet-unsupported"


@attrs.frozen
class Decision:
    """What became of one entry, and why: the audit's record, without content and without scanned text."""

    resource_id: str
    candidate: Candidate
    decision: Literal["included", "rejected"]
    reason: str
    applied_position: LorePosition | None
    approximate_position: bool

    @classmethod
    def rejected(cls, resource_id: str, candidate: Candidate) -> "Decision":
        """The decision on a candidate that a run turned away."""
        return cls(resource_id, candidate, "rejected", candidate.reason, None, False)

    @classmethod
    def accepted(cls, resource_id: str, candidate: Candidate) -> "Decision":
        """The decision on an accepted candidate: it is delivered unless the renderer has no place for it."""
        withheld = withheld_reason(candidate.entry)
        if withheld is not None:
            return cls(resource_id, candidate, "rejected", withheld, None, withheld == OUTLET_UNSUPPORTED)
        position, is_exact = lore_position(candidate.entry), candidate.entry.position in EXACT_POSITIONS
        return cls(resource_id, candidate, "included", candidate.reason, position, not is_exact)

    def to_json(self) -> Json:
        """The decision in the contract's field names."""
        entry, candidate = self.candidate.entry, self.candidate
        evaluation = candidate.evaluation
        return {
            "resourceId": self.resource_id,
            "entryId": entry.uid,
            "entryName": entry.comment,
            "decision": self.decision,
            "reason": self.reason,
            "primaryKeys": list(entry.keys),
            "secondaryKeys": list(entry.secondary_keys),
            "primaryMatches": evaluation.primary_matches,
            "secondaryMatches": evaluation.secondary_matches,
            "secondaryLogic": entry.selective_logic if entry.selective else None,
            "groupName": entry.group.name or None,
            "groupWeight": entry.group.weight if entry.group.name else None,
            "groupOverride": entry.group.override,
            "probability": entry.probability if candidate.probability is None else candidate.probability,
            "probabilityRoll": candidate.roll,
            "tokenCost": candidate.token_cost,
            "requestedPosition": entry.position,
            "appliedPosition": self.applied_position,
            "approximatePosition": self.approximate_position,
        }

    def text_behind_resource_id(self) -> str:
        """The compact JSON without its first member: the part that is the same wherever the book is bound."""
        value = self.to_json()
        del value["resourceId"]
        return stringify(value)[1:]


def text_with_resource_id(resource_id: str, rest: str) -> str:
    """The whole compact JSON of a decision, from a ``text_behind_resource_id``."""
    return f'{{"resourceId":{quote(resource_id)},{rest}'


def lore_position(entry: WorldBookEntry) -> LorePosition:
    """Where the compatibility renderer can put an entry."""
    return "before" if entry.position in _BEFORE else "after"


def withheld_reason(entry: WorldBookEntry) -> str | None:
    """Why an accepted entry isn't delivered all the same, or None."""
    if not trim(entry.content):
        return EMPTY_CONTENT
    return OUTLET_UNSUPPORTED if entry.position == "outlet" else None
