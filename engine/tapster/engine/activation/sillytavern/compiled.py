"""A book made ready for scanning: keys read, keywords in one index, entries that no key guards apart.

Source: style §6 "keyword scan".
"""

import math
from collections.abc import Callable, Generator, Sequence

import attrs

from tapster.engine import limits
from tapster.engine.formats.world_books import WorldBook
from tapster.engine.text.keyword_index import Keyword, KeywordIndex, compile_in_parts

from .decision import InactiveReason, ScanDecision
from .decorators import ACTIVATE
from .entry import MatchSource, ScanEntry, entry_of, read_entry
from .keys import ScanKey, read_key


@attrs.frozen
class EntryKeys:
    """The keys of one entry made ready."""

    primary: tuple[ScanKey, ...] = ()
    secondary: tuple[ScanKey, ...] = ()


@attrs.frozen(eq=False)
class CompiledScanBook:
    """A book with what can be known before any text; share it, cache it by book revision and the two defaults.

    Attributes:
        owners: for each keyword number, the indices of the entries that have it as a primary key.
        open_entries: indices of entries to be looked at whatever the text is.
        deepest: the largest scan depth an entry asks for itself, 0 when none does.
        sources: the extra texts some entry is matched against.
        lacks_order: some entry has no order.
        delay_levels: the recursion levels that entries wait for.
        misses: the decision on each entry when no primary key matches.
        always_scanned: whether nothing but its keys can keep an entry out.
    """

    name: str
    entries: tuple[ScanEntry, ...]
    case_sensitive: bool
    match_whole_words: bool
    keys: tuple[EntryKeys, ...]
    index: KeywordIndex
    owners: tuple[tuple[int, ...], ...]
    open_entries: tuple[int, ...]
    deepest: int
    sources: frozenset[MatchSource]
    lacks_order: bool
    delay_levels: frozenset[float]
    misses: tuple[ScanDecision, ...]
    always_scanned: tuple[bool, ...]

    def keyword(self, entry: ScanEntry, text: str) -> Keyword:
        """A plain key of an entry as something to look for."""
        return _keyword(entry, text, self.case_sensitive, self.match_whole_words)


def scan_entries(name: str, book: WorldBook, *, exact: bool) -> tuple[ScanEntry, ...]:
    """The entries of a book; the exact reading only exists for SillyTavern's own world files."""
    if exact and book.source.format == "sillytavern-world-info":
        return tuple(read_entry(name, entry.source.raw) for entry in book.entries)
    return tuple(entry_of(name, entry) for entry in book.entries)


def compile_scan_book(
    name: str, entries: Sequence[ScanEntry], *, case_sensitive: bool = False, match_whole_words: bool = False
) -> CompiledScanBook:
    """The compiled form of a book's entries."""
    parts = compile_scan_book_in_parts(
        name, entries, case_sensitive=case_sensitive, match_whole_words=match_whole_words
    )
    while True:
        try:
            next(parts)
        except StopIteration as done:
            compiled: CompiledScanBook = done.value
            return compiled


def compile_scan_book_in_parts(
    name: str, entries: Sequence[ScanEntry], *, case_sensitive: bool = False, match_whole_words: bool = False
) -> Generator[None, None, CompiledScanBook]:
    """The same, stopping between parts so that a caller can let others run."""
    numbers: dict[Keyword, int] = {}
    keys: list[EntryKeys] = []
    for index, entry in enumerate(entries):
        keys.append(_entry_keys(entry, case_sensitive, match_whole_words, numbers))
        if index % limits.ENTRIES_A_PART == limits.ENTRIES_A_PART - 1:
            yield
    index_of_keys = yield from compile_in_parts(tuple(numbers))
    owners: list[list[int]] = [[] for _ in numbers]
    for place, entry_keys in enumerate(keys):
        for number in {key.number for key in entry_keys.primary if key.number is not None}:
            owners[number].append(place)
    return CompiledScanBook(
        name,
        tuple(entries),
        case_sensitive,
        match_whole_words,
        tuple(keys),
        index_of_keys,
        tuple(map(tuple, owners)),
        tuple(place for place, entry in enumerate(entries) if _is_open(entry, keys[place])),
        max((entry.scan_depth or 0 for entry in entries), default=0),
        frozenset(source for entry in entries for source in entry.sources),
        any(math.isnan(entry.order) for entry in entries),
        frozenset(entry.delay_level for entry in entries if entry.delay_level),
        tuple(ScanDecision(entry, False, _miss(entry, keys[place])) for place, entry in enumerate(entries)),
        tuple(map(_is_always_scanned, entries)),
    )


def _entry_keys(
    entry: ScanEntry, case_sensitive: bool, match_whole_words: bool, numbers: dict[Keyword, int]
) -> EntryKeys:
    def keyword(text: str) -> Keyword:
        return _keyword(entry, text, case_sensitive, match_whole_words)

    def number_of(found: Keyword) -> int:
        return numbers.setdefault(found, len(numbers))

    read: Callable[[str], ScanKey] = lambda key: read_key(key, keyword, number_of)  # noqa: E731
    return EntryKeys(tuple(map(read, entry.keys or ())), tuple(map(read, entry.secondary_keys)))


def _keyword(entry: ScanEntry, text: str, case_sensitive: bool, match_whole_words: bool) -> Keyword:
    return Keyword(
        text,
        case_sensitive if entry.case_sensitive is None else entry.case_sensitive,
        match_whole_words if entry.whole_words is None else entry.whole_words,
    )


def _miss(entry: ScanEntry, keys: EntryKeys) -> InactiveReason:
    if entry.vectorized:
        return "needs_external_match"
    return "no_usable_key" if all(key.blank for key in keys.primary) else "no_key_match"


def _is_always_scanned(entry: ScanEntry) -> bool:
    return not (entry.disabled or entry.triggers or entry.filter or entry.delay or entry.delay_level or entry.cooldown)


def _is_open(entry: ScanEntry, keys: EntryKeys) -> bool:
    if entry.disabled:
        return False
    return entry.constant or ACTIVATE in entry.decorators or any(key.number is None and key.key for key in keys.primary)
