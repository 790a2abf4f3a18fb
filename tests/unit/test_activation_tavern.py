"""Mode tavern: keys, groups, the adapter's capacity and failures, composition, explanations."""

from typing import Any

import pytest

from tapster.engine import limits
from tapster.engine.activation import explain, match_key
from tapster.engine.activation.keys import KeyRules
from tapster.engine.activation.tavern import (
    ActivationOptions,
    AdapterResult,
    BookRequest,
    LibraryBook,
    MatchDefaults,
    activate_book,
    activate_books,
    compile_book,
    compose_books,
    embedded_book,
)
from tapster.engine.activation.tavern.compiled import RuntimeEntryLimit
from tapster.engine.ecma import stringify
from tapster.engine.errors import FormatError, StoreError
from tapster.engine.formats.world_books import parse_world_book
from tapster.engine.projection import HistoryMessage, PendingInput, ProjectionLimits, activate
from tapster.engine.text.ports import InvalidPattern, RegexMatch, ScriptBudgetExceeded

Json = Any


class ScriptedRegex:
    """A regex engine that answers one pattern, refuses another and runs away on a third."""

    def check(self, pattern: str, flags: str) -> None:
        """Compile only."""

    def find(self, pattern: str, flags: str, text: str, *, owner: str = "") -> RegexMatch | None:
        if pattern == "(":
            raise InvalidPattern("not a pattern")
        if pattern == "slow":
            raise ScriptBudgetExceeded("out of time")
        start = text.find(pattern)
        return None if start < 0 else RegexMatch(start * 2, (start + len(pattern)) * 2, pattern)

    def find_all(self, pattern: str, flags: str, text: str, *, owner: str = "") -> list[RegexMatch]:
        found = self.find(pattern, flags, text)
        return [] if found is None else [found]


def library_book(id: str, entries: Json, **fields: Json) -> LibraryBook:
    return LibraryBook(id, id, compile_book(parse_world_book({"entries": entries, **fields})))


def request(*books: LibraryBook, text: str = "tide", **fields: Any) -> AdapterResult:
    ids = tuple(book.id for book in books)
    named = {"book_ids": ids, "books": {book.id: book for book in books}, "conversation_text": text}
    return activate_books(BookRequest(**{**named, **fields}), regex=ScriptedRegex())


def codes(result: AdapterResult) -> list[str]:
    return [diagnostic.code for diagnostic in result.diagnostics]


@pytest.mark.parametrize(
    ("key", "code"),
    [
        ("/a/ii", "unsupported-regex-flags"),
        ("/a/y", "unsupported-regex-flags"),
        ("/(/", "invalid-regex"),
        ("/slow/", "regex-budget-exceeded"),
        ("/🦊/", None),
        ("/a\\/", None),
    ],
)
def test_regex_keys(key: str, code: str | None) -> None:
    rules = KeyRules(allow_unsafe_regex=True, max_regex_length=8)
    match = match_key(key, "🦊🦊 /a\\/", rules=rules, regex=ScriptedRegex())
    assert match.code == code
    assert match.matched is (code is None)


def test_a_regex_key_is_off_without_being_asked_for() -> None:
    assert match_key("/a/", "a", regex=ScriptedRegex()).code == "unsafe-regex-disabled"
    assert match_key("/a/", "a", rules=KeyRules(True)).code == "unsafe-regex-disabled"


def test_a_group_loss_names_the_winner_and_the_rule() -> None:
    entries = {
        "a": {"uid": 1, "key": ["x"], "group": "g", "order": 9},
        "b": {"uid": 2, "key": ["x"], "group": "g", "groupOverride": True, "order": 1},
        "c": {"uid": 3, "key": ["x", "y"], "group": "h", "useGroupScoring": True},
        "d": {"uid": 4, "key": ["x"], "group": "h", "useGroupScoring": True},
        "e": {"uid": 5, "key": ["x"], "group": "w", "groupWeight": 1},
        "f": {"uid": 6, "key": ["x"], "group": "w", "groupWeight": 1},
    }
    options = ActivationOptions.from_options({"groupRolls": {"w": 0.5}})
    activation = activate_book(compile_book(parse_world_book({"entries": entries})), "x y", options)
    lost = {c.entry.uid: (c.lost.winner, c.lost.by) for c in activation.rejected if c.lost}
    assert lost == {1: ("b@1", "override"), 4: ("c@2", "score"), 5: ("f@5", "weight")}


