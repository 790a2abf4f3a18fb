"""World books between SillyTavern's own file and the form embedded in cards, as SillyTavern converts them.

Both functions work on raw JSON; what they do not know is not carried over, except ``originalData``.

Source: the vectors of st_cards ("book_export", "character_book").
"""

from collections.abc import Mapping
from typing import Any

from tapster.engine.ecma import Json, is_record, ordered_members
from tapster.engine.formats.fields import either, is_truthy, text_of

from .table import ADVANCED

_EXPORT_DEFAULTS: Mapping[str, Json] = {
    "probability": None,
    "useProbability": False,
    "depth": 4,
    "selectiveLogic": 0,
    "outlet_name": "",
    "group": "",
    "group_weight": None,
    "scan_depth": None,
    "match_whole_words": None,
    "case_sensitive": None,
    "automation_id": "",
    "role": 0,
    "sticky": None,
    "cooldown": None,
    "delay": None,
}
"""Extension member → what is written when the entry does not have it; False for the others."""
_IMPORT_DEFAULTS: Mapping[str, Json] = {
    **_EXPORT_DEFAULTS,
    "probability": 100,
    "useProbability": True,
    "group_weight": 100,
    "use_group_scoring": None,
}
_AS_IS = ("exclude_recursion", "display_index")
"""Extension members that are left out when the entry does not have them."""


def to_character_book(name: Json, entries: Mapping[str, Json]) -> dict[str, Json]:
    """The embedded form of a world file's entries."""
    return {"entries": [_embedded(entry) for _, entry in ordered_members(entries) if is_record(entry)], "name": name}


def _embedded(entry: Mapping[str, Json]) -> dict[str, Json]:
    extensions: dict[str, Json] = dict(_record(entry.get("extensions")))
    if "position" in entry:
        extensions["position"] = entry["position"]
    for row in ADVANCED:
        member = str(row.extension)
        if member not in _AS_IS:
            fallback: Json = [] if row.kind == "strings" else _EXPORT_DEFAULTS.get(member, False)
            extensions[member] = _given(entry, row.standalone, fallback)
        elif row.standalone in entry:
            extensions[member] = entry[row.standalone]
    members = (("id", "uid"), ("keys", "key"), ("insertion_order", "order"))
    return {
        **{target: entry[source] for target, source in members if source in entry},
        "secondary_keys": either(entry.get("keysecondary"), []),
        "comment": either(entry.get("comment"), ""),
        "content": either(entry.get("content"), ""),
        "constant": either(entry.get("constant"), False),
        "selective": either(entry.get("selective"), False),
        "enabled": not is_truthy(entry.get("disable")),
        "position": "before_char" if entry.get("position") == 0 else "after_char",
        "use_regex": True,
        "extensions": extensions,
    }


def to_world_info(book: Mapping[str, Json]) -> dict[str, Json]:
    """The world file of an embedded book; of entries with the same id the last one stays."""
    given = book.get("entries")
    items = [item for item in (given if isinstance(given, list) else []) if is_record(item)]
    numbered = [item if item.get("id") is not None else {**item, "id": index} for index, item in enumerate(items)]
    entries = {text_of(item["id"]): _standalone(item, index) for index, item in enumerate(numbered)}
    return {"entries": dict(ordered_members(entries)), "originalData": {**book, "entries": numbered}}


def _standalone(entry: Mapping[str, Json], index: int) -> dict[str, Json]:
    extensions = _record(entry.get("extensions"))
    out: dict[str, Any] = {
        "uid": entry["id"],
        "keysecondary": either(entry.get("secondary_keys"), []),
        "comment": either(entry.get("comment"), ""),
        "constant": either(entry.get("constant"), False),
        "selective": either(entry.get("selective"), False),
        "addMemo": is_truthy(entry.get("comment")),
        "position": _given(extensions, "position", 0 if entry.get("position") == "before_char" else 1),
        "disable": not is_truthy(entry.get("enabled")),
        "extensions": _given(entry, "extensions", {}),
    }
    for target, source in (("key", "keys"), ("content", "content"), ("order", "insertion_order")):
        if source in entry:
            out[target] = entry[source]
    for row in ADVANCED:
        fallback: Json = [] if row.kind == "strings" else _IMPORT_DEFAULTS.get(str(row.extension), False)
        if row.path == "display_index":
            fallback = index
        out[row.standalone] = _given(extensions, str(row.extension), fallback)
    return out


def _given(members: Mapping[str, Json], name: str, fallback: Json) -> Json:
    value = members.get(name)
    return fallback if value is None else value


def _record(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, dict) else {}
