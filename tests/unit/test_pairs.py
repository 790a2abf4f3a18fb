"""Marks that nothing closes cost no more than reading them."""

from collections.abc import Callable

import pytest

from tapster.engine.mvu.commands import history_text, parse_update
from tapster.engine.text.pairs import closed_part
from tapster.engine.text.tavern_macros import MacroContext, expand_macros
from tests.support.cpu import least_cpu_s

LENGTH = 100_000
LIMIT_S = 2.0
"""CPU time; the square of the length would take a minute."""


def expand(text: str) -> str:
    return expand_macros(text, MacroContext(), draw=lambda: 0.0).text


@pytest.mark.parametrize(
    ("text", "close", "closed"),
    [("a}}b}}c", "}}", "a}}b}}"), ("a", "}}", ""), ("", "}}", ""), ("}}", "}}", "}}"), ("}}}", "}}", "}}}")],
)
def test_the_part_that_can_hold_pairs(text: str, close: str, closed: str) -> None:
    assert closed_part(text, close) == closed


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("{{user}}{{", "User{ {"),
        ("{{{{user}}", ""),
        ("{{a}}}", "}"),
        ("x{{//c}}y", "xy"),
        ("}}{{user}}", "} }User"),
        ("{{user", "{ {user"),
    ],
)
def test_macros_beside_open_marks(text: str, given: str) -> None:
    assert expand(text) == given


@pytest.mark.parametrize(
    ("opening", "work"),
    [
        ("{{", expand),
        ("{{random::", expand),
        ("<UpdateVariable>", history_text),
        ("<UpdateVariable>_.set('a', 1);", history_text),
    ],
)
@pytest.mark.parametrize("end", ["", "}} </UpdateVariable>"])
def test_openings_cost_their_length(opening: str, work: Callable[[str], object], end: str) -> None:
    text = end + opening * (LENGTH // len(opening))
    assert least_cpu_s(lambda: work(text), LIMIT_S) <= LIMIT_S


def test_a_patch_that_nothing_closes_is_refused_at_once() -> None:
    def parse() -> None:
        with pytest.raises(Exception, match="not closed"):
            parse_update("<json_patch>" * (LENGTH // 12))

    assert least_cpu_s(parse, LIMIT_S) <= LIMIT_S
