"""Where each field of an entry lives in the two formats: one table for reading and writing.

Source: spec/resources §6.3.
"""

from collections.abc import Mapping
from typing import Literal

import attrs

from .model import Position, Role, SelectiveLogic

Kind = Literal["boolean", "string", "strings", "number", "position", "role", "logic", "raw"]

POSITIONS: tuple[Position, ...] = (
    "before_character_definition",
    "after_character_definition",
    "before_author_note",
    "after_author_note",
    "at_depth",
    "before_example_messages",
    "after_example_messages",
    "outlet",
)
ROLES: tuple[Role, ...] = ("system", "user", "assistant")
LOGICS: tuple[SelectiveLogic, ...] = ("and_any", "not_all", "not_any", "and_all")
POSITION_NAMES: Mapping[str, Position] = {
    **{name: name for name in POSITIONS},
    "before_char": "before_character_definition",
    "after_char": "after_character_definition",
}


@attrs.frozen
class Row:
    """One field: attribute path, member of a standalone and of an embedded entry, member of ``extensions``.

    ``extension`` None: the field has no place in ``extensions``. ``integer`` and ``low``/``high`` bound numbers.
    """

    path: str
    standalone: str
    embedded: str
    kind: Kind
    extension: str | None = None
    nullable: bool = False
    integer: bool = False
    low: float | None = None
    high: float | None = None


def _advanced(path: str, standalone: str, extension: str, kind: Kind, **bounds: float | bool | None) -> Row:
    return Row(path, standalone, extension, kind, extension, **bounds)  # type: ignore[arg-type]


BASIC: tuple[Row, ...] = (
    Row("keys", "key", "keys", "strings"),
    Row("secondary_keys", "keysecondary", "secondary_keys", "strings"),
    Row("comment", "comment", "comment", "string"),
    Row("content", "content", "content", "string"),
    Row("enabled", "disable", "enabled", "boolean"),
    Row("constant", "constant", "constant", "boolean"),
    Row("selective", "selective", "selective", "boolean"),
    Row("position", "position", "position", "position", "position"),
    Row("insertion_order", "order", "insertion_order", "number"),
)
"""The fields that an embedded entry has at its top level, in reading order."""

_SOURCES = (
    "persona_description",
    "character_description",
    "character_personality",
    "character_depth_prompt",
    "scenario",
    "creator_notes",
)


def _match_row(source: str) -> Row:
    words = "".join(word.capitalize() for word in source.split("_"))
    return _advanced(f"match_sources.{source}", f"match{words}", f"match_{source}", "boolean")


ADVANCED: tuple[Row, ...] = (
    _advanced("vectorized", "vectorized", "vectorized", "boolean"),
    _advanced("depth", "depth", "depth", "number", integer=True, low=0),
    _advanced("role", "role", "role", "role"),
    _advanced("selective_logic", "selectiveLogic", "selectiveLogic", "logic"),
    _advanced("probability", "probability", "probability", "number", low=0, high=100),
    _advanced("use_probability", "useProbability", "useProbability", "boolean"),
    _advanced("scan_depth", "scanDepth", "scan_depth", "number", nullable=True, integer=True, low=0),
    _advanced("case_sensitive", "caseSensitive", "case_sensitive", "boolean", nullable=True),
    _advanced("match_whole_words", "matchWholeWords", "match_whole_words", "boolean", nullable=True),
    _advanced("use_group_scoring", "useGroupScoring", "use_group_scoring", "boolean", nullable=True),
    _advanced("display_index", "displayIndex", "display_index", "number"),
    _advanced("outlet_name", "outletName", "outlet_name", "string"),
    _advanced("group.name", "group", "group", "string"),
    _advanced("group.override", "groupOverride", "group_override", "boolean"),
    _advanced("group.weight", "groupWeight", "group_weight", "number", low=0),
    _advanced("recursion.exclude", "excludeRecursion", "exclude_recursion", "boolean"),
    _advanced("recursion.prevent", "preventRecursion", "prevent_recursion", "boolean"),
    _advanced("recursion.delay_until", "delayUntilRecursion", "delay_until_recursion", "raw"),
    _advanced("effects.sticky", "sticky", "sticky", "number", nullable=True, integer=True, low=0),
    _advanced("effects.cooldown", "cooldown", "cooldown", "number", nullable=True, integer=True, low=0),
    _advanced("effects.delay", "delay", "delay", "number", nullable=True, integer=True, low=0),
    _advanced("automation_id", "automationId", "automation_id", "string"),
    _advanced("ignore_budget", "ignoreBudget", "ignore_budget", "boolean"),
    *(_match_row(source) for source in _SOURCES),
    _advanced("triggers", "triggers", "triggers", "strings"),
)
"""The fields that an embedded entry keeps in ``extensions``."""

ROWS = (*BASIC, *ADVANCED)

_NULL_PATHS = (
    "scan_depth",
    "case_sensitive",
    "match_whole_words",
    "use_group_scoring",
    "effects.sticky",
    "effects.cooldown",
    "effects.delay",
)
DEFAULTS: Mapping[str, object] = {
    "keys": (),
    "secondary_keys": (),
    "comment": "",
    "content": "",
    "enabled": True,
    "constant": False,
    "selective": True,
    "position": "before_character_definition",
    "insertion_order": 100,
    "vectorized": False,
    "depth": 4,
    "role": "system",
    "selective_logic": "and_any",
    "probability": 100,
    "use_probability": True,
    "outlet_name": "",
    "group.name": "",
    "group.override": False,
    "group.weight": 100,
    "recursion.exclude": False,
    "recursion.prevent": False,
    "recursion.delay_until": False,
    "automation_id": "",
    "ignore_budget": False,
    "triggers": (),
    "display_index": 0,
    **dict.fromkeys(_NULL_PATHS),
    **{f"match_sources.{source}": False for source in _SOURCES},
}
"""Attribute path → default of a standalone entry."""
EMBEDDED_DEFAULTS: Mapping[str, object] = {
    **DEFAULTS,
    "enabled": False,
    "selective": False,
    "position": "after_character_definition",
}
