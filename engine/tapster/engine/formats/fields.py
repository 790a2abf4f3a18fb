"""Small rules that several formats share: names, file names, ids, times of JavaScript values.

Source: spec/resources §0, §1.
"""

import re

from tapster.engine.ecma import Json, is_number, number_text, to_number, trim, utf16_length, utf16_slice
from tapster.engine.errors import FormatError
from tapster.engine.limits import RESOURCE_NAME_UNITS

_CONTROL = re.compile("[\x00-\x1f\x7f]")
_RESOURCE_ID = re.compile("[A-Za-z0-9_-]{1,100}")


def short_name(value: Json, fallback: str) -> str:
    """A name trimmed and cut to 200 code units; the fallback for a blank one or a non-string."""
    text = utf16_slice(trim(value), 0, RESOURCE_NAME_UNITS) if isinstance(value, str) else ""
    return text or fallback


def file_name(value: Json, limit: int, fallback: str) -> str:
    """A file name without control characters, trimmed and cut; the fallback for an empty one."""
    text = _CONTROL.sub("", value) if isinstance(value, str) else ""
    return utf16_slice(trim(text), 0, limit) or fallback


def has_control_characters(text: str) -> bool:
    """Whether U+0000-U+001F or U+007F occur."""
    return bool(_CONTROL.search(text))


def check_resource_id(value: Json, slug: str) -> str:
    """The id itself.

    Raises:
        FormatError: the value is not 1 to 100 letters, digits, ``_`` or ``-``.
    """
    if isinstance(value, str) and _RESOURCE_ID.fullmatch(value):
        return value
    raise FormatError(slug, f"an id is 1 to 100 letters, digits, '_' or '-', not {ascii(value)[:80]}")


def is_resource_id(value: Json) -> bool:
    """Whether a value is a valid resource id."""
    return isinstance(value, str) and bool(_RESOURCE_ID.fullmatch(value))


def coerced_number(value: Json) -> float | None:
    """``Number(value)`` where it is finite; null, empty text and everything unnumeric are None."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str):
        number = to_number(value)
        return number if is_number(number) else None
    return value if is_number(value) else None


def positive_integer(value: Json) -> int | None:
    """A positive safe integer, or None."""
    number = coerced_number(value) if not isinstance(value, str | bool) else None
    if number is None or number <= 0 or number != int(number) or abs(number) > 2**53 - 1:
        return None
    return int(number)


def text_of(value: Json) -> str:
    """``String(value)`` for a JSON leaf."""
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return number_text(value) if isinstance(value, int | float) else ""


def is_too_long(text: str, limit: int) -> bool:
    """Whether a text has more UTF-16 code units than the limit."""
    return len(text) > limit or (2 * len(text) > limit and utf16_length(text) > limit)


def is_truthy(value: Json) -> bool:
    """Whether JavaScript takes a JSON value for true: empty lists and objects are."""
    return isinstance(value, list | dict) or bool(value)


def either(value: Json, fallback: Json) -> Json:
    """``value || fallback``."""
    return value if is_truthy(value) else fallback
