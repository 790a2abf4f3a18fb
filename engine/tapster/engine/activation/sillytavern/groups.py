"""Inclusion groups: who stays of the entries that a pass activated.

SillyTavern removes an entry from the pass by its place in the list; one that is gone already has no place, and the last
entry of the pass goes instead. ``repaired`` leaves the list alone then.

Source: the vectors' README, caveats; areas group_weight, group_prioritize, group_scoring, timed_effects.
"""

import re
from collections.abc import Callable, Iterable
from typing import Literal

import attrs

from tapster.engine.ecma import ordered_members

from .entry import ScanEntry
from .ports import DrawFor, DrawPort
from .timed import ActiveEffects

LostBy = Literal["override", "weight", "score", "sticky", "cooldown", "delay", "earlier_pass", "dropped_in_error"]
_SEPARATOR = re.compile(r",\s*")


@attrs.frozen(eq=False)
class Member:
    """One activated entry of a pass: the entry as activated, and its number within the scan."""

    number: int
    entry: ScanEntry


@attrs.frozen
class GroupLoss:
    """Why an entry lost: its group, what decided, the winner's name where there is one, the draw that picked it."""

    group: str
    by: LostBy
    winner: str | None = None
    roll: float | None = None


class GroupFilter:
    """Filters one pass."""

    def __init__(self, members: list[Member], *, exact: bool) -> None:
        self.members = members
        self.losses: dict[int, GroupLoss] = {}
        self._exact = exact

    def remove(self, member: Member, loss: GroupLoss) -> None:
        """Take an entry out of the pass."""
        if member in self.members:
            self.members.remove(member)
            self.losses[member.number] = loss
        elif self._exact and self.members:
            last = self.members.pop()
            self.losses[last.number] = attrs.evolve(loss, by="dropped_in_error")

    def keep_only(self, group: list[Member], winner: Member | None, loss: GroupLoss) -> None:
        """Take every member of a group out but one."""
        for member in group:
            if member is not winner:
                self.remove(member, loss)


def filter_groups(
    members: list[Member],
    activated: Iterable[ScanEntry],
    effects: ActiveEffects,
    score: Callable[[Member], int],
    draw: DrawPort,
    *,
    use_scoring: bool,
    exact: bool,
) -> tuple[list[Member], dict[int, GroupLoss]]:
    """The entries that stay, and why the others of their groups lost.

    Args:
        members: the pass, in evaluation order.
        activated: entries that earlier passes activated.
        effects: what holds in this scan.
        score: how many keys of an entry match.
        draw: picks by weight.
        use_scoring: the setting for entries that don't say.
        exact: keep SillyTavern's defect.
    """
    groups: dict[str, list[Member]] = {}
    for member in members:
        for name in _SEPARATOR.split(member.entry.group):
            if name:
                groups.setdefault(name, []).append(member)
    work = GroupFilter(list(members), exact=exact)
    if groups:
        ordered = ordered_members(groups)
        won = {name for name, group in ordered if _by_effects(work, name, group, effects)}
        for name, group in ordered:
            if name not in won:
                _by_score(work, name, group, score, use_scoring)
        earlier = {entry.group: entry.name for entry in activated if entry.group}
        for name, group in ordered:
            if name not in won:
                _decide(work, name, group, earlier, draw)
    return work.members, work.losses


def _by_effects(work: GroupFilter, name: str, group: list[Member], effects: ActiveEffects) -> bool:
    """Sticky members push the others out; whether the group is settled by that."""
    sticky = [member for member in group if effects.is_sticky(member.entry)]
    if sticky:
        loss = GroupLoss(name, "sticky", sticky[0].entry.name)
        for member in group:
            if member not in sticky:
                work.remove(member, loss)
    for member in [member for member in group if effects.is_cooling(member.entry)]:
        work.remove(member, GroupLoss(name, "cooldown"))
    for member in [member for member in group if effects.is_delayed(member.entry)]:
        work.remove(member, GroupLoss(name, "delay"))
    return bool(sticky)


def _by_score(
    work: GroupFilter, name: str, group: list[Member], score: Callable[[Member], int], use_scoring: bool
) -> None:
    """Members that scoring applies to and that don't reach the best score go, from the group as well."""
    if not use_scoring and not any(member.entry.group_scoring for member in group):
        return
    scores = [score(member) for member in group]
    best = max(scores)
    winner = group[scores.index(best)].entry.name
    for member, value in zip(list(group), scores, strict=True):
        own = member.entry.group_scoring
        if (use_scoring if own is None else own) and value < best:
            work.remove(member, GroupLoss(name, "score", winner))
            group.remove(member)


def _decide(work: GroupFilter, name: str, group: list[Member], earlier: dict[str, str], draw: DrawPort) -> None:
    if name in earlier:
        work.keep_only(group, None, GroupLoss(name, "earlier_pass", earlier[name]))
        return
    if len(group) <= 1:
        return
    preferred = [member for member in group if member.entry.group_override]
    if preferred:
        winner = max(preferred, key=lambda member: member.entry.order)
        work.keep_only(group, winner, GroupLoss(name, "override", winner.entry.name))
        return
    roll = draw(DrawFor("group", name))
    left = roll * sum(member.entry.group_weight for member in group)
    reached = 0.0
    for member in group:
        reached += member.entry.group_weight
        if left <= reached:
            work.keep_only(group, member, GroupLoss(name, "weight", member.entry.name, roll))
            return
