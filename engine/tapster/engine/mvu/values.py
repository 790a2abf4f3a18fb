"""What may be a variable: plain JSON within limits; merging of objects.

Source: spec/text_and_mvu C1.
"""

import math
from collections.abc import Mapping
from typing import Any, TypeAlias

from tapster.engine.ecma import stringify, utf8
from tapster.engine.limits import MVU_MAX_BYTES, MVU_MAX_DEPTH, MVU_MAX_NODES

from .errors import MvuError

Json: TypeAlias = Any
UNSAFE_KEYS = frozenset({"__proto__", "prototype", "constructor"})


def check_value(value: Json) -> None:
    """Refuse what is not plain JSON within the limits.

    Raises:
        MvuError: ``MVU_JSON``, ``MVU_LIMIT`` or ``MVU_PATH`` (an unsafe key).
    """
    nodes = 0
    stack: list[tuple[Json, int]] = [(value, 1)]
    while stack:
        item, depth = stack.pop()
        nodes += 1
        if nodes > MVU_MAX_NODES or depth > MVU_MAX_DEPTH:
            raise MvuError("MVU_LIMIT", f"the variables hold over {MVU_MAX_NODES} values or nest over {MVU_MAX_DEPTH}")
        if isinstance(item, Mapping):
            for key, member in item.items():
                check_key(key)
                stack.append((member, depth + 1))
        elif isinstance(item, list | tuple):
            stack.extend((member, depth + 1) for member in item)
        elif isinstance(item, float) and not math.isfinite(item):
            raise MvuError("MVU_JSON", "a number of the variables is not finite")
        elif item is not None and not isinstance(item, str | int | float):
            raise MvuError("MVU_JSON", f"{type(item).__name__} is not a JSON value")
    if len(utf8(stringify(value))) > MVU_MAX_BYTES:
        raise MvuError("MVU_LIMIT", f"the variables are larger than {MVU_MAX_BYTES} bytes")


def check_key(key: Json) -> None:
    """Refuse a key that JavaScript objects can't hold safely.

    Raises:
        MvuError: ``MVU_PATH``, or ``MVU_JSON`` for a key that is no text.
    """
    if not isinstance(key, str):
        raise MvuError("MVU_JSON", "a key of the variables is not text")
    if key in UNSAFE_KEYS:
        raise MvuError("MVU_PATH", f"{key!r} can't be a key of the variables")


def merge_deep(base: Json, over: Json) -> Json:
    """``over`` laid on ``base``: objects member by member, everything else replaced."""
    if not (isinstance(base, Mapping) and isinstance(over, Mapping)):
        return over
    merged = dict(base)
    for key, value in over.items():
        merged[key] = merge_deep(merged[key], value) if key in merged else value
    return merged