def test_a_book_over_the_runtime_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_RUNTIME_ENTRIES", 1)
    book = parse_world_book({"entries": {"a": {"uid": 1}, "b": {"uid": 2}}})
    with pytest.raises(RuntimeEntryLimit):
        compile_book(book)


def test_books_that_cannot_be_used_are_reported_and_the_rest_goes_on() -> None:
    good = library_book("good", {"a": {"uid": 1, "key": ["tide"], "content": "T"}})
    managed = LibraryBook("managed", "managed", good.compiled, managed=True)
    result = activate_books(
        BookRequest(
            book_ids=("gone", "broken", "managed", "good"),
            books={"broken": StoreError("unreadable"), "managed": managed, "good": good},
            conversation_text="tide",
            embedded=embedded_book("c", "Card", {"entries": 7}),
        )
    )
    assert codes(result) == [
        "WORLD_BOOK_NOT_FOUND",
        "WORLD_BOOK_DOCUMENT_INVALID",
        "WORLD_BOOK_MANAGED_REQUIRES_ASSEMBLY",
        "EMBEDDED_WORLD_BOOK_INVALID",
    ]
    assert [entry.id for entry in result.lore] == ["good:1"]


def test_without_a_library_there_is_one_warning() -> None:
    result = activate_books(BookRequest(book_ids=("a", "b")))
    assert codes(result) == ["WORLD_BOOK_STORE_NOT_INSTALLED"]
    assert result.diagnostics[0].to_json()["worldBookIds"] == ["a", "b"]


def test_depth_and_caps_cut_the_scan_text() -> None:
    book = library_book("w", {"a": {"uid": 1, "key": ["old"], "content": "A"}}, scan_depth=1)
    context, _ = activate(PendingInput(), [HistoryMessage(None, "user", text) for text in ("old", "new")])
    assert request(book, context=context).lore == ()
    deep = library_book("w", {"a": {"uid": 1, "key": ["old"], "content": "A"}})
    few = ActivationOptions(max_scan_messages=1)
    result = request(deep, context=context, options=few)
    assert codes(result) == ["WORLD_BOOK_SCAN_TEXT_TRUNCATED"]
    short = PendingInput(limits=ProjectionLimits(max_scan_characters=5))
    cut, _ = activate(short, [HistoryMessage(None, "user", text) for text in ("old", "new")])
    details = request(deep, context=cut).diagnostics[0].details
    assert details == {"scannedCharacters": 5, "originalCharacters": 7}


def test_a_context_without_text_leaves_the_plain_text() -> None:
    book = library_book("w", {"a": {"uid": 1, "key": ["tide"], "content": "A"}}, scan_depth=0)
    empty, _ = activate(PendingInput(), [HistoryMessage(None, "user", "")])
    assert [entry.id for entry in request(book, context=empty).lore] == ["w:1"]


def test_the_audit_holds_no_content_and_no_text() -> None:
    entries = {
        "a": {"uid": 1, "key": ["tide"], "content": "SECRET", "comment": "name", "group": "g"},
        "b": {"uid": 2, "key": ["/x/"], "content": "SECRET"},
    }
    result = request(library_book("w", entries), text="tide HIDDEN")
    assert "SECRET" not in stringify(result.audit())
    assert "HIDDEN" not in stringify(result.audit())
    assert result.audit()["resources"][0]["budget"] == {"limit": None, "used": 2, "remaining": None}


