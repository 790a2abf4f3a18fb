"""World books of other programs, turned into one of the two formats.

NovelAI, Agnai and RisuAI files become a SillyTavern world file that keeps the original under ``originalData``, as
SillyTavern's own imports do; a ``lorebook_v3`` is an embedded book in a wrapper.

Source: issue "standalone books"; the shapes are those of the corpus.
"""

from collections.abc import Callable, Mapping
from typing import Literal

import attrs

from tapster.engine.ecma import Json, is_number, trim

BookShape = Literal["standalone", "embedded", "novelai", "agnai", "risu", "lorebook_v3"]


@attrs.frozen
class Converted:
    """A book's JSON in one of the two formats, and the shape it had."""

    raw: Mapping[str, Json]
    shape: BookShape


def book_shape(raw: Mapping[str, Json]) -> BookShape | None:
    """Which program's book an object looks like, or None."""
    entries = raw.get("entries")
    if raw.get("spec") == "lorebook_v3" and isinstance(raw.get("data"), dict):
        return "lorebook_v3"
    if raw.get("type") == "risu" and isinstance(raw.get("data"), list):
        return "risu"
    if isinstance(entries, list) and "lorebookVersion" in raw:
        return "novelai"
    if isinstance(entries, list) and raw.get("kind") == "memory":
        return "agnai"
    if isinstance(entries, list):
        return "embedded"
    if isinstance(entries, dict):
        return "embedded" if _has_embedded_entries(entries) else "standalone"
    return None


def convert_book(raw: Mapping[str, Json]) -> Converted | None:
    """The book in a format the reader knows, or None for something else."""
    shape = book_shape(raw)
    if shape is None:
        return None
    if shape == "lorebook_v3":
        return Converted(raw["data"], shape)
    if shape in _ENTRY_READERS:
        items = raw["data" if shape == "risu" else "entries"]
        entries = {
            str(index): {"uid": index, "displayIndex": index, **_ENTRY_READERS[shape](item)}
            for index, item in enumerate(items)
            if isinstance(item, dict)
        }
        named = {member: raw[member] for member in ("name", "description") if isinstance(raw.get(member), str)}
        return Converted({**named, "entries": entries, "originalData": raw}, shape)
    return Converted(raw, shape)


def _has_embedded_entries(entries: Mapping[str, Json]) -> bool:
    items = [item for item in entries.values() if isinstance(item, dict)]
    embedded = sum("keys" in item and "key" not in item for item in items)
    return bool(items) and 2 * embedded > len(items)


def _novelai(item: Mapping[str, Json]) -> dict[str, Json]:
    config = item.get("contextConfig")
    priority = config.get("budgetPriority") if isinstance(config, dict) else None
    return _entry(
        keys=item.get("keys"),
        comment=item.get("displayName"),
        content=item.get("text"),
        order=priority,
        enabled=item.get("enabled"),
        constant=item.get("forceActivation") is True,
    )


def _agnai(item: Mapping[str, Json]) -> dict[str, Json]:
    return _entry(
        keys=item.get("keywords"),
        comment=item.get("name"),
        content=item.get("entry"),
        order=item.get("weight"),
        enabled=item.get("enabled"),
    )


def _risu(item: Mapping[str, Json]) -> dict[str, Json]:
    return {
        **_entry(
            keys=_listed(item.get("key")),
            comment=item.get("comment"),
            content=item.get("content"),
            order=item.get("insertorder"),
            constant=item.get("alwaysActive") is True,
        ),
        "keysecondary": _listed(item.get("secondkey")),
        "selective": item.get("selective") is True,
    }


def _entry(
    *, keys: Json, comment: Json, content: Json, order: Json, enabled: Json = True, constant: bool = False
) -> dict[str, Json]:
    return {
        "key": [key for key in keys if isinstance(key, str)] if isinstance(keys, list) else [],
        "keysecondary": [],
        "comment": comment if isinstance(comment, str) else "",
        "content": content if isinstance(content, str) else "",
        "constant": constant,
        "selective": False,
        "order": order if is_number(order) else 100,
        "position": 0,
        "disable": enabled is False,
    }


def _listed(value: Json) -> list[str]:
    return [key for part in value.split(",") if (key := trim(part))] if isinstance(value, str) else []


_ENTRY_READERS: Mapping[str, Callable[[Mapping[str, Json]], dict[str, Json]]] = {
    "novelai": _novelai,
    "agnai": _agnai,
    "risu": _risu,
}
