"""One book against one text: evaluate, groups, probability, budget.

Source: spec/activation §5.
"""

import math
from collections.abc import Sequence

import attrs

from tapster.engine.ecma import utf16_length
from tapster.engine.text.ports import RegexEngine

from .compiled import Candidate, CompiledBook
from .evaluate import Evaluation, evaluate_plan
from .groups import losers
from .options import ActivationOptions, clamp_roll, uid_text


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

    accepted: tuple[Candidate, ...]
    rejected: tuple[Candidate, ...]
    budget: BudgetUse


def activate_book(
    compiled: CompiledBook, text: str, options: ActivationOptions | None = None, *, regex: RegexEngine | None = None
) -> Activation:
    """Which entries of a book a text activates, with a reason for every entry."""
    options = options or ActivationOptions()
    outcome = {
        index: _candidate(compiled, index, evaluation)
        for index, evaluation in _evaluations(compiled, text, options, regex).items()
    }
    eligible = [outcome[index] for index in sorted(outcome, key=compiled.ranks.__getitem__)]
    eligible = [candidate for candidate in eligible if candidate.evaluation.eligible]
    lost = losers(eligible, options.group_rolls, options.use_group_scoring)
    for index in lost:
        outcome[index] = attrs.evolve(outcome[index], reason="inclusion-group-loser")
    drawn = [_draw(candidate, options) for candidate in eligible if candidate.index not in lost]
    accepted, dropped, budget = _spend(drawn, compiled, options)
    outcome.update((candidate.index, candidate) for candidate in dropped)
    for candidate in accepted:
        outcome.pop(candidate.index, None)
    return Activation(tuple(accepted), _rejected(compiled, outcome, accepted), budget)


def _evaluations(
    compiled: CompiledBook, text: str, options: ActivationOptions, regex: RegexEngine | None
) -> dict[int, Evaluation]:
    hits = compiled.index.scan(text)
    touched = set(compiled.open_entries)
    for number in hits:
        touched.update(compiled.owners[number])
    entries = compiled.book.entries
    return {
        index: evaluate_plan(
            entries[index],
            compiled.plans[index],
            hits,
            text,
            vector_matched=_vector_matched(compiled, index, options),
            regex=regex,
        )
        for index in touched
    }


def _vector_matched(compiled: CompiledBook, index: int, options: ActivationOptions) -> bool:
    if not options.vector_matches:
        return False
    candidate = compiled.untouched[index]
    return candidate.key in options.vector_matches or uid_text(candidate.entry.uid) in options.vector_matches


def _candidate(compiled: CompiledBook, index: int, evaluation: Evaluation) -> Candidate:
    still = compiled.untouched[index]
    return Candidate(still.key, still.entry, evaluation, evaluation.reason)


def _draw(candidate: Candidate, options: ActivationOptions) -> Candidate:
    entry = candidate.entry
    chance = min(max(entry.probability, 0), 100) if entry.use_probability else 100
    roll = clamp_roll(options.probability_rolls.of(candidate.key, entry))
    failed = chance <= 0 or (chance < 100 and roll * 100 >= chance)
    reason = "probability-failed" if failed else candidate.reason
    return attrs.evolve(candidate, reason=reason, probability=chance, roll=roll)


def _spend(
    candidates: Sequence[Candidate], compiled: CompiledBook, options: ActivationOptions
) -> tuple[list[Candidate], list[Candidate], BudgetUse]:
    own = compiled.book.settings.token_budget
    allowed = options.default_token_budget if own is None else own
    limit = None if allowed is None else max(0, math.floor(allowed))
    used = 0
    accepted: list[Candidate] = []
    dropped: list[Candidate] = []
    for candidate in candidates:
        if candidate.reason == "probability-failed":
            dropped.append(candidate)
            continue
        cost = token_cost(candidate, options)
        charged = 0 if candidate.entry.ignore_budget else cost
        if charged and limit is not None and used + charged > limit:
            dropped.append(attrs.evolve(candidate, reason="budget-exceeded", token_cost=cost))
            continue
        used += charged
        accepted.append(attrs.evolve(candidate, token_cost=cost))
    return accepted, dropped, BudgetUse(limit, used)


def token_cost(candidate: Candidate, options: ActivationOptions) -> int:
    """The tokens of an entry's raw content: as supplied, else a quarter of its code units, at least 1."""
    supplied = options.token_costs.of(candidate.key, candidate.entry)
    if supplied is not None:
        return max(0, math.ceil(supplied))
    return max(1, math.ceil(utf16_length(candidate.entry.content) / 4))


def _rejected(
    compiled: CompiledBook, outcome: dict[int, Candidate], accepted: Sequence[Candidate]
) -> tuple[Candidate, ...]:
    every: list[Candidate | None] = list(compiled.untouched)
    for index, candidate in outcome.items():
        every[index] = candidate
    for candidate in accepted:
        every[candidate.index] = None
    return tuple(candidate for candidate in every if candidate is not None)
