"""The scan: passes over the books until nothing new comes, and what each pass activates.

Source: the recorded behaviour in st_world_info.jsonl.
"""

import math
from collections.abc import Callable, Iterator

import attrs

from tapster.engine.text.ports import RegexEngine

from .buffer import ScanBuffer
from .decision import ScanDecision
from .entry import ScanEntry
from .expansion import Expansion
from .groups import GroupLoss, Member, filter_groups
from .ports import DrawFor, DrawPort, MacroPort, ScanVariables, TokenPort, no_macros
from .ranking import Ranking
from .result import ActiveEntry, Place, ScanPass, ScanResult
from .settings import ScanInput
from .timed import ActiveEffects, TimedState, check_effects, store_effects
from .verdict import Rules, ScanState, Verdict


def _go_on_always() -> None:
    """A checkpoint nobody waits at."""


@attrs.frozen(eq=False)
class ScanPorts:
    """What a scan is given from outside; ``checkpoint`` is called often and raises to end the scan."""

    draw: DrawPort
    count_tokens: TokenPort
    macros: MacroPort = no_macros
    regex: RegexEngine | None = None
    checkpoint: Callable[[], None] = _go_on_always


def scan_books(given: ScanInput, ports: ScanPorts) -> ScanResult:
    """Which entries of the books activate, in activation order, with a decision for every entry."""
    return _Scan(given, ports).run()


