"""An entry as SillyTavern's scanner sees it.

Two readings: the exact one takes the JSON of a world file as it stands, where an absent ``selective`` or
``useProbability`` counts as off; the other takes the normalised model, where absent fields have their usual values.

Source: the recorded behaviour in st_world_info.jsonl.
"""

import math
from collections.abc import Mapping
from typing import Literal, TypeAlias

import attrs

from tapster.engine.ecma import Json, is_number, is_safe_integer, stringify, to_number
from tapster.engine.formats.world_books import WorldBookEntry
from tapster.engine.text.string_hash import string_hash

from .decorators import split_decorators

MatchSource: TypeAlias = Literal[
    "persona_description",
    "character_description",
    "character_personality",
    "character_depth_prompt",
    "scenario",
    "creator_notes",
]
SOURCES: tuple[tuple[MatchSource, str], ...] = (
    ("persona_description", "matchPersonaDescription"),
    ("character_description", "matchCharacterDescription"),
    ("character_personality", "matchCharacterPersonality"),
    ("character_depth_prompt", "matchCharacterDepthPrompt"),
    ("scenario", "matchScenario"),
    ("creator_notes", "matchCreatorNotes"),
)
"""The extra texts an entry may be matched against, in scanning order, with their names in a world file."""
AND_ANY, NOT_ALL, NOT_ANY, AND_ALL = range(4)
LOGICS = ("and_any", "not_all", "not_any", "and_all")
DEFAULT_DEPTH = 4
POSITIONS = (
    "before_character_definition",
    "after_character_definition",
    "before_author_note",
    "after_author_note",
    "at_depth",
    "before_example_messages",
    "after_example_messages",
    "outlet",
)
_ROLES = ("system", "user", "assistant")


@attrs.frozen
class EntryFilter:
    """The characters an entry is limited to, or kept from (``exclude``): file names and tag ids."""

    names: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    exclude: bool = False


@attrs.frozen
class ScanEntry:
    """One entry, ready to be scanned for.

    Attributes:
        name: ``<world>.<uid>``, how a scan refers to it.
        keys: primary keys as written; None when the file has no list of them.
        decorators: the decorator lines that were stripped from the content.
        delay_level: 0 is not delayed; a delayed entry waits for recursion of this level.
        probability: in percent.
        hash_text: what identifies the entry's present state to a stored timed effect.
    """

    world: str
    uid: int | str
    name: str
    keys: tuple[str, ...] | None = None
    secondary_keys: tuple[str, ...] = ()
    comment: str = ""
    content: str = ""
    decorators: tuple[str, ...] = ()
    disabled: bool = False
    constant: bool = False
    selective: bool = True
    vectorized: bool = False
    logic: Json = AND_ANY
    order: float = 100
    position: Json = 0
    depth: int | None = None
    role: int | None = None
    outlet: str = ""
    probability: float = 100
    use_probability: bool = True
    group: str = ""
    group_override: bool = False
    group_weight: float = 100
    group_scoring: bool | None = None
    scan_depth: int | None = None
    case_sensitive: bool | None = None
    whole_words: bool | None = None
    exclude_recursion: bool = False
    prevent_recursion: bool = False
    delay_level: float = 0
    sticky: float = 0
    cooldown: float = 0
    delay: float = 0
    ignore_budget: bool = False
    sources: tuple[MatchSource, ...] = ()
    triggers: tuple[str, ...] = ()
    filter: EntryFilter | None = None
    hash_text: str = attrs.field(default="", repr=False)

    @property
    def is_timed(self) -> bool:
        """Whether it can leave a timed effect behind."""
        return bool(self.sticky or self.cooldown)

    @property
    def hash(self) -> int:
        """The number by which a stored effect knows this entry unchanged."""
        return string_hash(self.hash_text)


