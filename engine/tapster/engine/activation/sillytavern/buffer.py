"""What is searched: chat messages, extra texts, injections, and the contents that recursion adds.

Each text is scanned once with a book's index; which texts an entry sees is decided when it is asked for. Regex keys and
keys with macros see the texts joined as SillyTavern joins them, a mark before each.

Source: the vectors' README, "Scanned text"; areas scan_depth, match_sources, scan_injects, recursion.
"""

from collections.abc import Callable, Iterable
from typing import TypeAlias

import attrs

from tapster.engine import limits
from tapster.engine.activation.keys import code_point
from tapster.engine.ecma import trim
from tapster.engine.text.keyword_index import Hits, Keyword, Span, find_keyword
from tapster.engine.text.ports import RegexEngine, ScriptBudgetExceeded

from .compiled import CompiledScanBook
from .decision import KeyPlace, PlaceKind
from .entry import SOURCES, MatchSource, ScanEntry
from .keys import SEGMENT_MARK, ScanKey, is_pattern, split_pattern
from .settings import ScanInput, ScanMessage

JOINER = "\n" + SEGMENT_MARK
Expand: TypeAlias = Callable[[str], str]


@attrs.frozen
class Segment:
    """One text of the buffer."""

    kind: PlaceKind
    label: int | str
    text: str
    lead: int = 0
    """Where it starts within the text that places refer to: trimmed blanks count up, a speaker's name counts down."""


@attrs.define(eq=False)
class _Reach:
    """What one book's index found so far: for each keyword the nearest message, and each other text by itself."""

    book: CompiledScanBook
    chat: dict[int, tuple[int, Span]] = attrs.field(factory=dict)
    sources: dict[MatchSource, Hits] = attrs.field(factory=dict)
    injections: dict[int, tuple[int, Span]] = attrs.field(factory=dict)
    recursion: dict[int, tuple[int, Span]] = attrs.field(factory=dict)
    touched: set[int] = attrs.field(factory=set)

    def note(self, into: dict[int, tuple[int, Span]], place: int, hits: Hits) -> None:
        for number, span in hits.items():
            if number not in into:
                into[number] = (place, span)
            self.touched.update(self.book.owners[number])