def test_an_audit_is_written_as_its_decisions_say_whatever_was_written_before() -> None:
    entries = {
        "a": {"uid": 1, "key": ["tide"], "content": "A"},
        "b": {"uid": "二", "key": ["moon"], "content": "B", "comment": "“月”\ud800"},
        "c": {"uid": 3, "key": ["moon"], "content": "C", "disable": True},
        "d": {"uid": 4, "constant": True, "content": "D", "position": 7},
    }
    book = library_book("w", entries)
    for text in ("nothing", "tide", "tide and moon", "nothing"):
        result = request(book, text=text)
        made = [decision.to_json() for decision in result.decisions()]
        (row,) = result.audit()["resources"]
        assert row["decisions"] == made
        assert len(made) == len(entries)
        assert stringify(row["decisions"]) == stringify(made)
        assert stringify(row["decisions"], indent=2) == stringify(made, indent=2)


@pytest.mark.parametrize(
    ("ids", "slug"),
    [("abc", "not-array"), ({}, "not-array"), (["a"] * 101, "too-many-world-books"), ([1], "bad-world-book-id")],
)
def test_composition_refuses_bad_lists(ids: Json, slug: str) -> None:
    with pytest.raises(FormatError) as caught:
        compose_books(ids, [], [], [])
    assert caught.value.slug == slug


def test_opening_books_follow_the_explicit_ones() -> None:
    selection = compose_books(["a"], ["u"], [], ["c"], opening=["o", "a"])
    assert selection.effective_ids == ("a", "o", "u", "c")
    assert selection.binding_sources("c") == ("character",)
    assert selection.binding_sources("o") == ("session",)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_outcome_has_an_explanation(language: Any) -> None:
    entries = {
        "a": {"uid": 1, "key": ["tide"], "content": "T"},
        "b": {"uid": 2, "key": ["tide"], "keysecondary": ["moon"], "content": "B"},
        "c": {"uid": 3, "key": ["tide"], "content": ""},
        "d": {"uid": 4, "key": ["tide"], "content": "D", "position": 7},
        "e": {"uid": 5, "key": ["sun"], "content": "E"},
        "f": {"uid": 6, "key": ["sun"], "content": "F", "disable": True},
        "g": {"uid": 7, "key": ["tide"], "content": "G", "probability": 0},
        "h": {"uid": 8, "key": ["tide"], "content": "H", "vectorized": True},
        "i": {"uid": 9, "constant": True, "content": "I" * 400, "order": 1},
        "j": {"uid": 10, "key": ["tide"], "content": "J", "group": "g", "order": 200},
        "k": {"uid": 11, "key": ["tide"], "content": "K", "group": "g"},
    }
    result = request(library_book("w", entries, token_budget=50))
    found = {explanation.entry: explanation for explanation in explain(result, language)}
    assert {name: each.reason for name, each in found.items()} == {
        "w:1": "primary-key-match",
        "w:2": "secondary-and_any-miss",
        "w:3": "empty-content",
        "w:4": "outlet-unsupported",
        "w:5": "primary-key-miss",
        "w:6": "disabled",
        "w:7": "probability-failed",
        "w:8": "external-vector-match-required",
        "w:9": "budget-exceeded",
        "w:10": "primary-key-match",
        "w:11": "inclusion-group-loser",
    }
    assert found["w:1"].active
    assert "0-4" in found["w:1"].text
    assert "sun" in found["w:5"].needed
    assert "j@9" in found["w:11"].text
    assert all(each.needed for each in found.values() if not each.active)


def test_defaults_apply_where_an_entry_says_nothing() -> None:
    book = parse_world_book({"entries": {"a": {"uid": 1, "key": ["Tide"]}, "b": {"uid": 2, "key": ["tid"]}}})
    strict = MatchDefaults(case_sensitive=True, match_whole_words=True)
    assert activate_book(compile_book(book, strict), "tide").accepted == ()
    assert [c.entry.uid for c in activate_book(compile_book(book), "tide").accepted] == [1, 2]
