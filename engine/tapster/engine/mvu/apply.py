"""Update commands applied to variables: each on a copy, kept only if the schema still holds.

Source: spec/text_and_mvu C5.
"""

from collections.abc import Mapping
from copy import copy, deepcopy
from typing import Any, TypeAlias

import attrs

from tapster.engine.ecma import is_number, to_number, trim

from .commands import ABSENT, Command, parse_update
from .declared import declared_schema
from .errors import SKIPPED_CODES, MvuError
from .paths import array_index, value_at
from .schema import derive_schema, node_at, validate
from .values import check_key, check_value, merge_deep
from .variables import SchemaCheck, normalize_variables

Json: TypeAlias = Any
SIGNIFICANT_DIGITS = 12


def apply_update(variables: Json, text: str, *, declared: SchemaCheck | None = None) -> dict[str, Json]:
    """The variables after a reply; the ones given are not changed.

    Variables that carry a declared schema (``mvu_schema``) are held to it; ``declared`` takes its place.

    Raises:
        MvuError: nothing of the reply counts then.
    """
    commands = parse_update(text)
    current = normalize_variables(variables)
    if not commands:
        return current
    if declared is None and current.get("mvu_schema") is not None:
        declared = declared_schema(current["mvu_schema"])
    stat_data, schema = current["stat_data"], current["schema"]
    diagnostics: list[dict[str, Json]] = []
    delta: dict[str, Json] = {}
    for index, command in enumerate(commands):
        try:
            changed = _Change(stat_data, schema, loose=declared is not None).run(command)
            if declared is not None:
                changed = declared(changed)
            if not isinstance(changed, Mapping):
                raise MvuError("MVU_SCHEMA", "stat_data must stay an object")
            cleaned, derived = derive_schema(changed, schema, settled=stat_data)
            if declared is None:
                validate(cleaned, schema, settled=stat_data)
        except MvuError as error:
            if error.code not in SKIPPED_CODES:
                raise
            diagnostics.append({"command": index, "code": error.code})
            continue
        delta = {".".join(command.path): {"before": stat_data, "after": cleaned}}
        stat_data, schema = cleaned, derived
    check_value(stat_data)
    return {
        **current,
        "stat_data": stat_data,
        "schema": schema,
        "display_data": deepcopy(stat_data),
        "delta_data": delta,
        "update_diagnostics": diagnostics,
    }


