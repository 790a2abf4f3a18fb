"""Both modes with their index do what they do entry by entry, and nothing depends on how a book is cut up."""

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tapster.engine import limits
from tapster.engine.activation.sillytavern import (
    BookUse,
    Injection,
    MacroOutcome,
    ScanInput,
    ScanMessage,
    ScanPorts,
    ScanResult,
    ScanSettings,
    ScanVariables,
    compile_scan_book,
    scan_books,
    scan_entries,
)
from tapster.engine.activation.tavern import activate_book, compile_book, evaluate_entry
from tapster.engine.formats.world_books import parse_world_book

Json = Any
WORDS = ("tide", "Tide", "灯塔", "塔", "İ", "i", "ß", "ﬁ", "é", "🦊", "a b", "K", "x_", " ", "")
words = st.sampled_from(WORDS)
texts = st.lists(st.one_of(words, st.sampled_from((" ", ".", "_"))), max_size=10).map("".join)
maybe = st.sampled_from((None, True, False))
entries = st.fixed_dictionaries(
    {
        "key": st.lists(words, max_size=3),
        "keysecondary": st.lists(words, max_size=2),
        "selectiveLogic": st.integers(0, 3),
        "caseSensitive": maybe,
        "matchWholeWords": maybe,
        "constant": st.sampled_from((False, False, False, True)),
        "order": st.integers(0, 3),
        "content": texts,
        "scanDepth": st.sampled_from((None, None, 0, 1, 2)),
        "preventRecursion": st.booleans(),
        "excludeRecursion": st.booleans(),
        "matchScenario": st.booleans(),
        "delayUntilRecursion": st.sampled_from((False, False, True, 2)),
        "group": st.sampled_from(("", "", "g", "g, h")),
    }
)
books = st.lists(entries, max_size=8)


def raw_book(given_entries: list[Json], mark: str = "") -> Json:
    return {
        "entries": {
            str(uid): {
                **entry,
                "uid": uid,
                "key": [mark + key if key.strip() else key for key in entry["key"]],
                "keysecondary": [mark + key if key.strip() else key for key in entry["keysecondary"]],
            }
            for uid, entry in enumerate(given_entries)
        }
    }


@given(books, texts)
@settings(max_examples=60, deadline=None)
def test_tavern_agrees_with_each_entry_by_itself(given_entries: list[Json], text: str) -> None:
    book = parse_world_book(raw_book(given_entries))
    activation = activate_book(compile_book(book), text)
    decided = [*activation.accepted, *activation.rejected]
    assert sorted(candidate.index for candidate in decided) == list(range(len(book.entries)))
    for candidate in decided:
        assert candidate.evaluation == evaluate_entry(candidate.entry, text)


def unmark(text: str, variables: ScanVariables) -> MacroOutcome:
    return MacroOutcome(text.replace("{{}}", ""), variables)


def scan(given_entries: list[Json], messages: list[str], chosen: ScanSettings, mark: str) -> ScanResult:
    book = parse_world_book(raw_book(given_entries, mark))
    compiled = compile_scan_book("B", scan_entries("B", book, exact=False))
    return scan_books(
        ScanInput(
            (BookUse("global", compiled),),
            tuple(ScanMessage(message, "N") for message in messages),
            chosen,
            sources={"scenario": "灯塔 tide"},
            injections=(Injection("i", "ﬁ a b"),),
        ),
        ScanPorts(lambda purpose: 0.5, lambda text: math.ceil(len(text) / 4), unmark),
    )


chosen_settings = st.builds(
    ScanSettings,
    depth=st.integers(0, 3),
    budget_tokens=st.sampled_from((math.inf, 5)),
    min_activations=st.sampled_from((0, 0, 2)),
    recursive=st.booleans(),
    max_recursion_steps=st.sampled_from((0, 0, 2)),
    use_group_scoring=st.booleans(),
    quirks=st.sampled_from(("exact", "repaired")),
)


@given(books, st.lists(texts, max_size=4), chosen_settings)
@settings(max_examples=80, deadline=None)
def test_sillytavern_finds_by_index_what_it_finds_key_by_key(
    given_entries: list[Json], messages: list[str], chosen: ScanSettings
) -> None:
    if chosen.use_group_scoring:
        given_entries = [{**entry, "group": ""} for entry in given_entries]
    # A key with a macro in it is never in the index: it is looked for by itself in every text.
    by_index, by_key = (scan(given_entries, messages, chosen, mark) for mark in ("", "{{}}"))
    assert [each.entry.name for each in by_index.active] == [each.entry.name for each in by_key.active]
    assert [each.content for each in by_index.active] == [each.content for each in by_key.active]
    assert by_index.passes == by_key.passes


@given(books, st.lists(texts, max_size=4), chosen_settings)
@settings(max_examples=40, deadline=None)
def test_every_entry_is_decided_once_and_parts_change_nothing(
    given_entries: list[Json], messages: list[str], chosen: ScanSettings
) -> None:
    whole = scan(given_entries, messages, chosen, "")
    decisions = list(whole.decisions())
    assert [decision.entry.uid for decision in decisions] == list(range(len(given_entries)))
    assert {d.entry.name for d in decisions if d.active} == {each.entry.name for each in whole.active}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "PATTERNS_A_PART", 2)
        patch.setattr(limits, "ENTRIES_A_PART", 2)
        assert list(scan(given_entries, messages, chosen, "").decisions()) == decisions