class _Scan:
    """The working state of one scan."""

    def __init__(self, given: ScanInput, ports: ScanPorts) -> None:
        self.given = given
        self.ports = ports
        self.settings = given.settings
        self.exact = given.settings.quirks == "exact"
        self.expansion = Expansion(ports.macros, given.variables)
        self.books = [use for use in given.books if use.copy_of is None]
        self.scanned = attrs.evolve(given, books=tuple(self.books))
        self.buffer = ScanBuffer(self.scanned, ports.regex, self.expansion.expand_key, ports.checkpoint)
        entries = (entry for use in self.books for entry in use.compiled.entries)
        effects, self.timed = check_effects(given.timed, entries, len(given.messages))
        if given.dry_run and self.exact:
            effects = ActiveEffects(chat_length=len(given.messages))
        forced = {entry.name: entry for entry in given.forced}
        self.rules = Rules(self.scanned, self.buffer, effects, forced)
        self.ranking = Ranking(self.books, self.settings.strategy)
        self.always = self._always()
        self.levels = self._delay_levels()
        self.level = self.levels.pop(0) if self.levels else 0
        self.budget = self.settings.budget(given.max_context)
        self.overflowed = False
        self.step = 0
        self.state = ScanState.INITIAL
        self.active: dict[str, ActiveEntry] = {}
        self.failed: set[Place] = set()
        self.contents: dict[Place, str] = {}
        self.places: list[Place] = []
        self.decided: dict[Place, ScanDecision] = {}
        self.text = ""
        self.passes: list[ScanPass] = []

    def run(self) -> ScanResult:
        entry_count = sum(len(use.compiled.entries) for use in self.books)
        if not entry_count:
            self.state = ScanState.NONE
        stopped = False
        while self.state:
            if 0 < self.settings.max_recursion_steps <= self.step:
                stopped = True
                self.state = ScanState.NONE
                break
            self.step += 1
            self._pass()
        self.expansion.is_over = True
        timed, variables = self._kept_timed(), self._kept_variables()
        return ScanResult(
            active=tuple(self.active.values()),
            passes=tuple(self.passes),
            budget=self.budget,
            overflowed=self.overflowed,
            timed=timed,
            variables=variables,
            writes=() if variables is self.given.variables else tuple(self.expansion.writes),
            given=self.given,
            scanned=self.scanned,
            rules=self.rules,
            decided=self.decided,
            out_of_passes=stopped,
        )

    def _kept_timed(self) -> TimedState:
        if self.given.dry_run:
            return self.given.timed
        activated = [each.entry for each in self.active.values()]
        return store_effects(self.timed, activated, len(self.given.messages))

    def _kept_variables(self) -> ScanVariables:
        return self.given.variables if self.given.dry_run and not self.exact else self.expansion.variables

    def _always(self) -> list[set[int]]:
        """Indices by book of the entries that each pass looks at whatever was found."""
        found = []
        for use in self.books:
            special = set(use.compiled.open_entries)
            names = self.rules.forced.keys() | self.rules.effects.sticky.keys()
            if names:
                special |= {place for place, entry in enumerate(use.compiled.entries) if entry.name in names}
            found.append(special)
        return found

    def _delay_levels(self) -> list[float]:
        return sorted({level for use in self.books for level in use.compiled.delay_levels})

    def _candidates(self) -> list[Place]:
        """Book and entry index of what this pass looks at, in evaluation order."""
        found = [
            (book, index) for book in range(len(self.books)) for index in self.always[book] | self.buffer.touched(book)
        ]
        return sorted(found, key=self.ranking.key)

    def _entry(self, place: Place) -> ScanEntry:
        return self.books[place[0]].compiled.entries[place[1]]

    def _pass(self) -> None:
        looked = list(self._look())
        members = self._ordered(looked)
        kept, losses = filter_groups(
            members,
            [each.entry for each in self.active.values()],
            self.rules.effects,
            self._score,
            self.ports.draw,
            use_scoring=self.settings.use_group_scoring,
            exact=self.exact,
        )
        self._note_losses(losses)
        self._admit(kept)
        self._go_on(kept)

    def _look(self) -> Iterator[tuple[Place, Verdict]]:
        """The entries that activate in this pass, in evaluation order."""
        for place in self._candidates():
            entry = self._entry(place)
            if place in self.failed or entry.name in self.active:
                continue
            self.ports.checkpoint()
            self.expansion.writer = entry.name
            verdict = self.rules.verdict(*place, self.state, self.level)
            self._decide(place, entry, verdict)
            if verdict.active:
                yield place, verdict

    def _decide(self, place: Place, entry: ScanEntry, verdict: Verdict) -> None:
        known = self.decided.get(place)
        if known is not None and known.reason in ("budget", "group_lost") and not verdict.active:
            return
        self.decided[place] = ScanDecision(entry, verdict.active, verdict.reason, verdict.details, step=self.step)

    def _ordered(self, looked: list[tuple[Place, Verdict]]) -> list[Member]:
        members = []
        for place, verdict in looked:
            entry = self._entry(place)
            if verdict.reason == "forced":
                entry = self.rules.forced[entry.name]
            members.append(Member(len(self.places), entry))
            self.places.append(place)
        effects = self.rules.effects
        # An entry handed in from outside has no place in the sorted list, which puts it before all others.
        return sorted(
            members,
            key=lambda member: (
                not effects.is_sticky(member.entry),
                self.decided[self.places[member.number]].reason != "forced",
            ),
        )

    def _score(self, member: Member) -> int:
        book = self.places[member.number][0]
        return self.rules.score(book, member.entry, recursion=self.state != ScanState.MIN_ACTIVATIONS)

    def _note_losses(self, losses: dict[int, GroupLoss]) -> None:
        for number, loss in losses.items():
            place = self.places[number]
            details = (("group", loss.group), ("winner", loss.winner), ("by", loss.by), ("roll", loss.roll))
            self.decided[place] = attrs.evolve(self.decided[place], active=False, reason="group_lost", details=details)

    def _admit(self, members: list[Member]) -> None:
        """Probability, macros and budget, entry by entry."""
        used = self.ports.count_tokens(self.text) if self.budget != math.inf else 0
        fresh = ""
        exempt_left = sum(member.entry.ignore_budget for member in members)
        for number, member in enumerate(members):
            exempt_left -= member.entry.ignore_budget
            if self.overflowed and not member.entry.ignore_budget:
                if exempt_left > 0:
                    self._cut(member)
                    continue
                for rest in members[number:]:
                    self._cut(rest)
                break
            if not self._passes_chance(member):
                continue
            content = self._content(member)
            fresh += content + "\n"
            if self._is_over(used, fresh) and not member.entry.ignore_budget:
                self.overflowed = True
                self._cut(member)
                continue
            place = self.places[member.number]
            self.active[member.entry.name] = ActiveEntry(
                member.entry, content, place, self.step, self.state == ScanState.MIN_ACTIVATIONS
            )
            self.decided[place] = attrs.evolve(
                self.decided[place], by_min_activations=self.state == ScanState.MIN_ACTIVATIONS
            )

    def _is_over(self, used: int, fresh: str) -> bool:
        return self.budget != math.inf and used + self.ports.count_tokens(fresh) >= self.budget

    def _cut(self, member: Member) -> None:
        place = self.places[member.number]
        self.decided[place] = attrs.evolve(
            self.decided[place], active=False, reason="budget", details=(("budget", self.budget),)
        )

    def _passes_chance(self, member: Member) -> bool:
        entry = member.entry
        if not entry.use_probability or entry.probability == 100 or self.rules.effects.is_sticky(entry):
            return True
        roll = self.ports.draw(DrawFor("entry", entry.name))
        if roll * 100 <= entry.probability and (self.exact or entry.probability > 0):
            return True
        place = self.places[member.number]
        self.failed.add(place)
        details = (("chance", entry.probability), ("roll", roll))
        self.decided[place] = attrs.evolve(self.decided[place], active=False, reason="probability", details=details)
        return False

    def _content(self, member: Member) -> str:
        place = self.places[member.number]
        self.expansion.writer = member.entry.name
        self.contents[place] = self.expansion.expand(self.contents.get(place, member.entry.content))
        return self.contents[place]

    def _go_on(self, members: list[Member]) -> None:
        """Record the pass and choose what comes next."""
        successful = [member for member in members if self.places[member.number] not in self.failed]
        feeding = [
            member
            for member in successful
            if not member.entry.prevent_recursion and (self.exact or member.entry.name in self.active)
        ]
        following = self._next_state(bool(feeding))
        self.passes.append(
            ScanPass(
                self.state,
                following,
                tuple(member.entry.name for member in members),
                tuple(member.entry.name for member in successful),
                len(self.active),
                self.overflowed,
            )
        )
        self.state = following
        if following:
            text = "\n".join(self.contents.get(self.places[member.number], member.entry.content) for member in feeding)
            if feeding:
                self.buffer.add_recursion(text)
            self.text = f"{text}\n{self.text}"

    def _next_state(self, feeds: bool) -> ScanState:
        following = ScanState.NONE
        recursive = self.settings.recursive and not self.overflowed
        if recursive and (feeds or (self.state == ScanState.MIN_ACTIVATIONS and self.buffer.recursion)):
            following = ScanState.RECURSION
        too_few = len(self.active) < self.settings.min_activations
        if not following and not self.overflowed and too_few and self._may_go_deeper():
            following = ScanState.MIN_ACTIVATIONS
            self.buffer.advance()
        if not following and self.levels:
            following = ScanState.RECURSION
            self.level = self.levels.pop(0)
        return following

    def _may_go_deeper(self) -> bool:
        most = self.settings.min_activations_depth_max
        depth = self.buffer.depth
        return not (0 < most < depth or depth > len(self.given.messages))