class ScanBuffer:
    """The texts of one scan and what the books' keys found in them."""

    def __init__(
        self, given: ScanInput, regex: RegexEngine | None, expand: Expand, checkpoint: Callable[[], None]
    ) -> None:
        self._regex = regex
        self._expand = expand
        self._checkpoint = checkpoint
        self._settings = given.settings
        count = len(given.messages)
        newest = given.messages[: -limits.MAX_SCAN_DEPTH - 1 : -1]
        self.chat = [_message(count - 1 - place, message) for place, message in enumerate(newest)]
        self.sources = {
            name: Segment("source", name, given.sources[name]) for name, _ in SOURCES if given.sources.get(name)
        }
        self.injections = [Segment("injection", each.label, each.text) for each in given.injections if each.text]
        self.recursion: list[Segment] = []
        self.skew = 0
        self._scanned = 0
        self._reaches = [_Reach(use.compiled) for use in given.books]
        self._texts: dict[tuple[int, tuple[MatchSource, ...], int], str] = {}
        for reach in self._reaches:
            for source in reach.book.sources & self.sources.keys():
                hits = reach.book.index.scan(self.sources[source].text)
                reach.sources[source] = hits
                reach.touched.update(place for number in hits for place in reach.book.owners[number])
            for place, segment in enumerate(self.injections):
                reach.note(reach.injections, place, reach.book.index.scan(segment.text))
        self._deepest = max((reach.book.deepest for reach in self._reaches), default=0)
        self._reach_down()

    @property
    def depth(self) -> int:
        """How many messages entries without a depth of their own see now."""
        return self._settings.depth + self.skew

    def advance(self) -> None:
        """Let one more message in."""
        self.skew += 1
        self._reach_down()

    def add_recursion(self, text: str) -> None:
        """Add the contents of a pass."""
        segment = Segment("recursion", len(self.recursion), text)
        self.recursion.append(segment)
        for reach in self._reaches:
            reach.note(reach.recursion, len(self.recursion) - 1, reach.book.index.scan(text))

    def touched(self, book: int) -> set[int]:
        """Indices of the entries of a book one of whose primary keys was seen somewhere."""
        return self._reaches[book].touched

    def find(self, book: int, entry: ScanEntry, key: ScanKey, *, recursion: bool) -> KeyPlace | None:
        """Where a key of an entry matches among the texts that the entry sees, or None."""
        if key.number is not None:
            return self._look_up(book, entry, key.key, key.number, recursion)
        if key.pattern is not None:
            return self._match(book, entry, key.key, trim(key.key), key.pattern, recursion)
        if key.blank:
            return self._blank(key.key) if key.key else None
        text = self._expand(key.key) if key.dynamic else ""
        if not text:
            return None
        return self.find_text(book, entry, trim(text), recursion=recursion, written=key.key)

    def find_text(
        self, book: int, entry: ScanEntry, text: str, *, recursion: bool, written: str | None = None
    ) -> KeyPlace | None:
        """The same for a key as text, taken as it is: not trimmed, macros not expanded."""
        name = text if written is None else written
        pattern = split_pattern(text)
        if pattern is not None:
            return self._match(book, entry, name, text, pattern, recursion)
        if not text:
            return self._blank(name)
        return self._plain(entry, name, self._reaches[book].book.keyword(entry, text), recursion)

    def _blank(self, key: str) -> KeyPlace | None:
        return None if self._settings.quirks == "repaired" else KeyPlace(key, "none", 0, 0, 0)

    def _reach_down(self) -> None:
        wanted = min(max(self.depth, self._deepest), len(self.chat))
        for place in range(self._scanned, wanted):
            self._checkpoint()
            for reach in self._reaches:
                reach.note(reach.chat, place, reach.book.index.scan(self.chat[place].text))
        self._scanned = max(self._scanned, wanted)

    def _depth_of(self, entry: ScanEntry) -> int:
        depth = self.depth if entry.scan_depth is None else entry.scan_depth
        return min(depth, limits.MAX_SCAN_DEPTH)

    def _look_up(self, book: int, entry: ScanEntry, key: str, number: int, recursion: bool) -> KeyPlace | None:
        depth = self._depth_of(entry)
        if depth <= 0:
            return None
        reach = self._reaches[book]
        seen = reach.chat.get(number)
        if seen is not None and seen[0] < depth:
            return _place(key, self.chat[seen[0]], seen[1])
        for source in entry.sources:
            span = reach.sources.get(source, {}).get(number)
            if span is not None:
                return _place(key, self.sources[source], span)
        seen = reach.injections.get(number)
        if seen is not None:
            return _place(key, self.injections[seen[0]], seen[1])
        seen = reach.recursion.get(number) if recursion else None
        return None if seen is None else _place(key, self.recursion[seen[0]], seen[1])

    def _segments(self, entry: ScanEntry, recursion: bool) -> Iterable[Segment]:
        yield from self.chat[: self._depth_of(entry)]
        for source in entry.sources:
            if source in self.sources:
                yield self.sources[source]
        yield from self.injections
        if recursion:
            yield from self.recursion

    def _plain(self, entry: ScanEntry, key: str, keyword: Keyword, recursion: bool) -> KeyPlace | None:
        if self._depth_of(entry) <= 0:
            return None
        if SEGMENT_MARK in keyword.text:
            span = find_keyword(keyword, self._text(entry, recursion))
            return None if span is None else self._locate(entry, key, span, recursion)
        for segment in self._segments(entry, recursion):
            span = find_keyword(keyword, segment.text)
            if span is not None:
                return _place(key, segment, span)
        return None

    def _match(
        self, book: int, entry: ScanEntry, key: str, text: str, pattern: tuple[str, str], recursion: bool
    ) -> KeyPlace | None:
        if self._regex is None:
            return None
        if not is_pattern(pattern, self._regex):
            return self._plain(entry, key, self._reaches[book].book.keyword(entry, text), recursion)
        searched = self._text(entry, recursion) if self._depth_of(entry) > 0 else ""
        try:
            found = self._regex.find(*pattern, searched)
        except ScriptBudgetExceeded:
            return None
        if found is None:
            return None
        span = (code_point(searched, found.start), code_point(searched, found.end))
        return self._locate(entry, key, span, recursion)

    def _text(self, entry: ScanEntry, recursion: bool) -> str:
        """The texts an entry sees, joined: a mark before each, a line feed between."""
        name = (self._depth_of(entry), entry.sources, len(self.recursion) if recursion else -1)
        if name not in self._texts:
            chat = JOINER.join(segment.text for segment in self.chat[: name[0]])
            others = [segment.text for segment in self._segments(entry, recursion) if segment.kind != "message"]
            self._texts[name] = JOINER.join((SEGMENT_MARK + chat, *others))
        return self._texts[name]

    def _locate(self, entry: ScanEntry, key: str, span: Span, recursion: bool) -> KeyPlace:
        """Which text a span of the joined texts starts in, and where."""
        start = len(SEGMENT_MARK)
        found = Segment("none", 0, "")
        offset = 0
        for segment in self._segments(entry, recursion):
            if found.kind != "none" and span[0] < start:
                break
            found, offset = segment, start
            start += len(segment.text) + len(JOINER)
        first, last = max(0, span[0] - offset), max(0, span[1] - offset)
        return _place(key, found, (min(first, len(found.text)), min(last, len(found.text))))


def _message(index: int, message: ScanMessage) -> Segment:
    head = "" if message.name is None else f"{message.name}: "
    text = head + message.text
    trimmed = trim(text)
    return Segment("message", index, trimmed, text.find(trimmed) - len(head) if trimmed else 0)


def _place(key: str, segment: Segment, span: Span) -> KeyPlace:
    return KeyPlace(key, segment.kind, segment.label, span[0] + segment.lead, span[1] + segment.lead)
