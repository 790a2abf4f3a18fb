"""A session's scan for the compatibility renderer: lore in order, diagnostics, and the audit's decisions.

The host owns the messages, so only before and after the character are exact; what belongs elsewhere stands beside them
and is reported. Outlets go where a prompt of the preset names them. Reasons are the mode's own words.

Source: spec/activation §6 (shape); docs/activation.md (words).
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import attrs

from tapster.engine import limits
from tapster.engine.activation.sillytavern import PlacedText, Placement, ScanDecision, ScanResult, place_entries
from tapster.engine.activation.sillytavern.entry import LOGICS, POSITIONS, ScanEntry
from tapster.engine.activation.tavern.projector import ActivationDiagnostic
from tapster.engine.ecma import Json, is_number
from tapster.engine.lazy_list import LazyList
from tapster.engine.profile.compile import ActivatedLore
from tapster.engine.profile.inputs import LoreEntry
from tapster.engine.profile.parts import Diagnostic
from tapster.engine.profile.tokens import TokenCounter
from tapster.engine.text.macros.variables import as_text
from tapster.engine.text.ports import RegexEngine

from .rewriting import Rewriter
from .session import ScanBook, SessionResult

EMPTY = "empty_content"
OUTLET_UNUSED = "outlet_unused"


@attrs.frozen
class _Delivered:
    """Where an active entry's text went: ``before``, ``after`` or ``outlet``, exactly or as near as the host allows."""

    text: str
    position: str
    outlet: str | None = None
    exact: bool = True


def deliver(session: SessionResult, counter: TokenCounter, regex: RegexEngine) -> ActivatedLore:
    """What a scan gives the renderer; regex scripts for world-book content have run on it."""
    rewriter = Rewriter(session.scan.resources.scripts, regex, session.macros)
    active = session.result.active
    names = {each.entry.name: each.entry for each in active}

    def prompt_text(text: str, depth: int | None) -> str:
        return rewriter.lore(text, "", depth)

    places = dict(_places(place_entries(active, prompt_text), session.scan.resources.outlets))
    by_world = {book.use.compiled.name: book for book in session.scan.resources.books}
    entries = tuple(_lore(names[name], place, by_world) for name, place in places.items() if _is_sent(place))
    rows = _Rows.of(session.result, places, counter)
    variables = session.macros.context.variables
    return ActivatedLore(
        entries,
        tuple(map(_diagnostic, _diagnostics(session, places, names, by_world, rewriter))),
        tuple(map(rows.row, session.scan.resources.books)),
        variables={name: as_text(value) for name, value in variables.items()},
    )


def _places(placement: Placement, outlets: frozenset[str]) -> Iterator[tuple[str, _Delivered]]:
    """Entry name and place of each active entry with text, in the order in which the renderer gets them."""
    examples = placement.examples
    groups: list[tuple[str, bool, Iterable[PlacedText]]] = [
        ("before", True, placement.before),
        ("before", False, (example.text for example in examples if not example.after)),
        ("before", False, placement.note_top),
        ("after", True, placement.after),
        ("after", False, (example.text for example in examples if example.after)),
        ("after", False, placement.note_bottom),
        ("after", False, (text for group in placement.depths for text in group.texts)),
    ]
    for position, exact, texts in groups:
        for text in texts:
            yield text.entry, _Delivered(text.text, position, exact=exact)
    for name, texts in placement.outlets:
        for text in texts:
            yield text.entry, _Delivered(text.text, "outlet" if name in outlets else OUTLET_UNUSED, name)


def _is_sent(place: _Delivered) -> bool:
    return place.position != OUTLET_UNUSED


def _lore(entry: ScanEntry, place: _Delivered, books: Mapping[str, ScanBook]) -> LoreEntry:
    book = books[entry.world]
    return LoreEntry(
        place.text,
        place.position,
        f"{book.id}:{entry.uid}",
        entry.uid,
        entry.comment,
        book.id,
        book.revision,
        expanded=True,
        outlet=place.outlet,
    )