@attrs.define(eq=False)
class _Change:
    """One command on ``stat_data``: what it changes is copied first, all else is shared with the state before."""

    data: Json
    schema: Json
    loose: bool

    def run(self, command: Command) -> Json:
        """The state after the command; the one given stays as it is."""
        getattr(self, f"_{command.op}")(command)
        return self.data

    def _own(self, path: tuple[str, ...]) -> None:
        """Make copies of the containers along a path."""
        self.data = at = copy(self.data)
        for part in path:
            key: str | int | None = part if isinstance(at, dict) else None
            if isinstance(at, list):
                key = array_index(part, len(at))
            if key is None or (isinstance(at, dict) and key not in at):
                return
            at[key] = at = copy(at[key])

    def _container(self, path: tuple[str, ...]) -> Json:
        try:
            return value_at(self.data, path)
        except KeyError:
            raise MvuError("MVU_PATH_MISSING", f"there is nothing at {'.'.join(path)!r}") from None

    def _existing(self, path: tuple[str, ...]) -> Json:
        parent = self._container(path[:-1]) if path else None
        if isinstance(parent, list) and array_index(path[-1], len(parent)) is None:
            raise MvuError("MVU_PATH", f"{path[-1]!r} is no index of the list at {'.'.join(path[:-1])!r}")
        return self._container(path)

    def _store(self, path: tuple[str, ...], value: Json) -> None:
        if not path:
            self.data = value
            return
        parent = self._container(path[:-1])
        if isinstance(parent, list):
            parent[int(path[-1])] = value
        else:
            parent[path[-1]] = value

    def _set(self, command: Command) -> None:
        path = command.path
        self._own(path)
        if self.loose and path:
            self._make_parents(path)
        old = self._existing(path)
        pair = is_described(old) and not self._flag("strictSet", path)
        if pair:
            self._store(path, [coerced(old[0], command.value), old[1]])
        else:
            self._store(path, coerced(old, command.value) if not self.loose else command.value)

    def _flag(self, name: str, path: tuple[str, ...]) -> bool:
        """A mode that a value's own schema sets, or that of something around it."""
        return any(node_at(self.schema, path[:end]).get(name) is True for end in range(len(path) + 1))

    def _make_parents(self, path: tuple[str, ...]) -> None:
        """A declared schema decides what may exist, so missing members are created for it to judge."""
        at = self.data
        for part in path[:-1]:
            if isinstance(at, dict):
                at = at.setdefault(part, {})
            elif isinstance(at, list) and (index := array_index(part, len(at))) is not None:
                at = at[index]
        if isinstance(at, dict):
            at.setdefault(path[-1], None)

    def _add(self, command: Command) -> None:
        self._own(command.path)
        old = self._existing(command.path)
        if not is_number(old) or not is_number(command.value):
            raise MvuError("MVU_UNSUPPORTED", f"only a number can be added to a number ({'.'.join(command.path)!r})")
        self._store(command.path, rounded(old + command.value))

    def _insert(self, command: Command) -> None:
        path = command.path
        self._own(path)
        if self.loose and path:
            self._make_parents((*path, ""))
            at = self._container(path)
            if isinstance(at, dict):
                at.pop("", None)
        collection = self._container(path)
        if command.key is ABSENT:
            self._insert_whole(path, collection, command.value)
        elif isinstance(collection, list):
            self._insert_item(path, collection, command.key, command.value)
        elif isinstance(collection, dict):
            self._insert_member(path, collection, key_text(command.key), command.value)
        else:
            raise MvuError("MVU_SCHEMA", f"{'.'.join(path)!r} is no list or object")

    def _insert_whole(self, path: tuple[str, ...], collection: Json, value: Json) -> None:
        if isinstance(collection, list):
            self._insert_item(path, collection, "-", value)
        elif isinstance(collection, dict) and isinstance(value, Mapping):
            for key, member in value.items():
                old = collection.get(key)
                if isinstance(old, Mapping) and isinstance(member, Mapping):
                    collection[key] = merge_deep(old, member)
                else:
                    self._insert_member(path, collection, key, member)
        else:
            raise MvuError("MVU_SCHEMA", f"nothing can be inserted into {'.'.join(path)!r} without a key")

    def _extensible(self, path: tuple[str, ...]) -> bool:
        node = node_at(self.schema, path)
        return self.loose or node.get("type") == "any" or node.get("extensible") is True

    def _insert_item(self, path: tuple[str, ...], collection: list[Json], key: Json, value: Json) -> None:
        if not self._extensible(path):
            raise MvuError("MVU_SCHEMA", f"the list at {'.'.join(path)!r} takes no further items")
        text = key_text(key)
        index = len(collection) if text == "-" else array_index(text, len(collection) + 1)
        if index is None:
            raise MvuError("MVU_PATH", f"{text!r} is no place in the list at {'.'.join(path)!r}")
        collection.insert(index, with_template(value, node_at(self.schema, path)))

    def _insert_member(self, path: tuple[str, ...], collection: dict[str, Json], key: str, value: Json) -> None:
        check_key(key)
        if key not in collection and not self._extensible(path):
            raise MvuError("MVU_SCHEMA", f"{'.'.join(path)!r} takes no further member like {key!r}")
        collection[key] = with_template(value, node_at(self.schema, path))

    def _delete(self, command: Command) -> None:
        path = command.path
        self._own(path)
        if command.target is not ABSENT:
            path = (*path, self._target_key(path, command.target))
        if not path:
            raise MvuError("MVU_UNSUPPORTED", "the root can't be deleted")
        self._existing(path)
        parent = self._container(path[:-1])
        if isinstance(parent, list):
            if not self._extensible(path[:-1]):
                raise MvuError("MVU_SCHEMA", f"the list at {'.'.join(path[:-1])!r} keeps its items")
            del parent[int(path[-1])]
            return
        if not self.loose and node_at(self.schema, path).get("required") is True:
            raise MvuError("MVU_SCHEMA", f"{'.'.join(path)!r} is required")
        del parent[path[-1]]

    def _target_key(self, path: tuple[str, ...], target: Json) -> str:
        """Which member a delete means: an index, an equal item, a key, or the n-th key."""
        collection = self._container(path)
        number = int(target) if is_number(target) and float(target).is_integer() else None
        if isinstance(collection, list):
            if number is not None and 0 <= number < len(collection):
                return str(number)
            for index, item in enumerate(collection) if number is None else ():
                if item == target and type(item) is type(target):
                    return str(index)
        elif isinstance(collection, Mapping):
            if isinstance(target, str) and target in collection:
                return target
            if number is not None and 0 <= number < len(collection):
                return str(list(collection)[number])
        raise MvuError("MVU_PATH_MISSING", f"{'.'.join(path)!r} has no such member")

    def _move(self, command: Command) -> None:
        source, path = command.source or (), command.path
        if not source or not path:
            raise MvuError("MVU_UNSUPPORTED", "the root can't be moved")
        if path[: len(source)] == source and path != source:
            raise MvuError("MVU_PATH", "a value can't be moved into itself")
        value = self._existing(source)
        if path == source:
            return
        self._delete(Command("delete", source))
        self._insert(Command("insert", path[:-1], value, path[-1]))


def is_described(value: Json) -> bool:
    """A ``[value, "description"]`` pair."""
    return isinstance(value, list) and len(value) == 2 and isinstance(value[1], str) and not isinstance(value[0], list)


def coerced(old: Json, new: Json) -> Json:
    """The new value; text set on a number is read as a number.

    Raises:
        MvuError: ``MVU_JSON`` for text that is no number.
    """
    if not is_number(old) or not isinstance(new, str):
        return new
    number = to_number(new) if trim(new) else 0
    if number is None or not is_number(number):
        raise MvuError("MVU_JSON", f"{new[:80]!r} is not a number, and the old value is one")
    return number


def rounded(number: float) -> float:
    """A number with 12 significant digits."""
    result = float(f"{number:.{SIGNIFICANT_DIGITS}g}")
    return int(result) if result.is_integer() and abs(result) < 2**53 else result


def key_text(key: Json) -> str:
    """A key of an insert as text.

    Raises:
        MvuError: ``MVU_PATH`` for a key that is neither text nor a whole number.
    """
    if isinstance(key, str):
        return key
    if is_number(key) and float(key).is_integer():
        return str(int(key))
    raise MvuError("MVU_PATH", "a key is text or a whole number")


def with_template(value: Json, node: Mapping[str, Json]) -> Json:
    """A new member laid over the template of its collection."""
    if "template" not in node:
        return value
    template = deepcopy(node["template"])
    if isinstance(template, Mapping):
        return merge_deep(template, value) if isinstance(value, Mapping) else value
    if not isinstance(template, list):
        return value
    if not isinstance(value, list):
        if node.get("strictTemplate") is True:
            return value
        value = [value]
    if node.get("concatTemplateArray") is False:
        merged = [merge_deep(under, over) for under, over in zip(template, value, strict=False)]
        return [*merged, *value[len(template) :], *template[len(value) :]]
    return [*value, *template]
