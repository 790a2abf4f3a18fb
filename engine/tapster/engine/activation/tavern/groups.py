"""Inclusion groups: at most one member of each group stays.

Source: spec/activation §5.4.
"""

from collections.abc import Mapping

from tapster.engine.ecma import trim

from .candidate import Candidate, GroupLoss, GroupRule
from .options import clamp_roll


def group_names(candidate: Candidate) -> list[str]:
    """The groups an entry belongs to, in the order it names them."""
    return [name for part in candidate.entry.group.name.split(",") if (name := trim(part))]


def losers(ranked: Mapping[int, Candidate], rolls: Mapping[str, float], use_scoring: bool) -> dict[int, GroupLoss]:
    """Who loses in a group, by entry index, and to whom; groups in order of first appearance by rank.

    Args:
        ranked: the eligible candidates in rank order.
        rolls: a draw for each group.
        use_scoring: the setting for entries that don't say.
    """
    groups: dict[str, list[Candidate]] = {}
    for candidate in ranked.values():
        if candidate.entry.group.name:
            for name in dict.fromkeys(group_names(candidate)):
                groups.setdefault(name, []).append(candidate)
    out: dict[int, GroupLoss] = {}
    for name, members in groups.items():
        active = [member for member in members if member.index not in out]
        if len(active) > 1:
            best = _by_score(active, use_scoring)
            winner, by = _winner(best, clamp_roll(rolls.get(name)))
            for member in active:
                if member is not winner:
                    out[member.index] = GroupLoss(name, winner.key, by if member in best else "score")
    return out


def _by_score(members: list[Candidate], use_scoring: bool) -> list[Candidate]:
    def scores(member: Candidate) -> bool:
        own = member.entry.use_group_scoring
        return use_scoring if own is None else own

    if not use_scoring and not any(scores(member) for member in members):
        return members
    best = max(member.evaluation.score for member in members)
    return [member for member in members if not scores(member) or member.evaluation.score >= best]


def _winner(members: list[Candidate], roll: float) -> tuple[Candidate, GroupRule]:
    for member in members:
        if member.entry.group.override:
            return member, "override"
    weights = [max(0.0, member.entry.group.weight) for member in members]
    left = roll * sum(weights)
    for member, weight in zip(members, weights, strict=True):
        if left < weight:
            return member, "weight"
        left -= weight
    return members[0], "weight"
