"""Regex scripts and display rules beyond the vectors: reports, consent, budgets, surrogate pairs."""

from datetime import UTC, datetime
from typing import Any

import attrs
import pytest

from tapster.actors.scripts import open_regex_engine
from tapster.engine.ecma import Json
from tapster.engine.text.display_rules import DisplayScope, apply_display_rules, expand_names, normalize_display_rule
from tapster.engine.text.macros import MacroContext
from tapster.engine.text.regex_scripts import (
    RegexScript,
    RegexUse,
    parse_find,
    parse_regex_script,
    run_regex_scripts,
    scripts_in_force,
)

REGEX = open_regex_engine(budget_ms=40)
MACROS = MacroContext(now=datetime(2024, 3, 9, tzinfo=UTC), random=lambda: 0.5, user="Ann", char="Ben")
USE = RegexUse(placement=2)
SCRIPT = RegexScript(name="s", find="/a/g", replace="b", placements=(2,))


def run(text: str, *scripts: RegexScript, use: RegexUse = USE) -> tuple[str, list[tuple[str, str]]]:
    result = run_regex_scripts(text, scripts, use, MACROS, REGEX)
    return result.text, [(report.script, report.reason) for report in result.skipped]


def test_a_script_that_cannot_run_is_named_and_the_others_go_on() -> None:
    bad = attrs.evolve(SCRIPT, name="bad", find="/(/g")
    slow = attrs.evolve(SCRIPT, name="slow", find="/(.*)*x(?=y)/g")
    odd = attrs.evolve(SCRIPT, name="odd", replace="$1", trim=("q",))
    text = "-" * 40 + "a"
    assert run(text, bad, slow, odd, SCRIPT) == (
        "-" * 40 + "b",
        [("bad", "invalid_pattern"), ("slow", "over_budget"), ("odd", "replacement_failed")],
    )


def test_the_slow_script_is_named_in_the_message() -> None:
    slow = attrs.evolve(SCRIPT, name="slow", find="/(.*)*x(?=y)/g")
    result = run_regex_scripts("-" * 60, (slow,), USE, MACROS, REGEX)
    assert "'slow'" in result.skipped[0].message


def test_counts_of_replacements() -> None:
    result = run_regex_scripts("aXa", (SCRIPT,), USE, MACROS, REGEX)
    assert [(report.script, report.count) for report in result.applied] == [("s", 2)]


def test_card_scripts_run_only_with_consent_and_after_global_ones() -> None:
    card, preset = attrs.evolve(SCRIPT, name="card"), attrs.evolve(SCRIPT, name="preset")
    assert [s.name for s in scripts_in_force((SCRIPT,), (card,), (preset,))] == ["s", "preset"]
    allowed = scripts_in_force((SCRIPT,), (card,), (preset,), character_allowed=True)
    assert [s.name for s in allowed] == ["s", "card", "preset"]


def test_hidden_messages_have_no_depth() -> None:
    windowed = attrs.evolve(SCRIPT, minimum_depth=0)
    assert run("a", windowed, use=RegexUse(2, hidden=True)) == ("a", [("s", "depth_unknown")])
    assert run("a", SCRIPT, use=RegexUse(2, hidden=True)) == ("b", [])
    assert run("a", windowed, use=RegexUse(2)) == ("b", [])


def test_offsets_count_surrogate_pairs_twice() -> None:
    assert run("😀a😀a", SCRIPT)[0] == "😀b😀b"
    assert run("😀", attrs.evolve(SCRIPT, find="/./g", replace="$0-"))[0] == "\ud83d-\ude00-"
    assert run("😀", attrs.evolve(SCRIPT, find="/./g", replace="$0"))[0] == "😀"


@pytest.mark.parametrize(
    ("find", "expected"),
    [("/a/gi", ("a", "gi")), ("a/g", ("a/g", "")), ("/a/zz", ("/a/zz", "")), ("", None), ("/a/b/g", ("a/b", "g"))],
)
def test_find_syntax(find: str, expected: tuple[str, str] | None) -> None:
    assert parse_find(find) == expected


def test_wrong_types_count_as_absent() -> None:
    script = parse_regex_script({"scriptName": 5, "placement": ["x", 2], "minDepth": "x", "maxDepth": "3"})
    assert (script.name, script.placements, script.minimum_depth, script.maximum_depth) == ("", (2,), None, 3)


def test_a_script_of_any_shape_is_read() -> None:
    shapes: list[Json] = [None, [], "x", {"placement": 2, "trimStrings": True, "substituteRegex": "1e999"}]
    for raw in shapes:
        script = parse_regex_script(raw)
        assert (script.placements, script.trim, script.substitute) == ((), (), 0)


def test_display_rules() -> None:
    raw = {"id": "r", "find": "/(a+)|(b)/", "flags": "g", "replace": "<$1$2$3{{match}}>", "trimStrings": ["a"]}
    rule = normalize_display_rule({**raw, "placement": [1], "minDepth": 1}, DisplayScope("preset", "p"))
    assert (rule.target, rule.scope.resource_id, rule.is_display_rule) == ("user", "p", True)

    def show(**more: object) -> str:
        options = {"target": "user", "preset_id": "p", "depth": 2, "regex": REGEX, **more}
        return apply_display_rules("aab", (rule,), **options).text  # type: ignore[arg-type]

    assert show() == "<><bb>"
    assert show(target="assistant") == show(preset_id="q") == show(depth=0) == "aab"
    assert expand_names("{{ USER }} {{char}}", user="", char="Bo") == "User Bo"


@pytest.mark.parametrize(("given", "depth"), [("3", 3), (" 1.5 ", 1.5), ("", None), ("x", None), ("Infinity", None)])
def test_depths_of_display_rules_are_finite(given: str, depth: float | None) -> None:
    assert normalize_display_rule({"minDepth": given}, DisplayScope()).minimum_depth == depth


def test_odd_members_of_display_rules_count_as_absent() -> None:
    odd: dict[str, Any] = {"trimStrings": "ab", "scope": {"kind": []}, "placement": "x", "target": 5, "minDepth": [1]}
    rule = normalize_display_rule(odd, DisplayScope())
    assert rule == normalize_display_rule({}, DisplayScope())
    assert normalize_display_rule({"trim_strings": ["a", 1]}, DisplayScope()).trim_strings == ("a",)
