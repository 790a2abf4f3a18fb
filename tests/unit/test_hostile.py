"""Every hostile pattern and template is answered with a diagnostic, within its budget."""

import pytest

from tapster.actors.scripts import QuickJsRegexEngine, QuickJsTemplateEngine, open_regex_engine
from tapster.engine.text.ports import ScriptBudgetExceeded
from tapster.engine.text.templates import TemplateError, render_template
from tests.support.cpu import least_cpu_s
from tests.support.hostile import PATTERNS, TEMPLATES, TEXT

BUDGET_MS = 40
BOUND_S = 4 * BUDGET_MS / 1000
"""Bounded at all: what it takes to the millisecond is for the benchmarks."""


def test_there_are_enough_of_them() -> None:
    assert (len(set(PATTERNS)), len(set(TEMPLATES))) == (20, 10)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns(pattern: str) -> None:
    def search() -> None:
        # A new engine each time: one that has seen a pattern run over refuses it at once.
        engine = open_regex_engine(budget_ms=BUDGET_MS)
        with pytest.raises(ScriptBudgetExceeded, match="the hostile card"):
            engine.find_all(pattern, "g", TEXT, owner="the hostile card")
        assert engine.find("(?=x)", "", "ax") is not None

    assert least_cpu_s(search, BOUND_S) <= BOUND_S


@pytest.mark.parametrize("source", TEMPLATES)
def test_templates(source: str) -> None:
    engine = QuickJsTemplateEngine(budget_ms=BUDGET_MS)

    def render() -> None:
        with pytest.raises(TemplateError) as caught:
            render_template(source, {}, lambda lookup: "x", engine, name="hostile")
        assert caught.value.details["template"] == "hostile"
        assert caught.value.code.startswith("TEMPLATE_")

    assert least_cpu_s(render, BOUND_S) <= BOUND_S


def test_an_exact_engine_survives_all_of_them() -> None:
    engine = QuickJsRegexEngine(budget_ms=5)
    for pattern in PATTERNS:
        with pytest.raises(ScriptBudgetExceeded):
            engine.find_all(pattern, "", TEXT)
        assert [match.text for match in engine.find_all(".b", "", "ab cb")] == ["ab", "cb"]
