"""Many keywords in one pass: an automaton compiled once for a book, equal to looking for each key by itself.

The plain definition is ``find_keyword``: the key lies in the text as it stands, or, when case does not count, the
lower-cased key lies in the lower-cased text. A whole-word key (one without white space) must also have no ASCII letter,
digit or underscore beside it, in the text as compared: SillyTavern lower-cases before it looks at boundaries, so a
Kelvin sign beside a key is a letter. Lengths change under lower-casing only for U+0130; offsets are mapped back.

Not in the automaton, but found by the definition: empty and very long keys, and keys with lone surrogates, which
match half of a pair as JavaScript's strings do.

Source: spec/activation §5.2; style §6 "keyword scan".
"""

import re
from bisect import bisect_right
from collections.abc import Generator, Iterator, Sequence
from typing import Protocol, TypeAlias

import ahocorasick_rs
import attrs

from tapster.engine import limits
from tapster.engine.ecma import WHITE_SPACE

Span: TypeAlias = tuple[int, int]
"""Start and end of a match, in code points of the text that was given."""
Hits: TypeAlias = dict[int, Span]
"""The keywords found, by number, each with its first match."""

_DOTTED_I = "İ"
_WORD = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_")
_SPACE = re.compile(f"[{WHITE_SPACE}]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_PLACEHOLDER = "\ufffd"


@attrs.frozen
class Keyword:
    """One thing to look for, exactly as written (trimmed already where that is the rule)."""

    text: str
    case_sensitive: bool = False
    whole_word: bool = False

    @property
    def needle(self) -> str:
        """The text as it is compared."""
        return self.text if self.case_sensitive else self.text.lower()

    @property
    def is_bounded(self) -> bool:
        """Whether the whole-word check applies: a key of several words is a plain substring."""
        return self.whole_word and not _SPACE.search(self.text)


class _Automaton(Protocol):
    def find_matches_as_indexes(self, haystack: str, overlapping: bool = False) -> list[tuple[int, int, int]]: ...


@attrs.frozen(eq=False)
class _Shard:
    """One automaton, and for each pattern the keywords it stands for, those with a boundary check apart."""

    automaton: _Automaton
    patterns: tuple[str, ...]
    loose: tuple[tuple[int, ...], ...]
    bounded: tuple[tuple[int, ...], ...]
    window: int
    overlap: int
    any_bounded: bool


@attrs.frozen(eq=False)
class KeywordIndex:
    """Compiled keywords; safe to share between threads."""

    keywords: tuple[Keyword, ...]
    _folded: tuple[_Shard, ...]
    _exact: tuple[_Shard, ...]
    _apart: tuple[int, ...]

    def scan(self, text: str) -> Hits:
        """Every keyword that lies in a text, by its number, with its first match."""
        hits: Hits = {}
        if self._folded:
            lowered = text.lower()
            _scan_shards(self._folded, lowered, hits)
            if len(lowered) != len(text):
                _map_back(text, hits)
        _scan_shards(self._exact, text, hits)
        for number in self._apart:
            span = find_keyword(self.keywords[number], text)
            if span is not None:
                hits[number] = span
        return hits

    def bare_scan(self, text: str) -> int:
        """How many matches the automatons report, each place counted: the yardstick of ``benchmarks/activation``."""
        lowered = text.lower()
        pairs = ((self._folded, lowered), (self._exact, text))
        return sum(
            len(shard.automaton.find_matches_as_indexes(searched, overlapping=True))
            for shards, searched in pairs
            for shard in shards
        )


def compile_keywords(keywords: Sequence[Keyword]) -> KeywordIndex:
    """The index of some keywords; repeats are allowed and each gets its own number."""
    parts = compile_in_parts(keywords)
    while True:
        try:
            next(parts)
        except StopIteration as done:
            index: KeywordIndex = done.value
            return index


def compile_in_parts(keywords: Sequence[Keyword]) -> Generator[None, None, KeywordIndex]:
    """The same, stopping after each part: building one part holds the interpreter for some milliseconds."""
    folded, exact = _Patterns(), _Patterns()
    apart: list[int] = []
    for number, keyword in enumerate(keywords):
        needle = keyword.needle
        if not needle or len(needle) > limits.MAX_INDEXED_KEY_CHARACTERS or _SURROGATE.search(needle):
            apart.append(number)
        else:
            (exact if keyword.case_sensitive else folded).add(needle, number, keyword.is_bounded)
    built: list[list[_Shard]] = [[], []]
    for shards, patterns in zip(built, (folded, exact), strict=True):
        for shard in _shards(patterns):
            shards.append(shard)
            yield
    return KeywordIndex(tuple(keywords), tuple(built[0]), tuple(built[1]), tuple(apart))


def find_keyword(keyword: Keyword, text: str) -> Span | None:
    """The first match of one keyword: the definition that the index equals."""
    if _SURROGATE.search(keyword.text):
        return _find_in_units(keyword, text)
    haystack = text if keyword.case_sensitive else text.lower()
    span = _find(keyword, keyword.needle, haystack)
    if span is None or len(haystack) == len(text):
        return span
    mapped = {0: span}
    _map_back(text, mapped)
    return mapped[0]


def _find(keyword: Keyword, needle: str, haystack: str) -> Span | None:
    start = haystack.find(needle)
    if not needle or not keyword.is_bounded:
        return None if start < 0 else (start, start + len(needle))
    while start >= 0:
        if _is_whole(haystack, start, start + len(needle)):
            return start, start + len(needle)
        start = haystack.find(needle, start + 1)
    return None


def _find_in_units(keyword: Keyword, text: str) -> Span | None:
    """As JavaScript compares: by UTF-16 code unit, so that half a pair can match."""
    units = _units(text)
    needle = _units(keyword.needle)
    span = _find(keyword, needle, units if keyword.case_sensitive else _units(text.lower()))
    if span is None or len(units) == len(text):
        return span
    starts: list[int] = []
    for point, character in enumerate(text):
        starts += [point] * (2 if ord(character) > 0xFFFF else 1)
    starts.append(len(text))
    start, end = min(span[0], len(starts) - 1), min(span[1], len(starts) - 1)
    return starts[start], max(starts[end], starts[start] + 1)


def _units(text: str) -> str:
    return "".join(
        character
        if ord(character) <= 0xFFFF
        else chr(0xD7C0 + (ord(character) >> 10)) + chr(0xDC00 + (ord(character) & 0x3FF))
        for character in text
    )


def _is_whole(haystack: str, start: int, end: int) -> bool:
    return (start == 0 or haystack[start - 1] not in _WORD) and (end >= len(haystack) or haystack[end] not in _WORD)


class _Patterns:
    """Distinct patterns, and the keywords of each with and without the boundary check.

    Tuples of numbers, and no containers in containers: the collector would walk them all again and again.
    """

    def __init__(self) -> None:
        self.loose: dict[str, tuple[int, ...]] = {}
        self.bounded: dict[str, tuple[int, ...]] = {}

    def add(self, needle: str, number: int, bounded: bool) -> None:
        into = self.bounded if bounded else self.loose
        into[needle] = (*into.get(needle, ()), number)


def _shards(patterns: _Patterns) -> Iterator[_Shard]:
    names = list(dict.fromkeys((*patterns.loose, *patterns.bounded)))
    for first in range(0, len(names), limits.PATTERNS_A_PART):
        yield _shard(names[first : first + limits.PATTERNS_A_PART], patterns)


def _shard(names: list[str], patterns: _Patterns) -> _Shard:
    lengths = {len(name) for name in names}
    overlap = max(lengths) - 1
    # At most one pattern of each length ends at a place: the window bounds how many matches one pass can report.
    window = max(2 * overlap, limits.MAX_HITS_A_PASS // len(lengths))
    loose = tuple(patterns.loose.get(name, ()) for name in names)
    bounded = tuple(patterns.bounded.get(name, ()) for name in names)
    automaton = ahocorasick_rs.AhoCorasick(
        names, implementation=ahocorasick_rs.Implementation.ContiguousNFA, store_patterns=False
    )
    return _Shard(automaton, tuple(names), loose, bounded, window, overlap, any(bounded))


def _scan_shards(shards: tuple[_Shard, ...], haystack: str, hits: Hits) -> None:
    broken = bool(shards) and not haystack.isascii() and _SURROGATE.search(haystack) is not None
    searched = _SURROGATE.sub(_PLACEHOLDER, haystack) if broken else haystack
    for shard in shards:
        seen = 0
        for base in range(0, max(1, len(searched) - shard.overlap), shard.window):
            part = searched[base : base + shard.window + shard.overlap]
            found = shard.automaton.find_matches_as_indexes(part, overlapping=True)
            if broken:
                found = [hit for hit in found if haystack.startswith(shard.patterns[hit[0]], base + hit[1])]
            _collect(shard, haystack, base, found, hits)
            seen += len(found)
            if seen > max(limits.MAX_HITS_A_SCAN, limits.MAX_HITS_A_CHARACTER * (base + len(part))):
                _find_the_rest(shard, haystack, base + shard.window, hits)
                break


def _find_the_rest(shard: _Shard, haystack: str, start: int, hits: Hits) -> None:
    """Look for each keyword that is still missing by itself, from a place on.

    A text in which everything matches everywhere (one letter, keys of every length) would report each of its places.
    """
    for place, pattern in enumerate(shard.patterns):
        loose = [number for number in shard.loose[place] if number not in hits]
        first = haystack.find(pattern, start) if loose else -1
        if first >= 0:
            hits.update((number, (first, first + len(pattern))) for number in loose)
        bounded = [number for number in shard.bounded[place] if number not in hits]
        match = _whole_word(pattern).search(haystack, start) if bounded else None
        if match is not None:
            hits.update((number, match.span()) for number in bounded)


def _whole_word(pattern: str) -> re.Pattern[str]:
    return re.compile(f"(?<![A-Za-z0-9_]){re.escape(pattern)}(?![A-Za-z0-9_])")


def _collect(shard: _Shard, haystack: str, base: int, found: list[tuple[int, int, int]], hits: Hits) -> None:
    for pattern, (start, end) in {hit[0]: hit[1:] for hit in reversed(found)}.items():
        for number in shard.loose[pattern]:
            if number not in hits:
                hits[number] = (base + start, base + end)
    if not shard.any_bounded:
        return
    for pattern, start, end in found:
        for number in shard.bounded[pattern]:
            if number not in hits and _is_whole(haystack, base + start, base + end):
                hits[number] = (base + start, base + end)


def _map_back(text: str, hits: Hits) -> None:
    """Turn spans of the lower-cased text into spans of the text: each dotted capital I became two."""
    places = [match.start() for match in re.finditer(_DOTTED_I, text)]
    inside = [place + number + 1 for number, place in enumerate(places)]
    for number, (start, end) in hits.items():
        hits[number] = (start - bisect_right(inside, start), end - bisect_right(inside, end - 1))
