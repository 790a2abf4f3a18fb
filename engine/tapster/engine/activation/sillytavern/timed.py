"""Sticky, cooldown and delay: what earlier turns left behind, as a value in and a value out.

Source: the recorded behaviour in st_world_info.jsonl, area timed_effects.
"""

from collections.abc import Iterable, Mapping
from typing import Literal

import attrs

from tapster.engine.ecma import Json, is_number

from .entry import ScanEntry

Effect = Literal["sticky", "cooldown"]


@attrs.frozen
class TimedEffect:
    """One stored effect: it holds while the chat is longer than ``start`` and shorter than ``end`` messages.

    A protected one also survives a chat that has not advanced.
    """

    hash: int
    start: int
    end: float
    protected: bool = False

    def to_json(self) -> Json:
        """The effect in SillyTavern's names."""
        return attrs.asdict(self)


@attrs.frozen
class TimedState:
    """The effects of a chat by entry name."""

    sticky: Mapping[str, TimedEffect] = attrs.field(factory=dict)
    cooldown: Mapping[str, TimedEffect] = attrs.field(factory=dict)

    def to_json(self) -> Json:
        """The state in the shape of SillyTavern's chat metadata, to be stored with a turn."""
        return {
            "sticky": {name: effect.to_json() for name, effect in self.sticky.items()},
            "cooldown": {name: effect.to_json() for name, effect in self.cooldown.items()},
        }

    @classmethod
    def from_json(cls, value: Json) -> "TimedState":
        """The state as it was stored; what is no effect is left out."""
        return cls(_effects(value, "sticky"), _effects(value, "cooldown"))


@attrs.frozen
class ActiveEffects:
    """What holds during one scan: by effect, the hashes of the entries by their names; delay is asked for each."""

    sticky: Mapping[str, frozenset[int]] = attrs.field(factory=dict)
    cooldown: Mapping[str, frozenset[int]] = attrs.field(factory=dict)
    chat_length: int = 0

    def is_sticky(self, entry: ScanEntry) -> bool:
        """Whether an entry is kept in by an earlier turn."""
        return entry.name in self.sticky and entry.hash in self.sticky[entry.name]

    def is_cooling(self, entry: ScanEntry) -> bool:
        """Whether an entry is kept out by an earlier turn."""
        return entry.name in self.cooldown and entry.hash in self.cooldown[entry.name]

    def is_delayed(self, entry: ScanEntry) -> bool:
        """Whether the chat is still too short for an entry."""
        return bool(entry.delay) and self.chat_length < entry.delay


def _effects(value: Json, effect: Effect) -> dict[str, TimedEffect]:
    stored = value.get(effect) if isinstance(value, dict) else None
    if not isinstance(stored, dict):
        return {}
    return {
        name: TimedEffect(item["hash"], item["start"], item["end"], item.get("protected") is True)
        for name, item in stored.items()
        if isinstance(item, dict) and all(is_number(item.get(member)) for member in ("hash", "start", "end"))
    }


def effect_of(entry: ScanEntry, chat_length: int, effect: Effect, *, protected: bool = False) -> TimedEffect:
    """The effect an entry leaves that activates at a chat length."""
    return TimedEffect(entry.hash, chat_length, chat_length + getattr(entry, effect), protected)


def check_effects(
    state: TimedState, entries: Iterable[ScanEntry], chat_length: int
) -> tuple[ActiveEffects, TimedState]:
    """What holds now, and the state without what has ended; a sticky that ends starts its entry's cooldown."""
    if not state.sticky and not state.cooldown:
        return ActiveEffects(chat_length=chat_length), state
    by_hash: dict[int, ScanEntry] = {}
    for entry in entries:
        if entry.is_timed and (entry.name in state.sticky or entry.name in state.cooldown):
            by_hash.setdefault(entry.hash, entry)
    sticky, kept_sticky, ended = _check("sticky", state.sticky, by_hash, chat_length)
    cooldowns = dict(state.cooldown)
    started: dict[str, frozenset[int]] = {}
    for entry in ended:
        if entry.cooldown:
            cooldowns[entry.name] = effect_of(entry, chat_length, "cooldown", protected=True)
            started[entry.name] = frozenset({entry.hash})
    cooling, kept_cooldown, _ = _check("cooldown", cooldowns, by_hash, chat_length)
    return ActiveEffects(sticky, started | cooling, chat_length), TimedState(kept_sticky, kept_cooldown)


def store_effects(state: TimedState, activated: Iterable[ScanEntry], chat_length: int) -> TimedState:
    """The state after a turn: entries that activated and have no effect running leave one."""
    sticky, cooldown = dict(state.sticky), dict(state.cooldown)
    for entry in activated:
        if entry.sticky and entry.name not in sticky:
            sticky[entry.name] = effect_of(entry, chat_length, "sticky")
        if entry.cooldown and entry.name not in cooldown:
            cooldown[entry.name] = effect_of(entry, chat_length, "cooldown")
    return TimedState(sticky, cooldown)


def _check(
    effect: Effect, stored: Mapping[str, TimedEffect], by_hash: Mapping[int, ScanEntry], chat_length: int
) -> tuple[dict[str, frozenset[int]], dict[str, TimedEffect], list[ScanEntry]]:
    """Entries that it holds for, what stays stored, and entries whose effect has just run out."""
    active: dict[str, frozenset[int]] = {}
    kept: dict[str, TimedEffect] = {}
    ended: list[ScanEntry] = []
    for name, value in stored.items():
        if chat_length <= value.start and not value.protected:
            continue
        entry = by_hash.get(value.hash)
        over = chat_length >= value.end
        if entry is None:
            if not over:
                kept[name] = value
        elif getattr(entry, effect):
            if over:
                ended.append(entry)
            else:
                kept[name] = value
                active[entry.name] = active.get(entry.name, frozenset()) | {entry.hash}
    return active, kept, ended
