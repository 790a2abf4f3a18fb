"""A world book made ready to be matched often: ranks, the keyword index, and the verdicts that no text changes.

An entry none of whose keys is in the text always gets the same verdict, so it is made once. A run only looks at the
entries whose keys were hit, and at the few that can activate without a plain key.

Source: spec/activation §5.1.
"""

from collections.abc import Generator
from functools import cached_property

import attrs

from tapster.engine import limits
from tapster.engine.errors import SourceError
from tapster.engine.formats.world_books import WorldBook, WorldBookEntry
from tapster.engine.text.keyword_index import Keyword, KeywordIndex, compile_in_parts

from .candidate import Candidate
from .decision import Decision
from .evaluate import EntryPlan, Evaluation, MatchDefaults, evaluate_plan, plan_entry
from .options import uid_text


class RuntimeEntryLimit(SourceError):
    """A book has more entries than one run may inspect."""

    code = "WORLD_BOOK_RUNTIME_ENTRY_LIMIT"


@attrs.frozen(eq=False)
class CompiledBook:
    """A book with what can be known before any text; share it, cache it by book revision and defaults.

    Attributes:
        ranks: the rank of each entry, by its index.
        plans: the keys of each entry, numbered as in the index.
        owners: for each keyword number, the indices of the entries that have it.
        open_entries: indices of entries that must be looked at whatever the text is.
        untouched: the outcome of each entry when none of its keys is in the text.
    """

    book: WorldBook
    defaults: MatchDefaults
    index: KeywordIndex
    plans: tuple[EntryPlan, ...]
    owners: tuple[tuple[int, ...], ...]
    ranks: tuple[int, ...]
    open_entries: tuple[int, ...]
    untouched: tuple[Candidate, ...]

    @cached_property
    def untouched_texts(self) -> tuple[str, ...]:
        """The JSON of the decision on each entry when no text touches it, from behind its resource id on."""
        return tuple(Decision.rejected("", candidate).text_behind_resource_id() for candidate in self.untouched)


def candidate_key(entry: WorldBookEntry, index: int) -> str:
    """The name of an entry within its book."""
    return f"{entry.source.key or uid_text(entry.uid) or 'entry'}@{index}"


def compile_book(book: WorldBook, defaults: MatchDefaults | None = None) -> CompiledBook:
    """The compiled form of a book.

    Raises:
        RuntimeEntryLimit: the book has over 10,000 entries.
    """
    parts = compile_book_in_parts(book, defaults)
    while True:
        try:
            next(parts)
        except StopIteration as done:
            compiled: CompiledBook = done.value
            return compiled


def compile_book_in_parts(
    book: WorldBook, defaults: MatchDefaults | None = None
) -> Generator[None, None, CompiledBook]:
    """The same, stopping between parts so that a caller can let others run."""
    defaults = defaults or MatchDefaults()
    if len(book.entries) > limits.MAX_RUNTIME_ENTRIES:
        raise RuntimeEntryLimit(f"the book has {len(book.entries)} entries, over {limits.MAX_RUNTIME_ENTRIES}")
    numbers: dict[Keyword, int] = {}
    plans = []
    owners: list[list[int]] = []
    open_entries = []
    untouched = []
    for index, entry in enumerate(book.entries):
        plan = plan_entry(entry, defaults, lambda keyword: numbers.setdefault(keyword, len(numbers)))
        plans.append(plan)
        _own(owners, plan, index)
        if entry.enabled and (entry.constant or entry.vectorized or _runs_regex(plan)):
            open_entries.append(index)
        evaluation = _without_hits(entry, plan)
        untouched.append(Candidate(candidate_key(entry, index), entry, evaluation, evaluation.reason))
        if index % limits.ENTRIES_A_PART == limits.ENTRIES_A_PART - 1:
            yield
    keyword_index = yield from compile_in_parts(tuple(numbers))
    order = sorted(range(len(book.entries)), key=lambda index: -book.entries[index].insertion_order)
    ranks = [0] * len(order)
    for rank, index in enumerate(order):
        ranks[index] = rank
    return CompiledBook(
        book,
        defaults,
        keyword_index,
        tuple(plans),
        tuple(map(tuple, owners)),
        tuple(ranks),
        tuple(open_entries),
        tuple(untouched),
    )


def _own(owners: list[list[int]], plan: EntryPlan, index: int) -> None:
    """Note an entry as an owner of each of its keywords; a new keyword has the next number."""
    for key in (*plan.primary, *plan.secondary):
        if key.number is not None:
            while len(owners) <= key.number:
                owners.append([])
            if index not in owners[key.number][-1:]:
                owners[key.number].append(index)


def _runs_regex(plan: EntryPlan) -> bool:
    return any(key.regex is not None for key in (*plan.primary, *plan.secondary))


def _without_hits(entry: WorldBookEntry, plan: EntryPlan) -> Evaluation:
    """The verdict when no key is in the text; keys that are never used are reported all the same."""
    static = EntryPlan(
        tuple(key for key in plan.primary if key.regex is None),
        tuple(key for key in plan.secondary if key.regex is None),
    )
    return evaluate_plan(entry, static, {}, "")
