"""Whether an entry activates in one pass: the rules in SillyTavern's order.

Source: the recorded behaviour in st_world_info.jsonl.
"""

import enum
from collections.abc import Iterable, Mapping

import attrs

from tapster.engine.ecma import Json

from .buffer import ScanBuffer
from .compiled import CompiledScanBook
from .decision import ActiveReason, InactiveReason, KeyPlace
from .decorators import ACTIVATE, DONT_ACTIVATE
from .entry import AND_ALL, AND_ANY, NOT_ALL, NOT_ANY, ScanEntry
from .settings import ScanInput
from .timed import ActiveEffects


class ScanState(enum.IntEnum):
    """What a pass is for; the numbers are SillyTavern's."""

    NONE = 0
    INITIAL = 1
    RECURSION = 2
    MIN_ACTIVATIONS = 3


@attrs.frozen
class Verdict:
    """The outcome of one look at an entry."""

    active: bool
    reason: ActiveReason | InactiveReason
    details: tuple[tuple[str, Json], ...] = ()


@attrs.frozen(eq=False)
class Rules:
    """Everything verdicts depend on besides the entry and the pass."""

    given: ScanInput
    buffer: ScanBuffer
    effects: ActiveEffects
    forced: Mapping[str, ScanEntry]

    def barred(self, entry: ScanEntry, state: ScanState, level: float) -> Verdict | None:
        """The rule that keeps an entry out whatever its keys do, or None."""
        if entry.disabled:
            return Verdict(False, "disabled")
        if entry.triggers and self.given.trigger not in entry.triggers:
            details = (("wanted", list(entry.triggers)), ("trigger", self.given.trigger))
            return Verdict(False, "trigger", details)
        return self._filtered(entry) or self._timed(entry, state, level)

    def verdict(self, book: int, index: int, state: ScanState, level: float) -> Verdict:
        """Whether an entry activates now."""
        compiled = self.given.books[book].compiled
        entry = compiled.entries[index]
        barred = self.barred(entry, state, level)
        if barred is not None:
            return barred
        if ACTIVATE in entry.decorators:
            return Verdict(True, "decorator")
        if DONT_ACTIVATE in entry.decorators:
            return Verdict(False, "decorator")
        if entry.name in self.forced:
            return Verdict(True, "forced")
        if entry.constant:
            return Verdict(True, "constant")
        if self.effects.is_sticky(entry):
            return Verdict(True, "sticky")
        return self._by_keys(book, compiled, index, state != ScanState.MIN_ACTIVATIONS)

    def _filtered(self, entry: ScanEntry) -> Verdict | None:
        chosen = entry.filter
        if chosen is None:
            return None
        if chosen.names and (self.given.character_file in chosen.names) == chosen.exclude:
            details = (("names", list(chosen.names)), ("exclude", chosen.exclude))
            return Verdict(False, "character_filter", details)
        tags = self.given.character_tags
        if chosen.tags and tags is not None and bool(tags.intersection(chosen.tags)) == chosen.exclude:
            return Verdict(False, "tag_filter", (("tags", list(chosen.tags)), ("exclude", chosen.exclude)))
        return None

    def _timed(self, entry: ScanEntry, state: ScanState, level: float) -> Verdict | None:
        if self.effects.is_delayed(entry):
            return Verdict(False, "delay", (("delay", entry.delay), ("messages", self.effects.chat_length)))
        sticky = self.effects.is_sticky(entry)
        if sticky:
            return None
        if self.effects.is_cooling(entry):
            return Verdict(False, "cooldown")
        if entry.delay_level and (state != ScanState.RECURSION or entry.delay_level > level):
            return Verdict(False, "delay_until_recursion", (("level", entry.delay_level),))
        if state == ScanState.RECURSION and self.given.settings.recursive and entry.exclude_recursion:
            return Verdict(False, "exclude_recursion")
        return None

    def _by_keys(self, book: int, compiled: CompiledScanBook, index: int, recursion: bool) -> Verdict:
        entry, keys = compiled.entries[index], compiled.keys[index]
        if not any(self.buffer.find(book, entry, key, recursion=recursion) for key in keys.primary):
            return Verdict(False, compiled.misses[index].reason)
        if not entry.selective or not keys.secondary:
            return Verdict(True, "primary_key")
        found = (self.buffer.find(book, entry, key, recursion=recursion) is not None for key in keys.secondary)
        return Verdict(logic_passes(entry.logic, found), "secondary_keys")

    def places(self, book: int, index: int, *, recursion: bool) -> tuple[tuple[KeyPlace, ...], tuple[KeyPlace, ...]]:
        """Where every primary and every secondary key of an entry matches."""
        compiled = self.given.books[book].compiled
        entry, keys = compiled.entries[index], compiled.keys[index]
        primary = (self.buffer.find(book, entry, key, recursion=recursion) for key in keys.primary)
        secondary = (self.buffer.find(book, entry, key, recursion=recursion) for key in keys.secondary)
        return tuple(filter(None, primary)), tuple(filter(None, secondary))

    def seen(self, book: int) -> set[int]:
        """Indices of the entries of a book one of whose primary keys stands in any text, seen by them or not."""
        return self.buffer.touched(book)

    def score(self, book: int, entry: ScanEntry, *, recursion: bool) -> int:
        """How many keys of an entry match; only positive logic counts secondary ones."""
        keys = entry.keys or ()
        primary = self._count(book, entry, keys, recursion)
        total = len(entry.secondary_keys)
        if not keys or not total or entry.logic not in (AND_ANY, AND_ALL):
            return primary
        secondary = self._count(book, entry, entry.secondary_keys, recursion)
        return primary + secondary if entry.logic == AND_ANY or secondary == total else primary

    def _count(self, book: int, entry: ScanEntry, keys: Iterable[str], recursion: bool) -> int:
        return sum(self.buffer.find_text(book, entry, key, recursion=recursion) is not None for key in keys)


def logic_passes(logic: Json, found: Iterable[bool]) -> bool:
    """Whether a secondary logic is satisfied; stops looking as soon as it knows."""
    if logic == AND_ANY:
        return any(found)
    if logic == NOT_ALL:
        return not all(found)
    if logic == NOT_ANY:
        return not any(found)
    return logic == AND_ALL and all(found)
