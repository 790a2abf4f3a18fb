"""Paths into variables: dots, ``[0]``, ``["quoted"]``, and JSON pointers.

Source: spec/text_and_mvu C4, B2.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from tapster.engine.ecma import utf16_length
from tapster.engine.limits import MVU_PATH_PARTS, MVU_PATH_UNITS

from .errors import MvuError
from .values import check_key

Json: TypeAlias = Any
_PART = re.compile(r"([^.\[\]]+)|\[\s*(?:(\d+)|\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)')\s*\]", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


def parse_path(text: str) -> tuple[str, ...]:
    """The parts of a path; empty text is the root.

    Raises:
        MvuError: ``MVU_PATH`` for bad syntax or an unsafe key, ``MVU_LIMIT`` for a path that is too long.
    """
    if utf16_length(text) > MVU_PATH_UNITS:
        raise MvuError("MVU_LIMIT", f"a path is longer than {MVU_PATH_UNITS} characters")
    parts: list[str] = []
    position = 0
    while position < len(text):
        dotted = text[position] == "."
        if dotted and not parts:
            raise _bad(text)
        position += dotted
        part = _PART.match(text, position)
        if part is None:
            raise _bad(text)
        named = part[1] is not None
        if (dotted and not named) or (named and parts and not dotted):
            raise _bad(text)
        quoted = part[3] if part[3] is not None else part[4]
        parts.append(part[1] or part[2] or _ESCAPE.sub(r"\1", quoted))
        position = part.end()
    return _checked(parts)


def _bad(text: str) -> MvuError:
    return MvuError("MVU_PATH", f'{text[:80]!r} is not a path; write it as a.b[0]["c d"]')


def parse_pointer(text: str) -> tuple[str, ...]:
    """The parts of a JSON pointer.

    Raises:
        MvuError: as ``parse_path``.
    """
    if text == "":
        return ()
    if utf16_length(text) > MVU_PATH_UNITS:
        raise MvuError("MVU_LIMIT", f"a path is longer than {MVU_PATH_UNITS} characters")
    if not text.startswith("/"):
        raise MvuError("MVU_PATH", f"{text[:80]!r} is not a JSON pointer; it starts with '/'")
    return _checked([part.replace("~1", "/").replace("~0", "~") for part in text[1:].split("/")])


def _checked(parts: list[str]) -> tuple[str, ...]:
    if len(parts) > MVU_PATH_PARTS:
        raise MvuError("MVU_LIMIT", f"a path has more than {MVU_PATH_PARTS} parts")
    for part in parts:
        check_key(part)
    return tuple(parts)


def array_index(key: str, length: int) -> int | None:
    """The index a key stands for in a list of that length, or None."""
    if not (key.isascii() and key.isdigit()) or (len(key) > 1 and key[0] == "0"):
        return None
    index = int(key)
    return index if index < length else None


def value_at(value: Json, parts: Sequence[str]) -> Json:
    """What is at a path.

    Raises:
        KeyError: when there is nothing.
    """
    for part in parts:
        if isinstance(value, Mapping):
            value = value[part]
        elif isinstance(value, list) and (index := array_index(part, len(value))) is not None:
            value = value[index]
        else:
            raise KeyError(part)
    return value


def read_path(value: Json, path: str) -> Json:
    """What is at a path, or None when there is nothing or the path is none."""
    try:
        return value_at(value, parse_path(path))
    except (KeyError, MvuError):
        return None
