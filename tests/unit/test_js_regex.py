"""The JS regex engine on known cases: semantics, choice of path, budgets."""

import threading

import pytest

from tapster.actors.scripts import QuickJsRegexEngine, open_regex_engine
from tapster.engine.text.js_regex import fast_search
from tapster.engine.text.ports import InvalidPattern, ScriptBudgetExceeded
from tests.support.cpu import least_cpu_s

ENGINE = open_regex_engine()


@pytest.mark.parametrize(
    ("pattern", "flags", "text", "expected"),
    [
        (r"\w+", "", "éa1 b", ["a1", "b"]),
        (r"\s", "", "\ufeff\u0085\u2029", ["\ufeff", "\u2029"]),
        (".", "", "a\u2028\n中", ["a", "中"]),
        (".", "", "😀", ["\ud83d", "\ude00"]),
        (".", "u", "😀", ["😀"]),
        ("s", "i", "sSſ", ["s", "S"]),
        ("a|s", "i", "ſ", []),
        ("k", "iu", "\u212a", ["\u212a"]),
        ("^b$", "m", "a\rb\rc", ["b"]),
        ("$", "", "a\n", [""]),
        (r"\bcat\b", "", "écat cat", ["cat", "cat"]),
        (r"(?<=a)b", "", "ab", ["b"]),
        ("[^]", "", "\n", ["\n"]),
        ("{{user}}", "", "x {{user}}", ["{{user}}"]),
        ("é", "i", "É", ["É"]),
        ("a", "y", "aab a", ["a", "a"]),
        ("\x00", "", "a\x00b", ["\x00"]),
    ],
)
def test_matches(pattern: str, flags: str, text: str, expected: list[str]) -> None:
    assert [match.text for match in ENGINE.find_all(pattern, flags, text)] == expected


def test_offsets_are_utf16_units() -> None:
    assert fast_search("中(x*?)b", "", "😀é中b") is not None
    matches = ENGINE.find_all("中(x*?)b", "", "😀é中b😀中xxb")
    assert [(match.start, match.end, match.groups) for match in matches] == [(3, 5, ("",)), (7, 11, ("xx",))]
    assert [match.start for match in ENGINE.find_all("(?=中)", "", "😀é中")] == [3]


def test_captures_and_names() -> None:
    match = ENGINE.find("(?<word>[a-z]+)(!)?", "", "- hi")
    assert match is not None
    assert match.groups == ("hi", None)
    assert match.named == {"word": "hi"}
    exact = ENGINE.find("(?<word>[a-z]+)(!)?(?=$)", "", "- hi")
    assert exact == match


def test_a_later_iteration_forgets_captures() -> None:
    match = ENGINE.find("(?:(a)|b)*", "", "ab")
    assert match is not None
    assert match.groups == (None,)


@pytest.mark.parametrize("pattern", ["(a+)+$", r"\bfoo\b", "[^x]*x", r"\*(.*?)\*"])
def test_common_patterns_take_the_fast_path(pattern: str) -> None:
    assert fast_search(pattern, "gi", "some text") is not None


@pytest.mark.parametrize(("pattern", "flags"), [("(", ""), ("a", "gg"), ("a", "x"), ("[b-a]", ""), ("\\", "u")])
def test_invalid_patterns_are_named(pattern: str, flags: str) -> None:
    with pytest.raises(InvalidPattern):
        ENGINE.check(pattern, flags)
    with pytest.raises(InvalidPattern):
        ENGINE.find_all(pattern, flags, "text")


def test_over_budget_names_the_owner_and_the_engine_goes_on() -> None:
    engine = QuickJsRegexEngine(budget_ms=30)
    with pytest.raises(ScriptBudgetExceeded, match="script «Bold»") as caught:
        engine.find_all("(.*)*x(?=y)", "g", "a" * 60, owner="script «Bold»")
    assert caught.value.details["limit"] == "time"
    assert engine.find("b", "", "ab") is not None


def test_too_many_matches_are_refused() -> None:
    with pytest.raises(ScriptBudgetExceeded, match="output"):
        QuickJsRegexEngine(budget_ms=5000).find_all("", "g", "a" * 300_000)


def test_threads_have_contexts_of_their_own() -> None:
    engine = QuickJsRegexEngine()
    wrong: list[str] = []

    def search(word: str) -> None:
        for _ in range(50):
            found = engine.find(f"(?={word})..", "", f"-- {word} --")
            if found is None or found.text != word:
                wrong.append(word)

    threads = [threading.Thread(target=search, args=(word,)) for word in ("ab", "cd", "ef")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_the_same_search_costs_its_budget_once() -> None:
    budget_s = 0.2
    engine = QuickJsRegexEngine(budget_ms=budget_s * 1000)

    def search() -> None:
        with pytest.raises(ScriptBudgetExceeded):
            engine.find("(.*)*x(?=y)", "", "a" * 60)

    search()
    assert least_cpu_s(search) < budget_s / 10
    assert engine.find("(.*)*x(?=y)", "", "axy") is not None


def test_many_slow_patterns_of_one_request_share_an_allowance() -> None:
    engine = open_regex_engine(budget_ms=20, request_budget_ms=60).for_request()
    ended_by = []
    for index in range(50):
        with pytest.raises(ScriptBudgetExceeded, match=f"key {index}") as caught:
            engine.find(f"(.*)*x{index}(?=y)", "", "a" * 60, owner=f"key {index}")
        ended_by.append(caught.value.details["limit"])
    own = ended_by.count("time")
    # Each costs its own budget, or the half that is left of it when other threads took the rest.
    assert 1 <= own <= 6
    assert ended_by == ["time"] * own + ["request's"] * (50 - own)
    with pytest.raises(ScriptBudgetExceeded, match="request's"):
        engine.find("(?=a)a", "", "ba")
    assert engine.find("a", "", "ba") is not None