def read_entry(world: str, raw: Mapping[str, Json]) -> ScanEntry:
    """The exact reading of an entry of a world file."""
    decorators, content = split_decorators(_text(raw.get("content")))
    uid: Json = raw.get("uid")
    keys: Json = raw.get("key")
    return ScanEntry(
        world=world,
        uid=uid,
        name=f"{world}.{uid}",
        keys=tuple(map(_text, keys)) if isinstance(keys, list) else None,
        secondary_keys=_texts(raw.get("keysecondary")),
        comment=_text(raw.get("comment")),
        content=content,
        decorators=decorators,
        disabled=bool(raw.get("disable")),
        constant=bool(raw.get("constant")),
        selective=bool(raw.get("selective")),
        vectorized=bool(raw.get("vectorized")),
        logic=AND_ANY if raw.get("selectiveLogic") is None else raw["selectiveLogic"],
        order=_number(raw["order"]) if raw.get("order") is not None else math.nan,
        position=raw.get("position"),
        depth=_maybe_number(raw.get("depth")),
        role=_maybe_number(raw.get("role")),
        outlet=_text(raw.get("outletName")),
        probability=_number(raw.get("probability")),
        use_probability=bool(raw.get("useProbability")),
        group=_text(raw.get("group")),
        group_override=bool(raw.get("groupOverride")),
        group_weight=100 if raw.get("groupWeight") is None else _number(raw["groupWeight"]),
        group_scoring=_maybe_bool(raw.get("useGroupScoring")),
        scan_depth=_maybe_number(raw.get("scanDepth")),
        case_sensitive=_maybe_bool(raw.get("caseSensitive")),
        whole_words=_maybe_bool(raw.get("matchWholeWords")),
        exclude_recursion=bool(raw.get("excludeRecursion")),
        prevent_recursion=bool(raw.get("preventRecursion")),
        delay_level=_number(raw.get("delayUntilRecursion")),
        sticky=_number(raw.get("sticky")),
        cooldown=_number(raw.get("cooldown")),
        delay=_number(raw.get("delay")),
        ignore_budget=bool(raw.get("ignoreBudget")),
        sources=tuple(source for source, member in SOURCES if raw.get(member)),
        triggers=_texts(raw.get("triggers")),
        filter=_filter(raw.get("characterFilter")),
        hash_text=_hash_text(world, raw, decorators, content),
    )


def entry_of(world: str, entry: WorldBookEntry) -> ScanEntry:
    """The reading of a normalised entry, of a world file or of a card's book."""
    decorators, content = split_decorators(entry.content)
    delay: Json = entry.recursion.delay_until
    chosen = entry.character_filter
    return ScanEntry(
        world=world,
        uid=entry.uid,
        name=f"{world}.{entry.uid}",
        keys=entry.keys,
        secondary_keys=entry.secondary_keys,
        comment=entry.comment,
        content=content,
        decorators=decorators,
        disabled=not entry.enabled,
        constant=entry.constant,
        selective=entry.selective,
        vectorized=entry.vectorized,
        logic=LOGICS.index(entry.selective_logic),
        order=entry.insertion_order,
        position=POSITIONS.index(entry.position),
        depth=entry.depth,
        role=_ROLES.index(entry.role),
        outlet=entry.outlet_name,
        probability=entry.probability,
        use_probability=entry.use_probability,
        group=entry.group.name,
        group_override=entry.group.override,
        group_weight=entry.group.weight,
        group_scoring=entry.use_group_scoring,
        scan_depth=entry.scan_depth,
        case_sensitive=entry.case_sensitive,
        whole_words=entry.match_whole_words,
        exclude_recursion=entry.recursion.exclude,
        prevent_recursion=entry.recursion.prevent,
        delay_level=_number(delay),
        sticky=entry.effects.sticky or 0,
        cooldown=entry.effects.cooldown or 0,
        delay=entry.effects.delay or 0,
        ignore_budget=entry.ignore_budget,
        sources=tuple(source for source, _ in SOURCES if getattr(entry.match_sources, source)),
        triggers=entry.triggers,
        filter=None if chosen is None else EntryFilter(chosen.names, chosen.tags, chosen.is_exclude),
        hash_text=_hash_text(world, {**entry.source.raw, "uid": entry.uid}, decorators, content),
    )


def _hash_text(world: str, raw: Mapping[str, Json], decorators: tuple[str, ...], content: str) -> str:
    """The JSON SillyTavern hashes: uid, world, the other members as in the file, decorators.

    Only entries that leave timed effects are ever asked for it.
    """
    if not raw.get("sticky") and not raw.get("cooldown") and not _has_extension_effect(raw):
        return ""
    rest = {key: value for key, value in raw.items() if key not in ("uid", "world")}
    return stringify(
        {"uid": raw.get("uid"), "world": world, **rest, "decorators": list(decorators), "content": content}
        if "content" not in rest
        else {"uid": raw.get("uid"), "world": world, **rest, "content": content, "decorators": list(decorators)}
    )


def _has_extension_effect(raw: Mapping[str, Json]) -> bool:
    extensions = raw.get("extensions")
    return isinstance(extensions, dict) and bool(extensions.get("sticky") or extensions.get("cooldown"))


def _filter(value: Json) -> EntryFilter | None:
    if not isinstance(value, dict):
        return None
    return EntryFilter(_texts(value.get("names")), _texts(value.get("tags")), bool(value.get("isExclude")))


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _texts(value: Json) -> tuple[str, ...]:
    return tuple(map(_text, value)) if isinstance(value, list) else ()


def _number(value: Json) -> float:
    """A member as JavaScript's arithmetic takes it; what is no number counts as 0."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str):
        return to_number(value) or 0
    return value if is_number(value) else 0


def _maybe_number(value: Json) -> int | None:
    return int(value) if is_safe_integer(value) else None


def _maybe_bool(value: Json) -> bool | None:
    return None if value is None else bool(value)
