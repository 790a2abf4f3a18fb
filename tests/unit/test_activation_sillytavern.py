"""Mode sillytavern: each quirk exact and repaired, timed state, reasons with their data, explanations, ports."""

import math
from collections.abc import Sequence
from typing import Any

import pytest

from tapster.engine.activation import explain
from tapster.engine.activation.sillytavern import (
    BookBindings,
    BookUse,
    ChatOpening,
    DrawFor,
    Injection,
    KeyPlace,
    MacroOutcome,
    Quirks,
    ScanDecision,
    ScanInput,
    ScanMessage,
    ScanPorts,
    ScanResult,
    ScanSettings,
    ScanVariables,
    TimedState,
    bound_books,
    compile_scan_book,
    copied_book,
    note_is_due,
    open_chat,
    place_entries,
    scan_books,
    scan_entries,
)
from tapster.engine.formats.world_books import parse_world_book
from tests.conformance.adapters.user_activate import activate
from tests.conformance.runner import read_lines
from tests.conformance.test_vectors import VECTORS
from tests.conformance.user_reports_compare import compare_exact_report

Json = Any


class Draws:
    """Draws by purpose, noted in order; 0.5 for what isn't named."""

    def __init__(self, values: dict[str, float]) -> None:
        self.values = values
        self.taken: list[str] = []

    def __call__(self, purpose: DrawFor) -> float:
        self.taken.append(f"{purpose.kind}:{purpose.name}")
        return self.values.get(self.taken[-1], 0.5)


def set_mode(text: str, variables: ScanVariables) -> MacroOutcome:
    """A macro engine of one macro: ``{{set}}`` sets a variable."""
    if "{{set}}" not in text:
        return MacroOutcome(text, variables)
    return MacroOutcome(text.replace("{{set}}", ""), ScanVariables({**variables.chat, "mode": "on"}, variables.shared))


def scan(
    entries: Sequence[Json],
    messages: Sequence[str] = ("tide",),
    *,
    draws: Draws | None = None,
    quirks: Quirks = "repaired",
    settings: dict[str, Any] | None = None,
    **fields: Any,
) -> ScanResult:
    book = parse_world_book({"entries": {str(uid): {"uid": uid, **entry} for uid, entry in enumerate(entries)}})
    compiled = compile_scan_book("B", scan_entries("B", book, exact=quirks == "exact"))
    chosen = ScanSettings(**{"budget_tokens": math.inf, "quirks": quirks, **(settings or {})})
    given = ScanInput((BookUse("global", compiled),), tuple(map(ScanMessage, messages)), chosen, **fields)
    return scan_books(given, ScanPorts(draws or Draws({}), lambda text: len(text.split()), set_mode))


def active(result: ScanResult) -> list[int | str]:
    return [each.entry.uid for each in result.active]


def decision(result: ScanResult, uid: int) -> ScanDecision:
    return next(each for each in result.decisions() if each.entry.uid == uid)


ENTRY = {"selective": True, "useProbability": True, "probability": 100}


@pytest.mark.parametrize(
    ("entries", "settings", "exact", "repaired"),
    [
        pytest.param([{**ENTRY, "key": [" "]}], {}, [0], [], id="a blank key"),
        pytest.param([{**ENTRY, "key": ["tide"], "probability": 0}], {}, [0], [], id="a chance of 0"),
        pytest.param(
            [
                {**ENTRY, "key": ["tide"], "group": "g, h", "order": 3},
                {**ENTRY, "key": ["tide"], "group": "g", "groupOverride": True, "order": 2},
                {**ENTRY, "key": ["tide"], "group": "h", "groupOverride": True, "order": 1},
                {**ENTRY, "key": ["tide"], "order": 0},
            ],
            {},
            [1, 2],
            [1, 2, 3],
            id="an entry that lost twice",
        ),
    ],
)
def test_quirks(entries: list[Json], settings: Json, exact: list[int], repaired: list[int]) -> None:
    draws = {"entry:B.0": 0.0}
    assert active(scan(entries, draws=Draws(draws), quirks="exact", settings=settings)) == exact
    assert active(scan(entries, draws=Draws(draws), settings=settings)) == repaired


def test_a_cut_entry_feeds_recursion_only_when_exact() -> None:
    entries = [
        {**ENTRY, "key": ["tide"], "content": "w w w moon", "order": 2},
        {**ENTRY, "key": ["moon"], "delayUntilRecursion": 2, "ignoreBudget": True},
        {**ENTRY, "key": ["never"], "delayUntilRecursion": 1},
    ]
    settings = {"recursive": True, "budget_tokens": 2}
    assert active(scan(entries, quirks="exact", settings=settings)) == [1]
    assert active(scan(entries, settings=settings)) == []


def test_a_dry_run_changes_nothing_when_repaired() -> None:
    entries = [{**ENTRY, "key": ["tide"], "content": "{{set}}", "sticky": 3}]
    exact, repaired = (scan(entries, quirks=quirks, dry_run=True) for quirks in ("exact", "repaired"))
    assert (exact.variables.chat, exact.timed) == ({"mode": "on"}, TimedState())
    assert (repaired.variables.chat, repaired.timed, repaired.writes) == ({}, TimedState(), ())
    wet = scan(entries)
    assert [(write.name, write.entry) for write in wet.writes] == [("mode", "B.0")]


