"""Paths into variables: dots, ``[0]``, ``["quoted"]``.

Source: spec/text_and_mvu C4, B2.
"""

import re
from collections.abc import Mapping
from typing import Any, TypeAlias

Json: TypeAlias = Any
_PART = re.compile(r"\.?([^.\[\]]+)|\[\s*(\d+|\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')\s*\]")


def read_path(value: Json, path: str) -> Json:
    """What is at a path, or None when there is nothing."""
    position = 0
    while position < len(path):
        part = _PART.match(path, position)
        if part is None:
            return None
        position = part.end()
        key = part[1] if part[1] is not None else part[2]
        if part[1] is None and key[:1] in "\"'":
            key = re.sub(r"\\(.)", r"\1", key[1:-1])
        if isinstance(value, Mapping):
            value = value.get(key)
        elif isinstance(value, list) and key.isascii() and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        else:
            return None
    return value
