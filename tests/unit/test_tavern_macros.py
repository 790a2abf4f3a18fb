"""Macros of the tavern contract: what the conformance vectors don't reach."""

import pytest

from tapster.engine.formats.presets import parse_preset
from tapster.engine.limits import MACRO_OUTPUT_UNITS
from tapster.engine.profile import ProfileInput, ProfileUser, fit_profile
from tapster.engine.text.macro_output import MacroOutputTooLarge
from tapster.engine.text.tavern_macros import LiteralMacroInvalid, MacroContext, expand_macros

CONTEXT = MacroContext(user="Ann", character="Bo")


def expand(text: str, **literals: object) -> str:
    return expand_macros(text, CONTEXT, draw=lambda: 0.5, literals=literals).text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{{ user }} and {{CHAR}}", "Ann and Bo"),
        ("{{roll 200d1}}", "100"),
        ("{{roll\t2d6-3}}", "5"),
        ("{{roll 2d6 + 1}}|", "|"),
        ("{{setvar::a:b::c}}{{getvar::a}}|", "|"),
        ("{{setvar::v::two\nlines}}{{getvar::v}}", "two\nlines"),
        ("a{{random::}}b", "ab"),
    ],
)
def test_expansion(text: str, expected: str) -> None:
    assert expand(text) == expected


def test_a_literal_is_never_expanded_and_keeps_its_column() -> None:
    assert expand("- {{yaml}} end", yaml="a: {{user}}\nb: 2") == "- a: {{user}}\n  b: 2 end"


def test_two_literals_on_one_line_count_their_real_width() -> None:
    assert expand("{{a}}{{b}}", a="123", b="x\ny") == "123x\n   y"


def test_a_literal_survives_text_that_looks_like_its_token() -> None:
    assert expand("\ue000literal-0\ue000 {{a}}", a="v") == "\ue000literal-0\ue000 v"


def test_a_literal_must_be_text() -> None:
    with pytest.raises(LiteralMacroInvalid):
        expand("{{a}}", a=1)


def test_variables_go_in_and_come_out() -> None:
    given = {"n": "1"}
    expansion = expand_macros("{{setvar::m::{{getvar::n}}", CONTEXT, draw=lambda: 0, variables=given)
    assert dict(expansion.variables) == {"n": "1", "m": "{{getvar::n"}
    assert given == {"n": "1"}


LONG = "x" * 100_000
BOMB = "{{setvar::a::" + LONG + "}}" + "{{getvar::a}}" * 30


@pytest.mark.parametrize(
    "text",
    [
        "{{setvar::a::" + LONG + "}}" + "{{getvar::a}}" * 100_000,
        "".join(f"{{{{setvar::v{number}::{LONG}}}}}" for number in range(MACRO_OUTPUT_UNITS // len(LONG) + 1)),
    ],
)
def test_a_few_macros_cant_fill_the_memory(text: str) -> None:
    with pytest.raises(MacroOutputTooLarge):
        expand(text)


@pytest.mark.parametrize("user", [None, ProfileUser("u", "Lin", "")])
def test_many_texts_cant_fill_it_together(user: ProfileUser | None) -> None:
    """Each is below the limit; neither a preset alone nor one with a persona gets beyond it."""
    assert len(expand(BOMB)) == 30 * len(LONG)
    prompts = [{"identifier": f"p{number}", "role": "system", "content": BOMB} for number in range(4)]
    order = [{"identifier": prompt["identifier"], "enabled": True} for prompt in prompts]
    raw = {"name": "P", "prompts": prompts, "prompt_order": [{"character_id": 100001, "order": order}]}
    given = ProfileInput(parse_preset(raw, id="p", now="2026-01-01T00:00:00.000Z"), user=user)
    with pytest.raises(MacroOutputTooLarge):
        fit_profile(given, CONTEXT, lambda: 0.5)


def test_a_variable_that_a_literal_got_into_shows_it_to_the_next_text() -> None:
    first = expand_macros("{{setvar::v::<{{yaml}}>}}", CONTEXT, draw=lambda: 0.5, literals={"yaml": "a: 1\nb: 2"})
    assert first.variables == {"v": "<a: 1\nb: 2>"}
    second = expand_macros("{{getvar::v}}", CONTEXT, draw=lambda: 0.5, variables=first.variables)
    assert second.text == "<a: 1\nb: 2>"
    many = "{{setvar::v::" + "{{yaml}}" * 1000 + "}}"
    with pytest.raises(MacroOutputTooLarge):
        expand_macros(many, CONTEXT, draw=lambda: 0.5, literals={"yaml": "x" * MACRO_OUTPUT_UNITS})
