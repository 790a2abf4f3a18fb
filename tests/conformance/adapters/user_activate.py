"""World-book activation, mode ``sillytavern`` (``user_reports``: ops ``activate`` and ``activate_sequence``)."""

import math
from typing import Any

import attrs

from tapster.actors.scripts import open_regex_engine
from tapster.engine.activation.sillytavern import (
    BookPlace,
    BookUse,
    ChatOpening,
    DrawFor,
    Injection,
    KeyPlace,
    MacroPort,
    Quirks,
    ScanEntry,
    ScanInput,
    ScanMessage,
    ScanPorts,
    ScanResult,
    ScanSettings,
    ScanVariables,
    TimedEffect,
    TimedState,
    compile_scan_book,
    copied_book,
    macro_port,
    open_chat,
    scan_books,
    scan_entries,
)
from tapster.engine.formats.world_books import parse_world_book
from tapster.engine.text.macros import MacroContext, MacroMessage
from tests.conformance.adapters.st_macros import moment
from tests.conformance.registry import adapter
from tests.conformance.user_reports_compare import compare_report, expand

Json = Any
REGEX = open_regex_engine()
PLACES: dict[str, BookPlace] = {"global": "global", "character": "character", "card": "character"}


def settings_of(values: Json, quirks: Quirks) -> ScanSettings:
    return ScanSettings(
        depth=values.get("scan_depth", 4),
        budget_tokens=values.get("budget_tokens", math.inf),
        min_activations=values.get("min_activations", 0),
        min_activations_depth_max=values.get("min_activations_depth_max", 0),
        recursive=values.get("recursive", False),
        case_sensitive=values.get("case_sensitive", False),
        match_whole_words=values.get("whole_words", False),
        strategy=values.get("strategy", "character_first"),
        max_recursion_steps=values.get("max_recursion_steps", 0),
        quirks=quirks,
    )


@attrs.define
class Labels:
    """Our ids of the entries by the names a scan knows them by, and the entries by id."""

    ids: dict[str, str] = attrs.field(factory=dict)
    entries: dict[str, ScanEntry] = attrs.field(factory=dict)


