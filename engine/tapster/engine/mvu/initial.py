"""Initial variables out of a card and its books, and for a chat that is already running.

Source: spec/text_and_mvu C2; vectors/README op ``mvu_init``.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import attrs

from .core_yaml import parse_core_yaml
from .declared import declared_schema
from .errors import MvuError
from .values import check_value, merge_deep
from .variables import normalize_variables

Json: TypeAlias = Any
INITVAR = "[initvar]"
INTERPRETER_VERSION = 2
SCHEMA_IMPORT = "import { registerMvuSchema }"


@attrs.frozen
class InitialState:
    """What a card starts its sessions with; ``schema_source`` is its declared schema, never executed as a script."""

    stat_data: Mapping[str, Json]
    schema_source: str | None = None


def initial_from_card(raw: Json) -> InitialState:
    """The initial state a card declares.

    Raises:
        MvuError: ``MVU_INITIALIZATION_MISSING``, ``MVU_INITIALIZATION_INVALID`` or ``MVU_SCHEMA_CONFLICT``.
    """
    if not isinstance(raw, Mapping):
        raise MvuError("MVU_INITIALIZATION_MISSING", "the card is no object")
    data = raw["data"] if isinstance(raw.get("data"), Mapping) else raw
    entries = list(book_entries(data.get("character_book")))
    contents = [_text(entry, "content") for entry in entries if INITVAR in _text(entry, "comment").lower()]
    schema = schema_source((*_texts(entries), *_scripts(data)))
    if not contents and schema is None:
        raise MvuError("MVU_INITIALIZATION_MISSING", "the card has neither [initvar] entries nor a variable schema")
    return InitialState(merge_initial(parse_initvar(content) for content in contents), schema)


def initial_variables(state: InitialState) -> dict[str, Json]:
    """The variables document a session starts with, held to the declared schema if there is one.

    Raises:
        MvuError: ``MVU_SCHEMA_CODE`` or ``MVU_SCHEMA`` from the declared schema; as ``normalize_variables``.
    """
    if state.schema_source is None:
        return normalize_variables({"stat_data": state.stat_data})
    document = {"mvuSchema": 1, "interpreterVersion": INTERPRETER_VERSION, "source": state.schema_source}
    return normalize_variables({"stat_data": declared_schema(document)(state.stat_data), "mvu_schema": document})


def book_entries(book: Json) -> Iterator[Mapping[str, Json]]:
    """The entries of an embedded book, whether it keeps them as a list or as an object."""
    entries = book.get("entries") if isinstance(book, Mapping) else None
    items = entries.values() if isinstance(entries, Mapping) else entries if isinstance(entries, list) else ()
    yield from (item for item in items if isinstance(item, Mapping))


def _text(entry: Mapping[str, Json], key: str) -> str:
    value = entry.get(key)
    return value if isinstance(value, str) else ""


def _texts(entries: Iterable[Mapping[str, Json]]) -> Iterator[str]:
    return (_text(entry, "content") for entry in entries)


def _scripts(data: Mapping[str, Json]) -> Iterator[str]:
    """Every script text in the card's extensions."""
    stack: list[Json] = [data.get("extensions")]
    while stack:
        item = stack.pop()
        if isinstance(item, Mapping):
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)
        elif isinstance(item, str):
            yield item


def schema_source(texts: Iterable[str]) -> str | None:
    """The one declared schema among texts.

    Raises:
        MvuError: ``MVU_SCHEMA_CONFLICT`` when two differ.
    """
    found = {text for text in texts if SCHEMA_IMPORT in text}
    if len(found) > 1:
        raise MvuError("MVU_SCHEMA_CONFLICT", "there are two different variable schemas")
    return found.pop() if found else None


def parse_initvar(content: str) -> Mapping[str, Json]:
    """The variables of one ``[initvar]`` entry.

    Raises:
        MvuError: ``MVU_INITIALIZATION_INVALID``.
    """
    value = parse_core_yaml(content)
    if not isinstance(value, Mapping):
        raise MvuError("MVU_INITIALIZATION_INVALID", "an [initvar] entry must hold an object")
    check_value(value)
    return value


def merge_initial(parts: Iterable[Mapping[str, Json]]) -> Mapping[str, Json]:
    """Entries laid over one another, in order."""
    merged: Mapping[str, Json] = {}
    for part in parts:
        merged = merge_deep(merged, part)
    return merged


def initialize_running(variables: Json, initial: Mapping[str, Json]) -> dict[str, Json]:
    """A running chat's variables with the root members that it lacks; what it has stays.

    Raises:
        MvuError: as ``normalize_variables``.
    """
    current = variables.get("stat_data") or {} if isinstance(variables, Mapping) else None
    if not isinstance(current, Mapping):
        raise MvuError("MVU_SCHEMA", "the variables and their stat_data must be objects")
    return normalize_variables({**variables, "stat_data": {**initial, **current}})
