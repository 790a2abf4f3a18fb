"""The schema that variables carry themselves: derived from values and their ``$meta``, and checked after each command.

Source: spec/text_and_mvu C3.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from .errors import MvuError

Json: TypeAlias = Any
META = "$meta"
EXTENSIBLE_MARK = "$__META_EXTENSIBLE__$"
ARRAY_META = "$arrayMeta"
_COPIED = ("template", "strictSet", "strictTemplate", "concatTemplateArray")
ANY: Mapping[str, Json] = {"type": "any"}


def derive_schema(
    value: Json, previous: Json = None, *, recursive: bool = False, settled: Json = None
) -> tuple[Json, dict[str, Json]]:
    """A value without its marks, and its schema; what an earlier schema says stays in force.

    Args:
        value: the value, with or without marks.
        previous: the schema before.
        recursive: whether something around it makes all within it extensible.
        settled: the value that ``previous`` was derived from. Parts of it that are still in ``value`` as the same
            objects are taken over as they are, so that a small change of a large value costs little.
    """
    if value is settled and _is_current(value, previous, recursive):
        return value, previous
    if isinstance(value, Mapping):
        return _object(value, _of_type(previous, "object"), recursive, settled)
    if isinstance(value, list):
        return _array(value, _of_type(previous, "array"), recursive)
    return value, {"type": type_name(value)}


def _is_current(value: Json, previous: Json, recursive: bool) -> bool:
    """Whether deriving the schema of a settled container again would give the one it has."""
    is_container = isinstance(value, dict | list) and isinstance(previous, dict)
    return is_container and (not recursive or previous.get("recursiveExtensible") is True)


def type_name(value: Json) -> str:
    """The schema's word for a value's type; null says nothing."""
    if value is None:
        return "any"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "object" if isinstance(value, Mapping) else "array"


def _of_type(node: Json, wanted: str) -> Mapping[str, Json]:
    return node if isinstance(node, Mapping) and node.get("type") == wanted else {}


def _flags(meta: Mapping[str, Json], previous: Mapping[str, Json], recursive: bool) -> tuple[bool, bool]:
    own_recursive = meta.get("recursiveExtensible") is True or recursive or previous.get("recursiveExtensible") is True
    if isinstance(meta.get("extensible"), bool):
        return meta["extensible"], own_recursive
    return own_recursive or previous.get("extensible") is True, own_recursive


def _copied(meta: Mapping[str, Json], previous: Mapping[str, Json]) -> dict[str, Json]:
    return {key: meta.get(key, previous.get(key)) for key in _COPIED if key in meta or key in previous}


def _object(
    value: Mapping[str, Json], previous: Mapping[str, Json], recursive: bool, settled: Json
) -> tuple[Json, dict[str, Json]]:
    meta = value.get(META)
    meta = meta if isinstance(meta, Mapping) else {}
    extensible, own_recursive = _flags(meta, previous, recursive)
    listed = meta.get("required")
    listed = listed if isinstance(listed, list) else ()
    known: Mapping[str, Json] = previous.get("properties") or {}
    members: Mapping[str, Json] = settled if isinstance(settled, Mapping) else {}
    clean: dict[str, Json] = {}
    properties: dict[str, Json] = {}
    for key, member in value.items():
        if key == META:
            continue
        before = known.get(key)
        clean[key], node = derive_schema(member, before, recursive=own_recursive, settled=members.get(key))
        required = before.get("required") if isinstance(before, Mapping) else None
        is_required = key in listed or (required if isinstance(required, bool) else not extensible)
        properties[key] = node if node.get("required") is is_required else {**node, "required": is_required}
    node = {"type": "object", "extensible": extensible, "recursiveExtensible": own_recursive, "properties": properties}
    return clean, node | _copied(meta, previous)


def _array(value: Sequence[Json], previous: Mapping[str, Json], recursive: bool) -> tuple[Json, dict[str, Json]]:
    meta: dict[str, Json] = {}
    clean: list[Json] = []
    for item in value:
        if item == EXTENSIBLE_MARK:
            meta["extensible"] = True
        elif isinstance(item, Mapping) and item.get(ARRAY_META) is True:
            meta |= item.get(META) or {}
        else:
            clean.append(item)
    extensible, own_recursive = _flags(meta, previous, recursive)
    node = {
        "type": "array",
        "extensible": extensible,
        "recursiveExtensible": own_recursive,
        "elementType": dict(ANY),
    }
    return clean, node | _copied(meta, previous)


def validate(value: Json, node: Json, path: str = "stat_data", *, settled: Json = None) -> None:
    """Check a value against its schema.

    Args:
        value: the value, without marks.
        node: the schema.
        path: how the value is called in messages.
        settled: the value that the schema was derived from; parts of it that are still there hold.

    Raises:
        MvuError: ``MVU_SCHEMA``.
    """
    if value is settled and isinstance(value, dict | list):
        return
    wanted = node.get("type", "any")
    if value is None or wanted == "any":
        return
    if type_name(value) != wanted:
        raise MvuError("MVU_SCHEMA", f"{path} is {type_name(value)}; it must be {wanted}")
    if wanted != "object":
        return
    properties: Mapping[str, Json] = node.get("properties") or {}
    members: Mapping[str, Json] = settled if isinstance(settled, Mapping) else {}
    for key, child in properties.items():
        if key in value:
            validate(value[key], child, f"{path}.{key}", settled=members.get(key))
        elif child.get("required") is True:
            raise MvuError("MVU_SCHEMA", f"{path}.{key} is required")
    if node.get("extensible") is not True:
        for key in value:
            if key not in properties and key != META:
                raise MvuError("MVU_SCHEMA", f"{path} takes no further member like {key!r}")


def node_at(schema: Json, path: Sequence[str]) -> Mapping[str, Json]:
    """The schema node of a path; ``any`` where the schema says nothing."""
    node = schema
    for part in path:
        if not isinstance(node, Mapping) or node.get("type") != "object":
            return ANY
        node = (node.get("properties") or {}).get(part)
    return node if isinstance(node, Mapping) else ANY
