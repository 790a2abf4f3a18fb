"""One book against one text: evaluate, groups, probability, budget.

Source: spec/activation §5.
"""

import math
from collections.abc import Sequence

import attrs

from tapster.engine.ecma import utf16_length
from tapster.engine.text.ports import Checkpoint, RegexEngine, go_on

from .candidate import Candidate
from .compiled import CompiledBook
from .evaluate import Evaluation, evaluate_plan
from .groups import losers
from .options import ActivationOptions, clamp_roll, uid_text

PROBABILITY_FAILED = "probability-failed"
BUDGET_EXCEEDED = "budget-exceeded"
_DROPPED = (PROBABILITY_FAILED, BUDGET_EXCEEDED)


@attrs.frozen
class BudgetUse:
    """Tokens allowed and used; ``limit`` and ``remaining`` are None without a limit."""

    limit: int | None
    used: int

    @property
    def remaining(self) -> int | None:
        """Tokens left."""
        return None if self.limit is None else max(0, self.limit - self.used)


@attrs.frozen(eq=False)
class Activation:
    """Accepted candidates in rank order, rejected ones in index order: every entry is in one of them."""

    compiled: CompiledBook = attrs.field(repr=False)
    accepted: tuple[Candidate, ...]
    rejected: tuple[Candidate, ...]
    budget: BudgetUse

    @property
    def entry_count(self) -> int:
        """How many entries the book has."""
        return len(self.accepted) + len(self.rejected)

    def untouched_text(self, index: int) -> str | None:
        """What the book has written about the rejected entry at an index; None if the text touched the entry."""
        if index >= len(self.rejected):
            return None
        candidate = self.rejected[index]
        is_untouched = self.compiled.untouched[candidate.index] is candidate
        return self.compiled.untouched_texts[candidate.index] if is_untouched else None


def activate_book(
    compiled: CompiledBook,
    text: str,
    options: ActivationOptions | None = None,
    *,
    regex: RegexEngine | None = None,
    checkpoint: Checkpoint = go_on,
) -> Activation:
    """Which entries of a book a text activates, with a reason for every entry."""
    options = options or ActivationOptions()
    outcome = {
        index: _candidate(compiled, index, evaluation)
        for index, evaluation in _evaluations(compiled, text, options, regex, checkpoint).items()
    }
    ranked = sorted(outcome, key=compiled.ranks.__getitem__)
    eligible = {index: outcome[index] for index in ranked if outcome[index].evaluation.eligible}
    for index, loss in losers(eligible, options.group_rolls, options.use_group_scoring).items():
        outcome[index] = attrs.evolve(eligible.pop(index), reason="inclusion-group-loser", lost=loss)
    spending = _Spending(compiled, options)
    for index, candidate in eligible.items():
        outcome[index] = spending.settle(candidate)
    accepted = [index for index in eligible if outcome[index].reason not in _DROPPED]
    return Activation(
        compiled,
        tuple(map(outcome.__getitem__, accepted)),
        _rejected(compiled, outcome, accepted),
        BudgetUse(spending.limit, spending.used),
    )


def _evaluations(
    compiled: CompiledBook,
    text: str,
    options: ActivationOptions,
    regex: RegexEngine | None,
    checkpoint: Checkpoint,
) -> dict[int, Evaluation]:
    hits = compiled.index.scan(text)
    touched = set(compiled.open_entries)
    for number in hits:
        touched.update(compiled.owners[number])
    entries = compiled.book.entries
    found: dict[int, Evaluation] = {}
    for index in touched:
        # An entry's regex keys may cost their whole budget each, so every entry is a step.
        checkpoint()
        found[index] = evaluate_plan(
            entries[index],
            compiled.plans[index],
            hits,
            text,
            vector_matched=_vector_matched(compiled, index, options),
            regex=regex,
        )
    return found


def _vector_matched(compiled: CompiledBook, index: int, options: ActivationOptions) -> bool:
    if not options.vector_matches:
        return False
    candidate = compiled.untouched[index]
    return candidate.key in options.vector_matches or uid_text(candidate.entry.uid) in options.vector_matches


def _candidate(compiled: CompiledBook, index: int, evaluation: Evaluation) -> Candidate:
    still = compiled.untouched[index]
    return Candidate(still.key, still.entry, evaluation, evaluation.reason)


class _Spending:
    """Chance and budget, entry by entry in rank order."""

    def __init__(self, compiled: CompiledBook, options: ActivationOptions) -> None:
        own = compiled.book.settings.token_budget
        allowed = options.default_token_budget if own is None else own
        self.limit = None if allowed is None else max(0, math.floor(allowed))
        self.used = 0
        self.options = options

    def settle(self, candidate: Candidate) -> Candidate:
        """The candidate with its chance, roll and cost, and with the reason if one of them keeps it out."""
        entry, evaluation = candidate.entry, candidate.evaluation
        chance = min(max(entry.probability, 0), 100) if entry.use_probability else 100
        roll = clamp_roll(self.options.probability_rolls.of(candidate.key, entry))
        reason, cost = candidate.reason, None
        if chance <= 0 or (chance < 100 and roll * 100 >= chance):
            reason = PROBABILITY_FAILED
        else:
            cost = token_cost(candidate, self.options)
            reason = self._charge(0 if entry.ignore_budget else cost) or reason
        return Candidate(candidate.key, entry, evaluation, reason, cost, chance, roll)

    def _charge(self, cost: int) -> str | None:
        if cost and self.limit is not None and self.used + cost > self.limit:
            return BUDGET_EXCEEDED
        self.used += cost
        return None


def token_cost(candidate: Candidate, options: ActivationOptions) -> int:
    """The tokens of an entry's raw content: as supplied, else a quarter of its code units, at least 1."""
    supplied = options.token_costs.of(candidate.key, candidate.entry)
    if supplied is not None:
        return max(0, math.ceil(supplied))
    return max(1, math.ceil(utf16_length(candidate.entry.content) / 4))


def _rejected(compiled: CompiledBook, outcome: dict[int, Candidate], accepted: Sequence[int]) -> tuple[Candidate, ...]:
    every: list[Candidate | None] = list(compiled.untouched)
    for index, candidate in outcome.items():
        every[index] = candidate
    for index in accepted:
        every[index] = None
    return tuple([candidate for candidate in every if candidate is not None])
