"""World books back into the JSON of either format.

``export_world_book`` writes what the contract writes: every known field, normalised. ``restore_world_book`` changes
only what differs from the file the book was read from, so an untouched book comes back as it was.

Source: spec/resources §6.4, §6.5.
"""

import itertools
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from tapster.engine.ecma import Json, number_text, ordered_members, stringify
from tapster.engine.formats.profiles import Profile

from .entries import read_entry
from .model import BookFormat, CharacterFilter, WorldBook, WorldBookEntry
from .table import ADVANCED, BASIC, LOGICS, POSITIONS, ROLES, ROWS, Row
from .values import Findings

_INDEXED: Mapping[str, tuple[str, ...]] = {"position": POSITIONS, "role": ROLES, "logic": LOGICS}
_SETTINGS = ("scan_depth", "token_budget", "recursive_scanning")


def export_world_book(
    book: WorldBook, to: BookFormat | None = None, *, profile: Profile = "contract"
) -> dict[str, Json]:
    """The book in a format (its own by default), every known field written.

    Profiles other than the contract also write what SillyTavern adds: ``addMemo``, and ``use_regex`` in cards.
    """
    target = to or book.source.format
    out = _root(book, target)
    if target == "sillytavern-world-info":
        is_own = target == book.source.format
        keys = _map_keys(book, [entry.source.key or None if is_own else None for entry in book.entries])
        added = {} if profile == "contract" else {"addMemo": True}
        written = {key: {**added, **_standalone(entry)} for key, entry in zip(keys, book.entries, strict=True)}
        out["entries"] = dict(ordered_members(written))
    else:
        out["extensions"] = dict(book.settings.extensions)
        flags = {} if profile == "contract" else {"use_regex": True}
        out["entries"] = [{**flags, **_embedded(entry)} for entry in book.entries]
    return out


def restore_world_book(book: WorldBook) -> dict[str, Json]:
    """The file the book came from, with nothing changed but what was edited since."""
    format = book.source.format
    raw = book.source.raw
    out: dict[str, Json] = dict(raw)
    for member, value in (("name", book.name), ("description", book.description)):
        given = raw.get(member)
        if value != (given if isinstance(given, str) else ""):
            out[member] = value
    entries: list[Json] = [_restored(entry, format) for entry in book.entries]
    given = raw.get("entries")
    if isinstance(given, dict):
        unread = {key: item for key, item in given.items() if not isinstance(item, dict)}
        keys = _map_keys(book, [entry.source.key for entry in book.entries], taken=unread)
        keyed = dict(zip(keys, entries, strict=True))
        out["entries"] = dict(ordered_members({**unread, **keyed}))
    else:
        for index, item in enumerate(given if isinstance(given, list) else []):
            if not isinstance(item, dict):
                entries.insert(index, item)
        out["entries"] = entries
    return out


def world_book_text(exported: Json) -> str:
    """The stable text of an exported book: keys sorted at every level, two spaces, no final newline."""
    return stringify(_sorted(exported), indent=2)


def attribute(value: object, path: str) -> Any:
    """The attribute at a dotted path."""
    for name in path.split("."):
        value = getattr(value, name)
    return value


def _sorted(value: Json) -> Json:
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: key.encode("utf-16-be", "surrogatepass"))
        return {key: _sorted(value[key]) for key in keys}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


def _root(book: WorldBook, target: BookFormat) -> dict[str, Json]:
    out: dict[str, Json] = dict(book.source.raw) if target == book.source.format else {}
    for member, text in (("name", book.name), ("description", book.description)):
        if text or member in out:
            out[member] = text
    for member in _SETTINGS:
        value = getattr(book.settings, member)
        if value is not None:
            out[member] = value
    if book.settings.extensions or "extensions" in out:
        out["extensions"] = dict(book.settings.extensions)
    return out


