"""Updates of a world book.

Source: spec/resources §7 "update".
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs

from tapster.engine.ecma import Json, is_number, is_record
from tapster.engine.errors import FormatError
from tapster.engine.formats.profiles import Profile

from .guard import BookLimits
from .model import EntrySource, WorldBook, WorldBookEntry
from .read import is_uid, parse_world_book
from .table import LOGICS, POSITIONS
from .write import restore_world_book

_EDITABLE: Mapping[str, str] = {
    "keys": "keys",
    "secondaryKeys": "secondary_keys",
    "comment": "comment",
    "content": "content",
    "enabled": "enabled",
    "constant": "constant",
    "selective": "selective",
    "insertionOrder": "insertion_order",
    "position": "position",
    "selectiveLogic": "selective_logic",
    "probability": "probability",
    "useProbability": "use_probability",
    "caseSensitive": "case_sensitive",
    "matchWholeWords": "match_whole_words",
}
_KINDS: Mapping[str, Callable[[Json], bool]] = {
    "keys": lambda value: _is_texts(value),
    "secondaryKeys": lambda value: _is_texts(value),
    "comment": lambda value: isinstance(value, str),
    "content": lambda value: isinstance(value, str),
    "insertionOrder": is_number,
    "position": lambda value: value in POSITIONS,
    "selectiveLogic": lambda value: value in LOGICS,
    "probability": lambda value: is_number(value) and 0 <= value <= 100,
    "caseSensitive": lambda value: value is None or isinstance(value, bool),
    "matchWholeWords": lambda value: value is None or isinstance(value, bool),
}
_REPAIRS = ("invalid-entry", "entries_object")
"""Diagnostics of a book that only a lenient reading takes; an edit reads it the same way again."""
_SETTINGS = {"scanDepth": "scan_depth", "tokenBudget": "token_budget", "recursiveScanning": "recursive_scanning"}


def edit_world_book(
    book: WorldBook,
    patch: Json,
    *,
    new_uid: Callable[[], str],
    limits: BookLimits = BookLimits(),  # noqa: B008 - a frozen value
) -> WorldBook:
    """The book after an update, read again in its own format; what the patch does not name survives.

    ``new_uid`` gives the uid of an entry that comes without one.

    Raises:
        FormatError: a field of the patch has the wrong type (slugs ``not-object``, ``field-not-string``,
            ``field-not-array``, ``bad-entry-field``).
        WorldBookValidationError: the result breaks a limit.
    """
    if not is_record(patch):
        raise FormatError("not-object", "a world-book update is a JSON object")
    body = patch["book"] if is_record(patch.get("book")) else patch
    raw = _settings_raw(book, body.get("settings"))
    changed = attrs.evolve(
        book,
        name=_text(body, "name", book.name),
        description=_text(body, "description", book.description),
        entries=_entries(book, body["entries"], new_uid) if "entries" in body else book.entries,
        source=attrs.evolve(book.source, raw=raw),
    )
    repaired = any(item.code in _REPAIRS for item in book.diagnostics)
    profile: Profile = "lenient" if repaired else "contract"
    return parse_world_book(restore_world_book(changed), format=book.source.format, limits=limits, profile=profile)


def _text(body: Mapping[str, Json], member: str, current: str) -> str:
    value = body.get(member, current)
    if not isinstance(value, str):
        raise FormatError("field-not-string", f"a world book's {member} is a text")
    return value


def _settings_raw(book: WorldBook, patch: Json) -> dict[str, Json]:
    raw: dict[str, Json] = dict(book.source.raw)
    if not isinstance(patch, dict):
        return raw
    for member, attribute in _SETTINGS.items():
        if member in patch and patch[member] != getattr(book.settings, attribute):
            raw.pop(attribute, None)
            if patch[member] is not None:
                raw[attribute] = _setting(member, patch[member])
    return raw


def _setting(member: str, value: Json) -> Json:
    is_flag = member == "recursiveScanning"
    if isinstance(value, bool) is not is_flag or not (is_flag or (is_number(value) and value >= 0 and value % 1 == 0)):
        raise FormatError("bad-setting", f"settings.{member} is {'true or false' if is_flag else 'a whole number'}")
    return value


def _entries(book: WorldBook, given: Json, new_uid: Callable[[], str]) -> tuple[WorldBookEntry, ...]:
    if not isinstance(given, list) or not all(map(is_record, given)):
        raise FormatError("field-not-array", "the entries of an update are a list of objects")
    unclaimed = _Unclaimed(book.entries)
    unread = book.source.raw.get("entries")  # what no entry could be read from keeps its place, too
    taken_keys = {entry.source.key for entry in book.entries} | (set(unread) if isinstance(unread, dict) else set())
    out = []
    for index, item in enumerate(given):
        current = unclaimed.claim(item)
        if current is None:
            uid = item["uid"] if is_uid(item.get("uid")) else new_uid()
            current = _new_entry(uid, index, taken_keys)
        out.append(attrs.evolve(current, **_changes(item, index)))
    return tuple(out)


class _Unclaimed:
    """Entries that no entry of an update has claimed yet, by the type and value of their uid and then by their key."""

    def __init__(self, entries: Iterable[WorldBookEntry]) -> None:
        self._left: dict[tuple[type, Json], dict[str, list[WorldBookEntry]]] = {}
        for entry in entries:
            self._left.setdefault((type(entry.uid), entry.uid), {}).setdefault(entry.source.key, []).append(entry)

    def claim(self, item: Mapping[str, Json]) -> WorldBookEntry | None:
        """The entry with the item's uid and source key, else the first one with its uid, else None."""
        uid = item.get("uid")
        same = self._left.get((type(uid), uid)) if isinstance(uid, str | int) else None
        if not same:
            return None
        source = item.get("source")
        given = source.get("key") if isinstance(source, dict) else item.get("sourceKey")
        key = given if isinstance(given, str) and given in same else next(iter(same))
        entry = same[key].pop(0)
        if not same[key]:
            del same[key]
        return entry


def _new_entry(uid: int | str, index: int, taken: set[str]) -> WorldBookEntry:
    key = f"entry-{uid}"
    suffix = 1
    while key in taken:
        suffix += 1
        key = f"entry-{uid}-{suffix}"
    taken.add(key)
    return WorldBookEntry(
        uid=uid,
        source=EntrySource(key, index),
        enabled=True,
        selective=False,
        position="after_character_definition",
        insertion_order=100,
        display_index=index,
    )


def _changes(item: Mapping[str, Json], index: int) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    for member, attribute in _EDITABLE.items():
        if member not in item:
            continue
        value = item[member]
        if not _KINDS.get(member, lambda value: isinstance(value, bool))(value):
            raise FormatError("bad-entry-field", f"entries[{index}].{member} has an unusable value")
        changes[attribute] = tuple(value) if isinstance(value, list) else value
    return changes


def _is_texts(value: Json) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)