def test_the_exact_reading_takes_absent_fields_as_off() -> None:
    entries = [{"key": ["tide"], "keysecondary": ["moon"]}]
    assert active(scan(entries, quirks="exact")) == [0]
    assert active(scan(entries)) == []


def test_the_user_reports_hold_exactly_too() -> None:
    for line in read_lines(VECTORS / "user_reports.jsonl"):
        if line["repro"]["op"] == "activate":
            assert compare_exact_report(line["expect"], activate(line["repro"], "exact")) == [], line["id"]


def test_timed_state_is_a_value_and_rolls_back() -> None:
    entries = [{**ENTRY, "key": ["tide"], "sticky": 2, "cooldown": 2}]
    first = scan(entries, ["tide"])
    held = scan(entries, ["tide", "calm", "calm"][:2], timed=first.timed)
    assert (active(held), decision(held, 0).reason) == ([0], "sticky")
    ended = scan(entries, ["x"] * 3, timed=held.timed)
    assert decision(ended, 0).reason == "cooldown"
    assert ended.timed.cooldown["B.0"].protected
    # The same earlier state again, with a chat that has not advanced: the effect is gone.
    assert scan(entries, ["x"], timed=first.timed).timed == TimedState()
    # An edited entry no longer owns its effect.
    assert active(scan([{**entries[0], "content": "new"}], ["tide", "calm"], timed=first.timed)) == [0]
    edited = scan([{**entries[0], "content": "new"}], ["tide", "calm"], timed=first.timed, settings={"depth": 1})
    assert active(edited) == []


def test_timed_state_is_stored_and_read_back() -> None:
    state = scan([{**ENTRY, "key": ["tide"], "sticky": 2, "cooldown": 4}]).timed
    assert TimedState.from_json(state.to_json()) == state
    assert TimedState.from_json({"sticky": {"x": 1, "y": {"hash": "1"}}, "cooldown": 3}) == TimedState()
    assert TimedState.from_json(None) == TimedState()


@pytest.mark.parametrize(
    ("entry", "fields", "reason", "details"),
    [
        ({"key": ["moon"]}, {}, "no_key_match", {}),
        ({"key": []}, {}, "no_usable_key", {}),
        ({"key": ["moon"], "vectorized": True}, {}, "needs_external_match", {}),
        ({"key": ["tide"], "keysecondary": ["moon"]}, {}, "secondary_keys", {}),
        ({"key": ["tide"], "disable": True}, {}, "disabled", {}),
        ({"key": ["tide"], "triggers": ["swipe"]}, {}, "trigger", {"wanted": ["swipe"], "trigger": "normal"}),
        (
            {"key": ["tide"], "characterFilter": {"names": ["other"], "tags": [], "isExclude": False}},
            {"character_file": "me"},
            "character_filter",
            {"names": ["other"], "exclude": False},
        ),
        (
            {"key": ["tide"], "characterFilter": {"names": [], "tags": ["t"], "isExclude": True}},
            {"character_tags": frozenset({"t"})},
            "tag_filter",
            {"tags": ["t"], "exclude": True},
        ),
        ({"key": ["tide"], "delay": 9}, {}, "delay", {"delay": 9, "messages": 1}),
        ({"key": ["tide"], "delayUntilRecursion": 2}, {}, "delay_until_recursion", {"level": 2}),
        ({"key": ["tide"], "content": "@@dont_activate\nx"}, {}, "decorator", {}),
        ({"key": ["tide"], "probability": 10}, {}, "probability", {"chance": 10, "roll": 0.5}),
        ({"key": ["tide"], "content": "w w"}, {"settings": {"budget_tokens": 1}}, "budget", {"budget": 1}),
    ],
)
def test_every_reason_carries_its_data(entry: Json, fields: Json, reason: str, details: Json) -> None:
    found = decision(scan([{**ENTRY, **entry}], **fields), 0)
    assert (found.active, found.reason, dict(found.details)) == (False, reason, details)


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"key": ["tide"]}, "primary_key"),
        ({"key": ["tide"], "keysecondary": ["tide"]}, "secondary_keys"),
        ({"constant": True}, "constant"),
        ({"content": "@@activate\nx"}, "decorator"),
    ],
)
def test_reasons_of_active_entries(entry: Json, reason: str) -> None:
    assert decision(scan([{**ENTRY, **entry}]), 0).reason == reason


def test_a_group_loss_names_winner_and_rule() -> None:
    entries = [
        {**ENTRY, "key": ["tide"], "group": "g", "content": "moon", "order": 9},
        {**ENTRY, "key": ["moon"], "group": "g"},
    ]
    result = scan(entries, settings={"recursive": True})
    assert dict(decision(result, 1).details) == {"group": "g", "winner": "B.0", "by": "earlier_pass", "roll": None}
    draws = Draws({"group:g": 0.1})
    result = scan(entries, ["tide moon"], draws=draws)
    assert dict(decision(result, 0).details) == {"group": "g", "winner": "B.1", "by": "weight", "roll": 0.1}
    assert draws.taken == ["group:g"]