def _map_keys(book: WorldBook, own: Sequence[str | None], taken: Iterable[str] = ()) -> list[str]:
    """A key of the map for each entry: its own one where it has one, else one that its uid names."""
    used = set(taken)
    keys = []
    for index, (entry, name) in enumerate(zip(book.entries, own, strict=True)):
        if name is None or name in used:
            name = _free_key(entry, index, used)
        used.add(name)
        keys.append(name)
    return keys


def _free_key(entry: WorldBookEntry, index: int, used: Container[str]) -> str:
    uid = entry.uid if isinstance(entry.uid, str) else number_text(entry.uid)
    numbered = (f"{uid}-{number}" for number in itertools.count(index))
    return next(name for name in itertools.chain([uid], numbered) if name not in used)


def _standalone(entry: WorldBookEntry) -> dict[str, Json]:
    out: dict[str, Json] = {**entry.source.raw, "uid": entry.uid}
    for row in ROWS:
        out[row.standalone] = written(row, entry)
    out["disable"] = not entry.enabled
    if entry.character_filter is None:
        out.pop("characterFilter", None)
    else:
        out["characterFilter"] = _filter(entry.character_filter)
    if entry.extensions or "extensions" in out:
        out["extensions"] = dict(entry.extensions)
    return out


def _embedded(entry: WorldBookEntry) -> dict[str, Json]:
    out: dict[str, Json] = {**entry.source.raw, "id": entry.uid}
    for row in BASIC:
        out[row.embedded] = written(row, entry)
    out["position"] = embedded_position(entry)
    out["case_sensitive"] = bool(entry.case_sensitive)
    extensions: dict[str, Json] = {**entry.extensions, "position": POSITIONS.index(entry.position)}
    for row in ADVANCED:
        extensions[row.extension or row.embedded] = written(row, entry)
    if entry.character_filter is not None:
        extensions["character_filter"] = _filter(entry.character_filter)
    out["extensions"] = extensions
    return out


def embedded_position(entry: WorldBookEntry) -> str:
    """The only two places an embedded entry can name at its top level."""
    return "before_char" if entry.position == "before_character_definition" else "after_char"


def written(row: Row, entry: WorldBookEntry) -> Json:
    """The value of a field as files hold it: lists, numbers for enumerations."""
    value = attribute(entry, row.path)
    if row.kind in _INDEXED:
        return _INDEXED[row.kind].index(value)
    return list(value) if isinstance(value, tuple) else value


def _filter(value: CharacterFilter) -> dict[str, Json]:
    raw = value.raw if isinstance(value.raw, dict) else {}
    return {**raw, "isExclude": value.is_exclude, "names": list(value.names), "tags": list(value.tags)}


def _restored(entry: WorldBookEntry, format: BookFormat) -> dict[str, Json]:
    raw = entry.source.raw
    out: dict[str, Json] = dict(raw)
    originals = []
    for repairs in (False, True):
        originals.append(read_entry(raw, format, entry.source, "$", Findings(repairs=repairs)))
        if originals[-1] == entry:
            return out
    if not raw:
        return _embedded(entry) if format == "character-book-v2" else _standalone(entry)
    for row in ROWS:
        if attribute(entry, row.path) not in [attribute(original, row.path) for original in originals]:
            _put(out, row, entry, format)
    return out


def _put(out: dict[str, Json], row: Row, entry: WorldBookEntry, format: BookFormat) -> None:
    if format == "sillytavern-world-info":
        out[row.standalone] = not entry.enabled if row.path == "enabled" else written(row, entry)
        return
    given = out.get("extensions")
    extensions: dict[str, Json] = dict(given) if isinstance(given, dict) else {}
    if row.path == "position":
        out["position"] = embedded_position(entry)
        out["extensions"] = {**extensions, "position": written(row, entry)}
    elif row.extension is None or row.extension in out:
        out[row.embedded] = written(row, entry)
    else:
        out["extensions"] = {**extensions, row.extension: written(row, entry)}
