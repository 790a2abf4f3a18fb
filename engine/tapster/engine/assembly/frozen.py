"""JSON values that can't be changed, still dicts and lists to every reader.

A request's context is copied into this form once; all sources of the request then share it.
Source: spec/assembler §5.
"""

from typing import NoReturn

from tapster.engine.ecma import Json


def _refuse(*_: object, **__: object) -> NoReturn:
    raise TypeError("a request context is read-only")


class FrozenDict(dict[str, Json]):
    """A JSON object whose members can't change."""

    __slots__ = ()
    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse


class FrozenList(list[Json]):
    """A JSON list whose items can't change."""

    __slots__ = ()
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = extend = insert = pop = remove = clear = sort = reverse = _refuse


def freeze(value: Json) -> Json:
    """A deep, read-only copy of a JSON value; an already frozen value is returned as it is."""
    if isinstance(value, FrozenDict | FrozenList):
        return value
    if isinstance(value, dict):
        return FrozenDict((key, freeze(member)) for key, member in value.items())
    if isinstance(value, list | tuple):
        return FrozenList(freeze(item) for item in value)
    return value


def thaw(value: Json) -> Json:
    """A plain, changeable copy of a JSON value."""
    if isinstance(value, dict):
        return {key: thaw(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [thaw(item) for item in value]
    return value
