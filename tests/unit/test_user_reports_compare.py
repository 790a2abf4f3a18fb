"""The comparison rules of user reports: each must be able to fail."""

from typing import Any

import pytest

from tests.conformance.runner import run_line
from tests.conformance.user_reports_compare import compare_exact_report, compare_report, expand


@pytest.mark.parametrize(
    ("expected", "good", "bad"),
    [
        ({"active_set": ["a", "b"]}, {"active_set": ["b", "a"], "more": 1}, {"active_set": ["a"]}),
        ({"waves": [["a", "b"], ["c"]]}, {"waves": [["b", "a"], ["c"]]}, {"waves": [["a", "b", "c"]]}),
        ({"inactive": {"a": {"reason": "budget"}}}, {"inactive": {"a": {"reason": "budget", "x": 1}}}, {}),
        ({"trace": {"a": [{"reason": "sticky"}]}}, {"trace": {"a": [{"x": 1}, {"reason": "sticky", "n": 2}]}}, {}),
        ({"texts": {"a": "x"}}, {"texts": {"a": "x", "b": "y"}}, {"texts": {"a": "z"}}),
        ({"texts": ["x"]}, {"texts": ["x"]}, {"texts": ["x", "y"]}),
        ({"warnings": [{"code": "bom", "mention": ["byte"]}]}, {"warnings": [{"code": "bom", "message": "a byte"}]},
         {"warnings": [{"code": "bom", "message": "a mark"}]}),
        ({"error": {"code": "conflict"}}, {"error": {"code": "conflict", "message": "x"}}, {"ok": True}),
        ({"ok": True}, {"ok": True}, {"error": {"code": "x", "message": "y"}, "ok": True}),
        ({"contains": ["fox"]}, {"messages": [{"role": "user", "content": "a fox"}]}, {"messages": []}),
        ({"not_contains": ["fox"]}, {"messages": []}, {"messages": [{"role": "user", "content": "a fox"}]}),
        ({"must_not_merge": [["a", "b"]]}, {"messages": [{"role": "user", "content": "a"}]},
         {"messages": [{"role": "user", "content": "ab"}]}),
        ({"messages": [{"role": "user", "content": "a"}]}, {"messages": [{"role": "user", "content": "a", "n": 1}]},
         {"messages": [{"role": "system", "content": "a"}]}),
        ({"json_equal": {"a": 1}}, {"text": '{"a": 1.0}'}, {"text": "{"}),
        ({"kept": ["a"]}, {"kept": ["b", "a"]}, {"kept": []}),
        ({"results": [{"state_is_one_of": ["x", "y"]}]}, {"results": [{"state": "y"}]}, {"results": [{"state": "z"}]}),
        ({"final": {"chat": {"messages": 2}}}, {"final": {"chat": {"messages": 2, "state": "b"}}}, {"final": {}}),
        ({"steps": [{"active_set": []}]}, {"steps": [{"active_set": []}]}, {"steps": [{"active_set": ["a"]}]}),
        ({"book": None}, {"book": None}, {}),
        ({"itemised": {"chat": 2, "card:scenario": 0}}, {"itemised": {"chat": 2}}, {"itemised": {"chat": 3}}),
        ({"wanted": {"ok": True}, "st": {"ok": False}}, {"ok": True}, {"ok": False}),
    ],
)  # fmt: skip
def test_each_rule(expected: Any, good: Any, bad: Any) -> None:
    assert compare_report(expected, good) == []
    assert compare_report(expected, bad) != []


def test_an_exact_run_takes_the_other_keys() -> None:
    assert compare_exact_report({"wanted": {"ok": True}, "st": {"ok": False}}, {"ok": False}) == []


def test_repeats_are_written_out() -> None:
    assert expand({"a": [{"$repeat": ["ab", 3]}]}) == {"a": ["ababab"]}


def test_repeats_may_stand_in_what_is_expected() -> None:
    assert compare_report({"wanted": {"text": {"$repeat": ["ab", 2]}}}, {"text": "abab"}) == []
    assert compare_report({"texts": [{"$repeat": ["ab", 2]}]}, {"texts": ["ab"]}) != []


@pytest.mark.parametrize(
    ("card", "name"), [({"name": "A", "description": "q"}, "A"), ({"name": "", "description": "q"}, "mira")]
)
def test_a_card_of_two_fields_is_a_card_where_one_is_asked_for(card: Any, name: str) -> None:
    repro = {"op": "parse_card", "file": {"name": "mira.json", "json": card}}
    line = {"id": "x", "repro": repro, "expect": {"ok": True, "name": name}}
    assert run_line("user_reports", "user.parse_card", line).outcome == "passed"
