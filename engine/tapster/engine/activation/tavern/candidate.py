"""One entry's way through a run."""

from typing import Literal, TypeAlias

import attrs

from tapster.engine.formats.world_books import WorldBookEntry

from .evaluate import Evaluation

GroupRule: TypeAlias = Literal["override", "weight", "score"]


@attrs.frozen
class GroupLoss:
    """Why an entry lost: its group, the candidate key of the winner, and what decided."""

    group: str
    winner: str
    by: GroupRule


@attrs.frozen
class Candidate:
    """One entry's way through a run; cost, probability and roll only as far as it came."""

    key: str
    entry: WorldBookEntry
    evaluation: Evaluation
    reason: str
    token_cost: int | None = None
    probability: float | None = None
    roll: float | None = None
    lost: GroupLoss | None = None

    @property
    def index(self) -> int:
        """The entry's place in its book."""
        return self.entry.source.index