@attrs.frozen(eq=False)
class _Rows:
    """The audit rows ``{resource, budget, decisions}``; the budget is shared by all books of a scan.

    Of entries that no key touched only the first are listed: a large book has thousands of them in every request, all
    with the same two reasons. The scan's result has every decision.
    """

    places: Mapping[str, _Delivered]
    budget: float
    costs: Mapping[str, int]
    counts: Mapping[str, int]
    by_world: Mapping[str, Sequence[ScanDecision]]

    @classmethod
    def of(cls, result: ScanResult, places: Mapping[str, _Delivered], counter: TokenCounter) -> "_Rows":
        listed: dict[str, list[ScanDecision]] = {}
        room = limits.SCAN_AUDIT_MISSES
        for decision in result.decisions():
            missed = not (decision.step or decision.matched)
            if not missed or room > 0:
                listed.setdefault(decision.entry.world, []).append(decision)
            room -= missed
        costs = {each.entry.name: counter.count(each.content) for each in result.active}
        counts = {use.compiled.name: len(use.compiled.entries) for use in result.given.books}
        return cls(places, result.budget, costs, counts, listed)

    def row(self, book: ScanBook) -> Json:
        decisions = self.by_world.get(book.use.compiled.name, ())
        limit = int(self.budget) if math.isfinite(self.budget) else None
        used = sum(self.costs.get(decision.entry.name, 0) for decision in decisions if decision.active)
        spent = sum(self.costs.values())
        sent = [
            f"{book.id}:{decision.entry.uid}"
            for decision in decisions
            if decision.active and decision.entry.name in self.places and _is_sent(self.places[decision.entry.name])
        ]
        return {
            "resource": {
                **book.summary,
                "entryCount": self.counts[book.use.compiled.name],
                "matchedEntryCount": sum(decision.active for decision in decisions),
                "activeEntryIds": sent,
            },
            "budget": {
                "limit": limit,
                "used": used,
                "remaining": None if limit is None else max(0, limit - spent),
            },
            "decisions": LazyList(len(decisions), lambda index: self._decision(book, decisions[index])),
        }

    def _decision(self, book: ScanBook, decision: ScanDecision) -> Json:
        entry = decision.entry
        place = self.places.get(entry.name) if decision.active else None
        included = place is not None and _is_sent(place)
        withheld = decision.active and not included
        reason = (EMPTY if place is None else OUTLET_UNUSED) if withheld else decision.reason
        details = dict(decision.details)
        roll = details.get("roll")
        return {
            "resourceId": book.id,
            "entryId": entry.uid,
            "entryName": entry.comment,
            "decision": "included" if included else "rejected",
            "reason": reason,
            "primaryKeys": list(entry.keys or ()),
            "secondaryKeys": list(entry.secondary_keys),
            "primaryMatches": [place.key for place in decision.matched],
            "secondaryMatches": [place.key for place in decision.secondary],
            "secondaryLogic": _logic(entry),
            "groupName": entry.group or None,
            "groupWeight": entry.group_weight if entry.group else None,
            "groupOverride": entry.group_override,
            "probability": entry.probability if entry.use_probability else 100,
            "probabilityRoll": roll if is_number(roll) else None,
            "tokenCost": self.costs.get(entry.name) if decision.active else None,
            "requestedPosition": _position(entry),
            "appliedPosition": place.position if place is not None and included else None,
            "approximatePosition": place is not None and not place.exact,
        }


def _logic(entry: ScanEntry) -> str | None:
    return LOGICS[entry.logic] if entry.selective and entry.logic in range(len(LOGICS)) else None


def _position(entry: ScanEntry) -> str | None:
    return POSITIONS[entry.position] if entry.position in range(len(POSITIONS)) else None


def _diagnostics(
    session: SessionResult,
    places: Mapping[str, _Delivered],
    names: Mapping[str, ScanEntry],
    books: Mapping[str, ScanBook],
    rewriter: Rewriter,
) -> Iterator[ActivationDiagnostic]:
    yield from session.scan.resources.diagnostics
    for name, entry in names.items():
        place, book = places.get(name), books[entry.world]
        if place is None:
            message = "the entry activated but has no content"
            yield ActivationDiagnostic("WORLD_BOOK_EMPTY_CONTENT_SKIPPED", "info", message, book.id, entry.uid)
        elif place.position == OUTLET_UNUSED:
            message = f"no prompt of the preset names the outlet {place.outlet!r:.120}"
            yield ActivationDiagnostic("WORLD_BOOK_OUTLET_SKIPPED", "info", message, book.id, entry.uid)
        elif not place.exact:
            message = f"position {_position(entry)} became {place.position!r} of the character definition"
            yield ActivationDiagnostic("WORLD_BOOK_POSITION_APPROXIMATED", "warning", message, book.id, entry.uid)
    for pattern in session.over_budget:
        message = f"the regex key {pattern:.120} was not run: regex-budget-exceeded"
        yield ActivationDiagnostic("WORLD_BOOK_INVALID_REGEX", "warning", message)
    skipped = {(fact.label, fact.reason) for fact in rewriter.facts if ("text", "") in fact.details}
    for script, reason in sorted(skipped):
        if reason != "depth_window":
            message = f"the regex script {script!r:.120} was left out: {reason}"
            yield ActivationDiagnostic("REGEX_SCRIPT_SKIPPED", "warning", message)


def _diagnostic(item: ActivationDiagnostic) -> Diagnostic:
    shown = item.to_json()
    rest = tuple((key, value) for key, value in shown.items() if key not in ("code", "severity", "message"))
    return Diagnostic(item.code, item.severity, item.message, rest)
