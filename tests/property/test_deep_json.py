"""JSON nested deeper than any stack, the slow parser beside the fast one, and texts of many pieces."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapster.engine import ecma
from tapster.engine.errors import FormatError

texts = st.text(alphabet=st.characters(codec=None), max_size=6)  # lone surrogates too
leaves = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | texts
values = st.recursive(leaves, lambda item: st.lists(item, max_size=4) | st.dictionaries(texts, item, max_size=4))
FRAGMENTS = [
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    '"a"',
    '"',
    "1",
    "-",
    "tru",
    "true",
    "null",
    " ",
    "NaN",
    "\\",
    "\t",
    "1.5e3",
    "\f",
]


@given(values)
def test_the_slow_parser_agrees_on_json(value: Any) -> None:
    text = ecma.stringify(value)
    assert ecma._parse_deep(text) == ecma.parse_json(text) == json.loads(text)
    assert ecma._parse_deep(ecma.stringify(value, indent=2)) == json.loads(text)


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=12).map("".join))
def test_the_slow_parser_agrees_on_what_is_not_json(text: str) -> None:
    def outcome(parse: Any) -> Any:
        try:
            return ecma.stringify(parse(text))
        except FormatError:
            return FormatError

    assert outcome(ecma._parse_deep) == outcome(ecma.parse_json)


@pytest.mark.parametrize(("start", "end"), [("[", "]"), ('{"a":', "}")])
def test_depth_is_no_limit(start: str, end: str) -> None:
    text = start * 50_000 + "1" + end * 50_000
    assert ecma.stringify(ecma.parse_json(text)) == text


def test_a_deep_text_that_is_cut_is_refused() -> None:
    with pytest.raises(FormatError):
        ecma.parse_json("[" * 50_000)


def test_a_text_of_many_pieces_is_written_whole() -> None:
    value = {"a": [{"é": "钟", "n": number} for number in range(5_000)]}
    assert json.loads(ecma.json_bytes(value)) == value
    assert ecma.stringify(value) == json.dumps(value, ensure_ascii=False, separators=(",", ":"))
