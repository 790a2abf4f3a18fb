"""One world-book entry of either format into a value.

Source: spec/resources §6.3.
"""

from collections.abc import Mapping
from typing import Any

from tapster.engine.ecma import Json, is_safe_integer

from .model import (
    BookFormat,
    CharacterFilter,
    EntrySource,
    Group,
    MatchSources,
    Recursion,
    TimedEffects,
    WorldBookEntry,
)
from .table import ADVANCED, BASIC, DEFAULTS, EMBEDDED_DEFAULTS, Row
from .values import ABSENT, Findings, read_record, read_value

_REQUIRED = ("keys", "content", "extensions", "enabled", "insertion_order")
_PARTS = {"group": Group, "recursion": Recursion, "effects": TimedEffects, "match_sources": MatchSources}


def read_entry(
    raw: Mapping[str, Json], format: BookFormat, source: EntrySource, path: str, findings: Findings
) -> WorldBookEntry:
    """The entry; what is wrong in it becomes a diagnostic and a default."""
    embedded = format == "character-book-v2"
    if embedded:
        for member in _REQUIRED:
            if member not in raw:
                findings.add("missing-required-field", f"{path}.{member}", f"an embedded entry has '{member}'")
    extensions = read_record(raw.get("extensions", ABSENT), f"{path}.extensions", findings)
    uid = _uid(raw, "id" if embedded else "uid", source.index if embedded else source.key, path, findings)
    defaults = {**(EMBEDDED_DEFAULTS if embedded else DEFAULTS), "display_index": source.index}
    fields: dict[str, Any] = {}
    for row in (*BASIC, *ADVANCED):
        value, where = _find(row, raw, extensions, embedded=embedded, exact=findings.repairs)
        if row.path == "enabled" and not embedded:
            fields["enabled"] = not read_value(row, value, False, f"{path}.disable", findings)
        else:
            fields[row.path] = read_value(row, value, defaults.get(row.path), f"{path}.{where}", findings)
    return WorldBookEntry(
        uid=uid,
        source=source,
        **_nested(fields),
        character_filter=_character_filter(raw, extensions, path, findings),
        extensions=extensions,
    )


def _find(
    row: Row, raw: Mapping[str, Json], extensions: Mapping[str, Json], *, embedded: bool, exact: bool
) -> tuple[Json, str]:
    """The value of a field and the path that diagnostics name for it; ``exact`` names where it really stands.

    The contract names ``extensions`` for every field that can stand there.
    """
    own = row.embedded if embedded else row.standalone
    if row.path == "position":
        if embedded and "position" in extensions:
            return extensions["position"], "extensions.position"
        return raw.get(own, extensions.get("position", ABSENT)), "position"
    if row.path == "comment":
        return raw.get("comment", raw.get("name", ABSENT)), "comment"
    if row.extension is None or (exact and own in raw):
        return raw.get(own, ABSENT), own
    return raw.get(own, extensions.get(row.extension, ABSENT)), f"extensions.{row.extension}"


def _nested(fields: Mapping[str, Any]) -> dict[str, Any]:
    parts: dict[str, dict[str, Any]] = {name: {} for name in _PARTS}
    out: dict[str, Any] = {}
    for path, value in fields.items():
        part, _, attribute = path.partition(".")
        if attribute:
            parts[part][attribute] = value
        else:
            out[path] = value
    for name, kind in _PARTS.items():
        out[name] = kind(**parts[name])
    return out


def _uid(raw: Mapping[str, Json], member: str, default: int | str, path: str, findings: Findings) -> int | str:
    value = raw.get(member, ABSENT)
    if value is ABSENT:
        return default
    if (is_safe_integer(value) and value >= 0) or (isinstance(value, str) and value):
        return value if isinstance(value, str) else int(value)
    findings.add("invalid-uid", f"{path}.{member}", f"{path}.{member} is no id; {default!a} is used", value)
    return default


def _character_filter(
    raw: Mapping[str, Json], extensions: Mapping[str, Json], path: str, findings: Findings
) -> CharacterFilter | None:
    member = "characterFilter" if "characterFilter" in raw else "character_filter"
    value = raw.get(member, extensions.get("character_filter"))
    if value is None:
        return None
    if not isinstance(value, dict):
        findings.add(
            "invalid-character-filter",
            f"{path}.{member}",
            f"{path}.{member} is not an object; there is no filter",
            value,
        )
        return None
    exclude = value.get("isExclude", value.get("is_exclude"))
    return CharacterFilter(exclude is True, _texts(value.get("names")), _texts(value.get("tags")), value)


def _texts(value: Json) -> tuple[str, ...]:
    return tuple([item for item in value if isinstance(item, str)]) if isinstance(value, list) else ()