def test_places_name_message_injection_and_recursion() -> None:
    entries = [
        {**ENTRY, "key": ["tide"], "content": "moon"},
        {**ENTRY, "key": ["moon"]},
        {**ENTRY, "key": ["sun", "tide"], "keysecondary": ["rope"]},
    ]
    result = scan(
        entries, ["old", "  the tide"], settings={"recursive": True}, injections=(Injection("note", "a sun, a rope"),)
    )
    assert decision(result, 0).matched == (KeyPlace("tide", "message", 1, 6, 10),)
    assert decision(result, 1).matched == (KeyPlace("moon", "recursion", 0, 0, 4),)
    assert [place.kind for place in decision(result, 2).matched] == ["injection", "message"]
    assert decision(result, 2).secondary == (KeyPlace("rope", "injection", "note", 9, 13),)


def test_a_key_in_a_speakers_name_stands_before_the_text() -> None:
    book = parse_world_book({"entries": {"0": {"uid": 0, "key": ["Ann"]}}})
    compiled = compile_scan_book("B", scan_entries("B", book, exact=False))
    given = ScanInput((BookUse("global", compiled),), (ScanMessage("hi", "Ann"),))
    result = scan_books(given, ScanPorts(Draws({}), len))
    assert decision(result, 0).matched == (KeyPlace("Ann", "message", 0, -5, -2),)


def test_min_activations_are_told() -> None:
    settings = {"depth": 1, "min_activations": 1}
    result = scan([{**ENTRY, "key": ["tide"]}], ["tide", "calm"], settings=settings)
    assert decision(result, 0).by_min_activations
    assert "deeper" in next(iter(explain(result))).text


def test_asking_for_decisions_runs_nothing() -> None:
    draws = Draws({})
    entries = [{**ENTRY, "key": ["{{set}}tide"], "probability": 60}, {**ENTRY, "key": ["moon{{set}}"]}]
    result = scan(entries, draws=draws)
    variables = result.variables
    taken = list(draws.taken)
    assert [each.reason for each in result.decisions()] == ["primary_key", "no_key_match"]
    assert decision(result, 0).matched[0].key == "{{set}}tide"
    assert (draws.taken, result.variables) == (taken, variables)


def test_a_checkpoint_ends_a_scan() -> None:
    def stop() -> None:
        raise TimeoutError

    book = parse_world_book({"entries": {"0": {"uid": 0, "key": ["tide"]}}})
    compiled = compile_scan_book("B", scan_entries("B", book, exact=False))
    given = ScanInput((BookUse("global", compiled),), (ScanMessage("tide"),))
    with pytest.raises(TimeoutError):
        scan_books(given, ScanPorts(Draws({}), len, checkpoint=stop))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_explanations_say_why_and_what_was_missing(language: Any) -> None:
    entries = [
        {**ENTRY, "key": ["tide"], "keysecondary": ["moon"]},
        {**ENTRY, "key": ["sun", "star"]},
        {**ENTRY, "key": ["tide"]},
    ]
    first, second, third = explain(scan(entries), language)
    assert "moon" in first.needed
    assert "sun, star" in second.text
    assert third.active
    assert third.needed == ""
    assert "tide" in third.text
    assert third.data["matched"][0] == {"key": "tide", "kind": "message", "label": 0, "start": 0, "end": 4}


def test_texts_that_come_out_empty_are_active_but_not_placed() -> None:
    result = scan([{**ENTRY, "constant": True, "content": ""}, {**ENTRY, "constant": True, "content": "x"}])
    assert active(result) == [0, 1]
    assert [text.text for text in place_entries(result.active).before] == ["x"]


def test_a_book_bound_twice_is_scanned_once() -> None:
    bindings = BookBindings(("a", "b"), ("b", "c", "p", "gone"), "a", "p")
    known = ["a", "b", "c", "p"]
    assert bound_books(bindings, known) == [("global", "a"), ("global", "b"), ("persona", "p"), ("character", "c")]
    assert copied_book("a", ["a"]) == "a"
    assert copied_book("x", ["a"]) is None
    assert copied_book(None, ["a"]) is None


@pytest.mark.parametrize(
    ("users", "interval", "due"),
    [(0, 0, False), (5, 1, True), (1, 3, False), (3, 3, True), (4, 3, False), (6, 3, True)],
)
def test_when_an_authors_note_is_due(users: int, interval: int, due: bool) -> None:
    assert note_is_due(users, interval) is due


def test_a_greeting_runs_its_macros_once() -> None:
    opening, variables = open_chat(ChatOpening(), "hello{{set}}", ScanVariables(), set_mode)
    assert (opening.greeting, variables.chat) == ("hello", {"mode": "on"})
    assert open_chat(opening, "other{{set}}", ScanVariables(), set_mode) == (opening, ScanVariables())
