"""JavaScript regular expressions: a linear-time fast path, the exact engine for the rest.

A pattern goes to RE2 only where it provably means the same there and the text allows it (see ``re2_translation``);
otherwise, and when the work could grow with the square of the text, the engine that was passed in answers within its
time budget.
"""

import functools
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol, runtime_checkable

import attrs
import re2

from tapster.engine.ecma import has_astral
from tapster.engine.limits import REGEX_FAST_MEMORY_BYTES, REGEX_FAST_SCAN_UNITS

from .ports import RegexEngine, RegexMatch
from .re2_translation import Translation, translate

_NO_SPAN = (-1, -1)
_NO_NAMES: Mapping[str, str | None] = MappingProxyType({})


@functools.lru_cache(maxsize=4096)
def _compiled(pattern: str) -> "re2._Regexp | None":
    options = re2.Options()
    options.log_errors = False
    options.max_mem = REGEX_FAST_MEMORY_BYTES
    try:
        return re2.compile(pattern.encode(), options)
    except re2.error:
        return None


@attrs.frozen
class _Subject:
    """A text with what decides whether and how the fast path may search it."""

    text: str
    data: bytes
    ascii: bool
    astral: bool
    plain_line_ends: bool


@functools.lru_cache(maxsize=4)
def _subject(text: str) -> _Subject | None:
    try:
        data = text.encode()
    except UnicodeEncodeError:
        return None  # lone surrogates
    ascii_only = len(data) == len(text)
    astral = not ascii_only and has_astral(text)
    plain = "\r" not in text and (ascii_only or ("\u2028" not in text and "\u2029" not in text))
    return _Subject(text, data, ascii_only, astral, plain)


class _Search:
    """One pattern over one text: byte spans into matches, offsets in UTF-16 units."""

    def __init__(self, regex: "re2._Regexp", translation: Translation, subject: _Subject) -> None:
        self.regex = regex
        self.translation = translation
        self.subject = subject
        self.byte = 0
        self.unit = 0

    def units_at(self, byte: int) -> int:
        """The UTF-16 offset of a byte offset that is not before the last one asked for."""
        piece = self.subject.data[self.byte : byte].decode()
        self.unit += len(piece) + (sum(character > "\uffff" for character in piece) if self.subject.astral else 0)
        self.byte = byte
        return self.unit

    def match(self, spans: Sequence[tuple[int, int]]) -> RegexMatch:
        data = self.subject.data
        start, end = spans[0]
        groups = tuple([None if pair == _NO_SPAN else data[pair[0] : pair[1]].decode() for pair in spans[1:]])
        names = self.translation.group_names
        named = {name: groups[index - 1] for name, index in names} if names else _NO_NAMES
        if self.subject.ascii:
            return RegexMatch(start, end, self.subject.text[start:end], groups, named)
        first = self.units_at(start)
        return RegexMatch(first, self.units_at(end), data[start:end].decode(), groups, named)


@runtime_checkable
class LimitsRequests(Protocol):
    """An engine that can bound what all patterns of one request cost together."""

    def for_request(self) -> RegexEngine:
        """An engine for one request."""


def per_request(engine: RegexEngine) -> RegexEngine:
    """The engine for one request: its slow patterns together cost an allowance, not the sum of their budgets."""
    return engine.for_request() if isinstance(engine, LimitsRequests) else engine


class FastRegexEngine:
    """A ``RegexEngine`` that answers what it can in linear time and hands the rest on."""

    def __init__(self, exact: RegexEngine) -> None:
        self._exact = exact

    def for_request(self) -> "FastRegexEngine":
        """The same engine with an allowance for all patterns of one request together."""
        return FastRegexEngine(per_request(self._exact))

    def check(self, pattern: str, flags: str) -> None:
        """Compile only; see ``RegexEngine.check``."""
        if translate(pattern, flags) is None:
            self._exact.check(pattern, flags)

    def find(self, pattern: str, flags: str, text: str, *, owner: str = "") -> RegexMatch | None:
        """The first match; see ``RegexEngine.find``."""
        search = fast_search(pattern, flags, text)
        if search is None:
            return self._exact.find(pattern, flags, text, owner=owner)
        spans = next(_spans(search), None)
        return search.match(spans) if spans is not None else None

    def find_all(self, pattern: str, flags: str, text: str, *, owner: str = "") -> Sequence[RegexMatch]:
        """Every match; see ``RegexEngine.find_all``."""
        search = fast_search(pattern, flags, text)
        if search is None:
            return self._exact.find_all(pattern, flags, text, owner=owner)
        found: list[RegexMatch] = []
        scanned = 0
        for spans in _spans(search):
            found.append(search.match(spans))
            scanned += 0 if search.translation.bounded else len(search.subject.data) - spans[0][1]
            if scanned > REGEX_FAST_SCAN_UNITS:
                return self._exact.find_all(pattern, flags, text, owner=owner)
        return found


def fast_search(pattern: str, flags: str, text: str) -> _Search | None:
    """The search to run on the fast path, or None when pattern or text need the exact engine."""
    translation = translate(pattern, flags)
    if translation is None:
        return None
    subject = _subject(text)
    if subject is None or (subject.astral and not translation.astral_safe):
        return None
    if translation.plain_line_ends and not subject.plain_line_ends:
        return None
    regex = _compiled(translation.pattern)
    return None if regex is None else _Search(regex, translation, subject)


def _spans(search: _Search) -> Iterator[Sequence[tuple[int, int]]]:
    """The byte spans of every match; after an empty one the search moves on by one character."""
    regex = search.regex
    data = search.subject.data
    count = search.translation.group_count + 1
    if not search.translation.nullable:
        groups = range(1, count)
        for match in regex.finditer(data):
            yield [match.span(), *[match.span(index) for index in groups]]
        return
    position = 0
    while position <= len(data):
        match = regex.search(data, position)
        if match is None:
            return
        spans = [match.span(index) for index in range(count)]
        yield spans
        start, end = spans[0]
        position = end if end > start else _next_character(data, end)


def _next_character(data: bytes, position: int) -> int:
    position += 1
    while position < len(data) and data[position] & 0xC0 == 0x80:
        position += 1
    return position
