"""A list whose members are made on demand is a list to whoever reads, compares or writes it."""

import hashlib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tapster.engine.ecma import json_bytes, sha256_json, stringify, utf8
from tapster.engine.lazy_list import LazyList, chained

TEXTS = st.text(st.characters(exclude_categories=()), max_size=5)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
LISTS = st.lists(VALUES, max_size=8)


def lazy(values: list[Any], written: frozenset[int] = frozenset()) -> LazyList:
    return LazyList(
        len(values), values.__getitem__, lambda index: stringify(values[index]) if index in written else None
    )


@given(LISTS, st.frozensets(st.integers(0, 7)))
def test_it_is_written_as_the_list_would_be(values: list[Any], written: frozenset[int]) -> None:
    held, plain = {"rows": lazy(values, written)}, {"rows": values}
    assert stringify(held) == stringify(plain)
    assert stringify(held, indent=2) == stringify(plain, indent=2)
    assert json_bytes(held) == utf8(stringify(plain))
    assert sha256_json(held) == hashlib.sha256(utf8(stringify(plain))).hexdigest()


@given(LISTS, st.slices(8))
def test_it_is_read_as_the_list_would_be(values: list[Any], part: slice) -> None:
    held = lazy(values)
    assert held == values
    assert values == held
    assert list(held) == values
    assert held[part] == values[part]
    assert [held[index] for index in range(-len(values), 0)] == values
    assert held != [*values, None]
    assert held != "text"


@given(st.lists(LISTS, max_size=4), st.frozensets(st.integers(0, 7)))
def test_chained_lists_are_one_list(lists: list[list[Any]], written: frozenset[int]) -> None:
    joined = [value for values in lists for value in values]
    assert chained([lazy(values, written) for values in lists]) == joined
    assert chained(lists) == joined
    assert stringify(chained([lazy(values, written) for values in lists])) == stringify(joined)
