"""Whether one entry is eligible, by which rule, and with which keys.

Source: spec/activation §5.3.
"""

from collections.abc import Callable

import attrs

from tapster.engine.activation.keys import (
    InvalidKey,
    KeyHit,
    KeyRules,
    KeySet,
    PlainKey,
    RefusedKey,
    RegexKey,
    match_regex,
    parse_key,
)
from tapster.engine.formats.world_books import WorldBookEntry
from tapster.engine.text.keyword_index import Hits, Keyword, find_keyword
from tapster.engine.text.ports import RegexEngine


@attrs.frozen
class Evaluation:
    """The verdict on one entry and every key that matched, in the entry's order."""

    eligible: bool
    reason: str
    score: int = 0
    primary: tuple[KeyHit, ...] = ()
    secondary: tuple[KeyHit, ...] = ()
    invalid_keys: tuple[InvalidKey, ...] = ()

    @property
    def primary_matches(self) -> list[str]:
        """The primary keys that matched."""
        return [hit.key for hit in self.primary]

    @property
    def secondary_matches(self) -> list[str]:
        """The secondary keys that matched."""
        return [hit.key for hit in self.secondary]


@attrs.frozen
class MatchDefaults:
    """What an entry that says nothing about case, whole words or regex keys gets."""

    case_sensitive: bool = False
    match_whole_words: bool = False
    rules: KeyRules = attrs.field(factory=KeyRules)

    def case_of(self, entry: WorldBookEntry) -> bool:
        """Whether an entry's keys are compared with case."""
        return self.case_sensitive if entry.case_sensitive is None else entry.case_sensitive

    def whole_words_of(self, entry: WorldBookEntry) -> bool:
        """Whether an entry's keys match whole words only."""
        return self.match_whole_words if entry.match_whole_words is None else entry.match_whole_words

    def keyword(self, entry: WorldBookEntry, key: str) -> Keyword:
        """A plain key of an entry as something to look for."""
        return Keyword(key, self.case_of(entry), self.whole_words_of(entry))


@attrs.frozen
class KeyPlan:
    """One key made ready: the number of its keyword, or the pattern to run, or why it is not used."""

    key: str
    number: int | None = None
    regex: RegexKey | None = None
    code: str | None = None


@attrs.frozen
class EntryPlan:
    """The keys of one entry made ready."""

    primary: tuple[KeyPlan, ...]
    secondary: tuple[KeyPlan, ...]


def plan_entry(entry: WorldBookEntry, defaults: MatchDefaults, number_of: Callable[[Keyword], int]) -> EntryPlan:
    """The plan of an entry; ``number_of`` gives each keyword its number."""

    def plan(key: str) -> KeyPlan:
        parsed = parse_key(key, defaults.rules)
        if isinstance(parsed, PlainKey):
            return KeyPlan(key, number=number_of(defaults.keyword(entry, key)))
        if isinstance(parsed, RegexKey):
            return KeyPlan(key, regex=parsed)
        return KeyPlan(key, code=parsed.code if isinstance(parsed, RefusedKey) else None)

    return EntryPlan(tuple(map(plan, entry.keys)), tuple(map(plan, entry.secondary_keys)))


def evaluate_entry(
    entry: WorldBookEntry,
    text: str,
    defaults: MatchDefaults | None = None,
    *,
    vector_matched: bool = False,
    regex: RegexEngine | None = None,
) -> Evaluation:
    """The verdict on one entry by itself.

    Args:
        entry: the entry.
        text: the scan text.
        defaults: case, whole words and regex rules of the run.
        vector_matched: whether an external matcher confirmed a vectorised entry.
        regex: runs regex keys, where the rules allow them.
    """
    numbers: dict[Keyword, int] = {}
    plan = plan_entry(entry, defaults or MatchDefaults(), lambda keyword: numbers.setdefault(keyword, len(numbers)))
    found = ((number, find_keyword(keyword, text)) for keyword, number in numbers.items())
    hits = {number: span for number, span in found if span is not None}
    return evaluate_plan(entry, plan, hits, text, vector_matched=vector_matched, regex=regex)


def evaluate_plan(
    entry: WorldBookEntry,
    plan: EntryPlan,
    hits: Hits,
    text: str,
    *,
    vector_matched: bool = False,
    regex: RegexEngine | None = None,
) -> Evaluation:
    """The verdict on a planned entry, its plain keys already looked up; a disabled entry's keys are not."""
    if not entry.enabled:
        return Evaluation(False, "disabled")
    invalid: list[InvalidKey] = []
    primary = _match(plan.primary, "primary", hits, text, regex, invalid)
    secondary = _match(plan.secondary, "secondary", hits, text, regex, invalid)
    eligible, reason, score = verdict(entry, len(primary), len(secondary), vector_matched)
    return Evaluation(eligible, reason, score, primary, secondary, tuple(invalid))


def _match(
    keys: tuple[KeyPlan, ...],
    key_set: KeySet,
    hits: Hits,
    text: str,
    regex: RegexEngine | None,
    invalid: list[InvalidKey],
) -> tuple[KeyHit, ...]:
    found = []
    for plan in keys:
        code, span = plan.code, None
        if plan.number is not None:
            span = hits.get(plan.number)
        elif plan.regex is not None:
            match = match_regex(plan.regex, text, regex)
            code, span = match.code, match.span
        if span is not None:
            found.append(KeyHit(plan.key, *span))
        if code is not None:
            invalid.append(InvalidKey(plan.key, key_set, code))
    return tuple(found)


def verdict(entry: WorldBookEntry, primary: int, secondary: int, vector_matched: bool) -> tuple[bool, str, int]:
    """Eligible, reason and score of an enabled entry for so many matched keys: the first rule that applies."""
    if entry.constant:
        return True, "constant", max(1, primary)
    if entry.vectorized:
        if not vector_matched:
            return False, "external-vector-match-required", 0
        return True, "vector-match", max(1, primary)
    if not primary:
        return False, "primary-key-miss", 0
    if not entry.selective or not entry.secondary_keys:
        return True, "primary-key-match", primary
    logic = entry.selective_logic
    passed = logic_passes(logic, secondary, len(entry.secondary_keys))
    score = primary + secondary if passed and logic.startswith("and_") else primary
    return passed, f"secondary-{logic}-{'match' if passed else 'miss'}", score


def logic_passes(logic: str, matched: int, total: int) -> bool:
    """Whether a secondary logic is satisfied when so many of the secondary keys matched."""
    if logic == "and_all":
        return matched == total
    if logic == "not_any":
        return matched == 0
    if logic == "not_all":
        return matched < total
    return matched > 0


PRODUCT_MATCHING = MatchDefaults(rules=KeyRules(allow_unsafe_regex=True))
"""What the product uses: regex keys are on, for every pattern runs under a budget (spec/README, last point)."""
