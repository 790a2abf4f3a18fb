"""The structural guard: how large and deep a world book may be, before anything is normalised.

Source: spec/resources §6.2.
"""

import attrs

from tapster.engine.ecma import Json
from tapster.engine.formats.fields import is_too_long
from tapster.engine.limits import (
    WORLD_BOOK_DEPTH,
    WORLD_BOOK_ENTRIES,
    WORLD_BOOK_KEY_UNITS,
    WORLD_BOOK_NODES,
    WORLD_BOOK_STRING_UNITS,
)


@attrs.frozen
class BookLimits:
    """Bounds of one world book; lengths in UTF-16 code units, the root has depth 0."""

    entries: int = WORLD_BOOK_ENTRIES
    depth: int = WORLD_BOOK_DEPTH
    nodes: int = WORLD_BOOK_NODES
    string_units: int = WORLD_BOOK_STRING_UNITS
    key_units: int = WORLD_BOOK_KEY_UNITS


def structural_breach(root: Json, limits: BookLimits) -> tuple[str, str] | None:
    """The first limit a JSON value breaks, as (code, message), or None."""
    if not isinstance(root, dict):
        return "WORLD_BOOK_ROOT_INVALID", "a world book is a JSON object"
    entries = root.get("entries")
    if isinstance(entries, dict | list) and len(entries) > limits.entries:
        return "WORLD_BOOK_ENTRY_LIMIT", f"the world book has {len(entries)} entries; the limit is {limits.entries}"
    level: list[Json] = [root]
    nodes = 0
    depth = 0
    while level:
        nodes += len(level)
        if nodes > limits.nodes:
            return "WORLD_BOOK_NODE_LIMIT", f"the world book holds more than {limits.nodes} JSON values"
        if depth > limits.depth:
            return "WORLD_BOOK_DEPTH_LIMIT", f"the world book is nested deeper than {limits.depth} levels"
        breach = next((found for value in level if (found := _leaf_breach(value, limits))), None)
        if breach:
            return breach
        level = [member for value in level for member in _members(value)]
        depth += 1
    return None


def _members(value: Json) -> list[Json]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _leaf_breach(value: Json, limits: BookLimits) -> tuple[str, str] | None:
    if isinstance(value, str) and is_too_long(value, limits.string_units):
        return "WORLD_BOOK_STRING_LIMIT", f"a text of the world book is longer than {limits.string_units} characters"
    if isinstance(value, dict) and any(is_too_long(key, limits.key_units) for key in value):
        return "WORLD_BOOK_KEY_LIMIT", f"a member name of the world book is longer than {limits.key_units} characters"
    return None
