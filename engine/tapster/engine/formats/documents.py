"""Frozen values to and from the contract's stored JSON documents.

A member is the field's name in camelCase. A field whose value is None is left out, unless it is declared with
``NULLABLE``: then it is written as null. A ``FLATTENED`` field holds the members that have no field of their own.

Source: spec/resources §2.2, §3.2, §6.3.
"""

import types
from collections.abc import Mapping
from functools import cache
from typing import Any, Final, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import attrs

from tapster.engine.ecma import Json
from tapster.engine.errors import StoreError

Value = TypeVar("Value")


class DocumentInvalid(StoreError):
    """A stored document does not have the shape of its kind."""

    code = "DOCUMENT_INVALID"
    kind = "TypeError"


NULLABLE: Final = {"nullable": True}
"""Metadata of a field that is written as null when it is None."""
FLATTENED: Final = {"flattened": True}
"""Metadata of a field whose members stand beside the others in the document."""


def camel(name: str) -> str:
    """``snake_case`` as ``camelCase``."""
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


def to_document(value: Any) -> Json:
    """The JSON form of a value; opaque JSON inside it is shared, not copied."""
    kind: Any = type(value)
    is_value: bool = attrs.has(kind)
    if is_value:
        document: dict[str, Json] = {}
        for field, member, _ in _plan(kind):
            part = getattr(value, field.name)
            if field.metadata.get("flattened"):
                document.update(part)
            elif part is not None or field.metadata.get("nullable"):
                document[member] = to_document(part)
        return document
    if isinstance(value, tuple):
        return [to_document(item) for item in value]
    return value


def from_document(kind: type[Value], document: Json, path: str = "$") -> Value:
    """The value that a document holds.

    Raises:
        DocumentInvalid: a member is missing or has another type; the message names its path.
    """
    return cast("Value", _read(kind, document, path))


def _read(kind: Any, given: Json, path: str) -> Any:
    if attrs.has(kind):
        return _read_object(kind, given, path)
    origin = get_origin(kind)
    if origin is tuple:
        if not isinstance(given, list):
            raise _wrong(path, "a list")
        item = get_args(kind)[0]
        return tuple([_read(item, member, f"{path}[{index}]") for index, member in enumerate(given)])
    if origin is Literal:
        if not any(type(given) is type(word) and given == word for word in get_args(kind)):
            raise _wrong(path, " or ".join(map(repr, get_args(kind))))
        return given
    if origin in (Union, types.UnionType):
        return _read_union(get_args(kind), given, path)
    return _read_leaf(kind, origin, given, path)


def _read_union(kinds: tuple[Any, ...], given: Json, path: str) -> Any:
    if given is None and type(None) in kinds:
        return None
    rest = [kind for kind in kinds if kind is not type(None)]
    for kind in rest[:-1]:
        try:
            return _read(kind, given, path)
        except DocumentInvalid:
            continue
    return _read(rest[-1], given, path)


def _read_leaf(kind: Any, origin: Any, given: Json, path: str) -> Any:
    if kind is Any:
        return given
    if (origin or kind) in (Mapping, dict):
        if isinstance(given, dict):
            return given
        raise _wrong(path, "an object")
    if kind is bool or isinstance(given, bool):
        matches = kind is bool and isinstance(given, bool)
    else:
        matches = isinstance(given, int | float if kind is float else kind)
    if not matches:
        raise _wrong(path, f"of type {kind.__name__}")
    return given


def _read_object(kind: Any, given: Json, path: str) -> Any:
    if not isinstance(given, dict):
        raise _wrong(path, "an object")
    plan = _plan(kind)
    known = {member for _, member, _ in plan}
    values: dict[str, Any] = {}
    for field, member, hint in plan:
        if field.metadata.get("flattened"):
            values[field.name] = {key: item for key, item in given.items() if key not in known}
        elif member in given:
            values[field.name] = _read(hint, given[member], f"{path}.{member}")
        elif field.default is attrs.NOTHING:
            raise DocumentInvalid(f"the stored document has no {path}.{member}; restore it or import the file again")
    return kind(**values)


@cache
def _plan(kind: Any) -> tuple[tuple[Any, str, Any], ...]:
    hints = get_type_hints(kind)
    return tuple((field, camel(field.name), hints[field.name]) for field in attrs.fields(kind) if field.init)


def _wrong(path: str, wanted: str) -> DocumentInvalid:
    return DocumentInvalid(f"{path} of the stored document must be {wanted}; restore it or import the file again")
