"""Macros on random texts: no crash, no lost text, the same answer twice; unknown macros stay as written."""

from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from tapster.engine.text.macros import MacroContext, expand
from tapster.engine.text.macros.syntax import Text, parse

MACROS = (
    "{{user}} {{char}} {{random::a::b}} {{roll::1d6}} {{getvar::k}} {{addvar::k::1}} {{incvar::k}} {{else}} {{/if}} "
    "{{trim}} {{/trim}} {{//}} {{///}} {{.k}} {{reverse}} {{/reverse}} {{unknown}} {{pick::p::q}} {{setvar::k:: "
    "{{reverse:: {{unknown::"
)
BRACES = ("{{", "}}", "{", "}", "::", ":", " ", "\n", "x", "\\{", "😀", "|", "<USER>")
PIECES = (
    *BRACES, *MACROS.split(" "), "{{if 1}}", "{{if .k}}", "{{#if 1}}", "{{// c}}", "{{.k = ", "{{$g += ", "{{.k ?? ",
)  # fmt: skip
texts = st.lists(st.sampled_from(PIECES), max_size=25).map("".join)
NOW = datetime(2024, 3, 9, tzinfo=UTC)


def run(text: str) -> object:
    return expand(text, MacroContext(now=NOW, random=lambda: 0.3, user="Ann", char="Ben", variables={"k": "1"}))


@settings(max_examples=300, deadline=None)
@given(texts)
def test_any_text_is_expanded_the_same_way_twice(text: str) -> None:
    assert run(text) == run(text)


@settings(max_examples=200, deadline=None)
@given(texts)
def test_the_tree_covers_the_text_in_order(text: str) -> None:
    position = 0
    for node in parse(text):
        if isinstance(node, Text):
            assert text.startswith(node.text, position)
            position += len(node.text)
        else:
            assert node.start == position
            position = node.end
    assert position == len(text)


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet="ab c:{}\n", max_size=40))
def test_text_without_known_macros_stays(text: str) -> None:
    result = expand(text, MacroContext(now=NOW, random=lambda: 0.3))
    assert (result.text, result.draws, result.variables) == (text, (), {})
