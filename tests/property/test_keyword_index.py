"""The keyword index finds what the plain definition finds, at the same place."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tapster.engine import limits
from tapster.engine.text.keyword_index import Keyword, compile_keywords, find_keyword

LETTERS = "aAbBkKxI \u0130\u0131\u212aßẞﬁΣσς_1-é\u0301\u0307灯塔🦊\ud83d\udd25\ufffdΟ\u0001\n"
texts = st.text(st.sampled_from(LETTERS), max_size=40)
keywords = st.builds(Keyword, st.text(st.sampled_from(LETTERS), max_size=4), st.booleans(), st.booleans())


@given(st.lists(keywords, max_size=12), texts)
@settings(max_examples=150, deadline=None)
def test_index_equals_definition(wanted: list[Keyword], text: str) -> None:
    expected = {number: span for number, keyword in enumerate(wanted) if (span := find_keyword(keyword, text))}
    assert compile_keywords(wanted).scan(text) == expected


@given(st.lists(keywords, max_size=12), texts, st.integers(1, 4), st.integers(1, 30))
@settings(max_examples=80, deadline=None)
def test_parts_and_passes_change_nothing(wanted: list[Keyword], text: str, part: int, hits: int) -> None:
    expected = compile_keywords(wanted).scan(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "PATTERNS_A_PART", part)
        patch.setattr(limits, "MAX_HITS_A_PASS", hits)
        patch.setattr(limits, "MAX_HITS_A_SCAN", hits)
        patch.setattr(limits, "MAX_HITS_A_CHARACTER", hits % 2)
        assert compile_keywords(wanted).scan(text) == expected


@given(st.text(st.sampled_from(LETTERS), min_size=1, max_size=3), texts, texts)
@settings(max_examples=150, deadline=None)
def test_a_span_is_where_the_key_stands(key: str, before: str, after: str) -> None:
    span = find_keyword(Keyword(key, case_sensitive=True), before + key + after)
    assert span is not None
    if not any("\ud800" <= character <= "\udfff" for character in key):
        assert (before + key + after)[slice(*span)] == key


@pytest.mark.parametrize(
    ("text", "key", "span"),
    [
        ("İİx", "x", (2, 3)),
        ("aİb", "i", (1, 2)),
        ("Straße", "SSE", None),
        ("straẞe", "straße", (0, 6)),
        ("ﬁn", "fi", None),
    ],
)
def test_offsets_are_those_of_the_given_text(text: str, key: str, span: tuple[int, int] | None) -> None:
    assert find_keyword(Keyword(key), text) == span
    assert compile_keywords([Keyword(key)]).scan(text).get(0) == span


def test_text_in_which_everything_matches_everywhere_stays_cheap() -> None:
    nested = [Keyword("a" * length, whole_word=length % 2 == 0) for length in range(1, 200)]
    text = "a" * 60_000 + " aa"
    found = compile_keywords(nested).scan(text)
    assert len(found) == 101
    assert found[1] == (60_001, 60_003)
