"""Where a preset or card keeps its regex scripts, and how they are replaced there.

Source: spec/resources §8 "Lookup order", "Replace".
"""

from collections.abc import Mapping, Sequence

from tapster.engine.ecma import Json, is_record
from tapster.engine.errors import FormatError

_PATHS = (("regex_scripts",), ("extensions", "regex_scripts"), ("data", "extensions", "regex_scripts"))
_OWNER_KINDS = ("preset", "character")
_NESTED_FORMATS = ("sillytavern-v2", "character-card-v3")


def read_regex_scripts(raw: Mapping[str, Json]) -> tuple[Json, ...]:
    """The scripts of a raw preset or card, word for word; empty when it has none."""
    path = _existing_path(raw)
    return tuple(_at(raw, path)) if path else ()


def replace_regex_scripts(raw: Mapping[str, Json], scripts: Json, *, kind: str, format: str) -> dict[str, Json]:
    """The raw preset or card with its scripts replaced, where it keeps them or where its format does.

    Raises:
        FormatError: ``bad-kind``, ``regex-not-array`` or ``regex-item-not-object``.
    """
    if kind not in _OWNER_KINDS:
        raise FormatError("bad-kind", f"regex scripts belong to a preset or a character, not to {ascii(kind)[:40]}")
    if not isinstance(scripts, list):
        raise FormatError("regex-not-array", "regex scripts are a list of objects")
    for index, script in enumerate(scripts):
        if not is_record(script):
            raise FormatError("regex-item-not-object", f"regex script {index} must be an object")
    nested = kind == "character" and format in _NESTED_FORMATS
    return _replaced(raw, _existing_path(raw) or _PATHS[2 if nested else 1], scripts)


def _existing_path(raw: Mapping[str, Json]) -> tuple[str, ...] | None:
    return next((path for path in _PATHS if isinstance(_at(raw, path), list)), None)


def _at(raw: Json, path: Sequence[str]) -> Json:
    for key in path:
        if not is_record(raw):
            return None
        raw = raw.get(key)
    return raw


def _replaced(raw: Json, path: Sequence[str], value: Json) -> dict[str, Json]:
    out: dict[str, Json] = dict(raw) if is_record(raw) else {}
    out[path[0]] = value if len(path) == 1 else _replaced(out.get(path[0]), path[1:], value)
    return out
