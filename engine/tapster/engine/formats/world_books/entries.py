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
from .table import DEFAULTS, EMBEDDED_DEFAULTS, ROWS, Row
from .values import ABSENT, Findings, read_record, read_value

_REQUIRED = ("keys", "content", "extensions", "enabled", "insertion_order")
_BY_MEMBER: Mapping[bool, Mapping[str, int]] = {
    embedded: {
        **{(row.embedded if embedded else row.standalone): number for number, row in enumerate(ROWS)},
        "name": next(number for number, row in enumerate(ROWS) if row.path == "comment"),
    }
    for embedded in (False, True)
}
_BY_EXTENSION: Mapping[str, int] = {row.extension: number for number, row in enumerate(ROWS) if row.extension}
_PARTS: Mapping[str, Any] = {
    "group": Group,
    "recursion": Recursion,
    "effects": TimedEffects,
    "match_sources": MatchSources,
}
_DEFAULT_PARTS: Mapping[str, Any] = {name: kind() for name, kind in _PARTS.items()}
_FLAT_DEFAULTS: Mapping[bool, Mapping[str, Any]] = {
    embedded: {**{path: value for path, value in defaults.items() if "." not in path}, **_DEFAULT_PARTS}
    for embedded, defaults in ((False, DEFAULTS), (True, EMBEDDED_DEFAULTS))
}


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
    defaults = EMBEDDED_DEFAULTS if embedded else DEFAULTS
    fields: dict[str, Any] = {**_FLAT_DEFAULTS[embedded], "display_index": source.index}
    parts: dict[str, dict[str, Any]] = {}
    for row in _present(raw, extensions, embedded=embedded):
        value, where = _find(row, raw, extensions, embedded=embedded, exact=findings.repairs)
        part, _, attribute = row.path.rpartition(".")
        target = parts.setdefault(part, {}) if part else fields
        if row.path == "enabled" and not embedded:
            fields["enabled"] = not read_value(row, value, False, f"{path}.disable", findings)
        else:
            default = source.index if row.path == "display_index" else defaults[row.path]
            target[attribute] = read_value(row, value, default, f"{path}.{where}", findings)
    fields.update({name: _PARTS[name](**given) for name, given in parts.items()})
    return WorldBookEntry(
        uid=uid,
        source=source,
        **fields,
        character_filter=_character_filter(raw, extensions, path, findings),
        extensions=extensions,
    )


def _present(raw: Mapping[str, Json], extensions: Mapping[str, Json], *, embedded: bool) -> list[Row]:
    """The rows of the table that an entry says anything about, in reading order."""
    by_member = _BY_MEMBER[embedded]
    found = [number for member in raw if (number := by_member.get(member)) is not None]
    found += [number for member in extensions if (number := _BY_EXTENSION.get(member)) is not None]
    return [ROWS[number] for number in sorted(set(found))]


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