@attrs.define
class Case:
    """A line's books and settings, and the state its steps share."""

    given: Json
    quirks: Quirks = "repaired"
    labels: Labels = attrs.field(factory=Labels)
    books: tuple[BookUse, ...] = ()
    timed: TimedState = attrs.field(factory=TimedState)
    variables: ScanVariables = attrs.field(factory=ScanVariables)
    opening: ChatOpening = attrs.field(factory=ChatOpening)

    def __attrs_post_init__(self) -> None:
        whole = [{"source": "global", "name": "Book", "entries": self.given.get("entries", [])}]
        books = self.given.get("books", whole)
        shared = [book["name"] for book in books if book["source"] == "global"]
        files = [book["name"] for book in books if book["source"] != "card"]
        self.books = tuple(
            self.book(number, book, files if book["source"] == "card" else shared) for number, book in enumerate(books)
        )
        self.timed = TimedState(
            *(
                {
                    self.labels.entries[label].name: TimedEffect(
                        self.labels.entries[label].hash, effect["start"], effect["end"]
                    )
                    for label, effect in self.given.get("state", {}).get(kind, {}).items()
                }
                for kind in ("sticky", "cooldown")
            )
        )

    def book(self, number: int, book: Json, loaded: list[str]) -> BookUse:
        name = f"{book['name']}#{number}"
        model = parse_world_book(
            {
                "entries": {
                    str(uid): {key: value for key, value in entry.items() if key != "id"} | {"uid": uid}
                    for uid, entry in enumerate(book["entries"])
                }
            }
        )
        entries = scan_entries(name, model, exact=False)
        for entry, raw in zip(entries, book["entries"], strict=True):
            label = raw.get("id", entry.name)
            self.labels.ids[entry.name] = label
            self.labels.entries[label] = entry
        settings = settings_of(self.given.get("settings", {}), self.quirks)
        compiled = compile_scan_book(
            name,
            entries,
            case_sensitive=settings.case_sensitive,
            match_whole_words=settings.match_whole_words,
        )
        named = {"card": book.get("linked_name"), "character": book["name"], "global": None}[book["source"]]
        copy_of = copied_book(named, loaded)
        return BookUse(PLACES[book["source"]], compiled, copy_of)

    def draw(self, purpose: DrawFor) -> float:
        label = purpose.name if purpose.kind == "group" else self.labels.ids[purpose.name]
        roll: float = self.given.get("rolls", {}).get(f"{purpose.kind}:{label}", 0.0)
        return roll

    def macros(self, messages: list[Json]) -> MacroPort:
        names = self.given.get("names", {})
        return macro_port(
            MacroContext(
                now=moment("2024-03-09T14:05:09Z", "UTC"),
                random=lambda: 0.0,
                user=names.get("user", "User"),
                char=names.get("char", (self.given.get("card") or {}).get("name", "Char")),
                chat=tuple(MacroMessage(message["text"], message["role"] == "user") for message in messages),
            )
        )

    def scan(self, messages: list[Json], *, dry_run: bool = False) -> Json:
        settings = settings_of(self.given.get("settings", {}), self.quirks)
        visible = [index for index, message in enumerate(messages) if not message.get("hidden")]
        with_names = self.given.get("settings", {}).get("include_names", False)
        result = scan_books(
            ScanInput(
                books=self.books,
                messages=tuple(
                    ScanMessage(messages[index]["text"], self.speaker(messages[index]) if with_names else None)
                    for index in visible
                ),
                settings=settings,
                injections=tuple(
                    Injection(injection["source"], self.injected(injection, messages))
                    for injection in self.given.get("injections", [])
                    if injection.get("scan")
                ),
                forced=tuple(self.labels.entries[label] for label in self.given.get("external_matches", [])),
                timed=self.timed,
                variables=self.variables,
                dry_run=dry_run,
            ),
            ScanPorts(self.draw, lambda text: len(text.split()), self.macros(messages), REGEX),
        )
        answer = self.answer(result, visible)
        self.timed, self.variables = result.timed, result.variables
        return answer

    def injected(self, injection: Json, messages: list[Json]) -> str:
        text = str(injection["text"])
        return self.macros(messages)(text, self.variables).text if injection.get("macros", True) else text

    def speaker(self, message: Json) -> str:
        names = self.given.get("names", {})
        default = names.get("user", "User") if message["role"] == "user" else names.get("char", "Char")
        return str(message.get("name", default))

    def answer(self, result: ScanResult, visible: list[int]) -> Json:
        ids = self.labels.ids
        decisions = list(result.decisions())
        waves: dict[int, list[str]] = {}
        for each in result.active:
            waves.setdefault(each.step, []).append(ids[each.entry.name])
        facts = {ids[each.entry.name]: self.facts(each.to_json()) for each in decisions}
        unchanged = result.timed == self.timed and result.variables == self.variables
        return {
            "active_set": [ids[each.entry.name] for each in result.active],
            "evaluation_order": [ids[each.entry.name] for each in result.active],
            "waves": [waves[step] for step in sorted(waves)],
            "inactive": {ids[each.entry.name]: facts[ids[each.entry.name]][0] for each in decisions if not each.active},
            "matched": {
                ids[each.entry.name]: [self.place(place, visible) for place in each.matched] for each in decisions
            },
            "trace": facts,
            "texts": {ids[each.entry.name]: each.content for each in result.active},
            "vars": dict(result.variables.chat),
            "var_writes": [
                {"var": write.name, "value": write.value, "entry": None if write.entry is None else ids[write.entry]}
                for write in result.writes
            ],
            "state_unchanged": unchanged,
        }

    def facts(self, decision: Json) -> list[Json]:
        winner = decision.get("winner")
        if decision["reason"] == "duplicate_book":
            decision = {**decision, "winner": winner}
        elif winner is not None:
            decision = {**decision, "winner": self.labels.ids[winner]}
        return [decision, *([{"reason": "min_activations"}] if decision["minActivations"] else [])]

    def place(self, place: KeyPlace, visible: list[int]) -> Json:
        label = visible[int(place.label)] if place.kind == "message" else place.label
        return {"key": place.key, place.kind: label, "at": [place.start, place.end]}


@adapter("user_reports", "user.activate", compare=compare_report)
def run_activate(given: Json) -> Json:
    return activate(given, "repaired")


def activate(given: Json, quirks: Quirks) -> Json:
    given = expand(given)
    return Case(given, quirks).scan(given["messages"], dry_run=given.get("dry_run", False))


@adapter("user_reports", "user.activate_sequence", compare=compare_report)
def run_sequence(given: Json) -> Json:
    given = expand(given)
    case = Case(given)
    return {"steps": [run_step(case, step) for step in given["steps"]]}


def run_step(case: Case, step: Json) -> Json:
    if step["op"] == "activate":
        return case.scan(step["messages"])
    before = case.variables
    if step["op"] == "set_vars":
        case.variables = attrs.evolve(before, chat={**before.chat, **step["vars"]})
    else:
        greeting = (case.given.get("card") or {}).get("first_mes", "")
        case.opening, case.variables = open_chat(case.opening, greeting, before, case.macros([]))
    return {"vars": dict(case.variables.chat), "state_unchanged": case.variables == before}
