"""ECMAScript text and JSON rules: UTF-16 lengths, trimming, JSON.parse and JSON.stringify.

The formats Tapster reads were made by JavaScript programs, so their hashes, lengths and member orders are
defined by that engine. Everything here is pure; lone surrogates are legal in every string.

Source: spec/resources §0, spec/trace §2.
"""

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from .errors import FormatError

Json: TypeAlias = Any
"""A JSON value: None, bool, int, float, str, list or dict with string keys."""

MAX_SAFE_INTEGER = 2**53 - 1
# White_Space of Unicode as ECMAScript trims it: with U+FEFF and the line terminators, without U+0085 and U+001C-U+001F.
WHITE_SPACE = (
    "\t\n\v\f\r \xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
_INDEX_KEY = re.compile(r"0|[1-9][0-9]{0,9}")
_INDEX_KEY_IN_TEXT = re.compile(r'"[0-9]')
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPED = re.compile(r'[\x00-\x1f"\\\ud800-\udfff]')
_SHORT_ESCAPES = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
_NUMERIC = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?Infinity")
_RADIX = {"0x": (16, re.compile(r"[0-9a-fA-F]+")), "0o": (8, re.compile("[0-7]+")), "0b": (2, re.compile("[01]+"))}


def utf16_length(text: str) -> int:
    """Length in UTF-16 code units."""
    if text.isascii():
        return len(text)
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def utf16_slice(text: str, start: int, end: int | None = None) -> str:
    """The code units [start, end); a cut through a surrogate pair leaves a lone surrogate.

    Negative bounds count from the end, as in ``String.prototype.slice``.
    """
    if text.isascii():
        return text[start:end]
    data = text.encode("utf-16-le", "surrogatepass")
    units = len(data) // 2
    first, last, _ = slice(start, end).indices(units)
    return data[2 * first : 2 * max(first, last)].decode("utf-16-le", "surrogatepass")


def trim(text: str) -> str:
    """``String.prototype.trim``."""
    return text.strip(WHITE_SPACE)


def is_record(value: Json) -> bool:
    """Whether a JSON value is an object (not null, not a list)."""
    return isinstance(value, dict)


def is_number(value: Json) -> bool:
    """Whether a JSON value is a finite number (booleans are not)."""
    return not isinstance(value, bool) and isinstance(value, int | float) and math.isfinite(value)


def is_safe_integer(value: Json) -> bool:
    """Whether a JSON value is an integer of magnitude at most 2^53 - 1 (4.0 is one)."""
    return is_number(value) and float(value).is_integer() and abs(value) <= MAX_SAFE_INTEGER


def to_number(text: str) -> float | None:
    """The number a numeric string stands for, or None.

    Source: spec/resources §0 "Numeric-string coercion"; an empty string is not numeric here.
    """
    trimmed = trim(text)
    if _NUMERIC.fullmatch(trimmed):
        return _narrow(float(trimmed.replace("Infinity", "inf")))
    base = _RADIX.get(trimmed[:2].lower())
    if base is not None and base[1].fullmatch(trimmed[2:]):
        return _narrow(float(int(trimmed[2:], base[0])))
    return None


def _narrow(number: float) -> float:
    return int(number) if number.is_integer() and abs(number) <= MAX_SAFE_INTEGER else number


def number_text(number: float) -> str:
    """``String(number)`` of ECMAScript."""
    if isinstance(number, int) and abs(number) <= MAX_SAFE_INTEGER:
        return str(number)
    value = float(number)
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "0"
    mantissa, _, exponent_text = f"{abs(value)!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = "" if fraction == "0" else fraction
    point = len(whole) + int(exponent_text or 0)
    raw = whole + fraction
    digits = raw.lstrip("0")
    point -= len(raw) - len(digits)
    digits = digits.rstrip("0")
    count = len(digits)
    sign = "-" if value < 0 else ""
    if count <= point <= 21:
        return sign + digits + "0" * (point - count)
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    tail = f".{digits[1:]}" if count > 1 else ""
    return f"{sign}{digits[0]}{tail}e{'+' if point > 0 else '-'}{abs(point - 1)}"


def is_index_key(key: str) -> bool:
    """Whether an object key is a canonical array index (below 2^32 - 1)."""
    return bool(_INDEX_KEY.fullmatch(key)) and int(key) < 2**32 - 1


def ordered_members(value: Mapping[str, Json]) -> list[tuple[str, Json]]:
    """The members in ECMAScript order: index keys ascending, then the others as inserted."""
    indexed = [key for key in value if key and key[0].isdigit() and is_index_key(key)]
    if not indexed:
        return list(value.items())
    indexed.sort(key=int)
    first = set(indexed)
    return [(key, value[key]) for key in indexed] + [item for item in value.items() if item[0] not in first]


def _parse_int(text: str) -> float:
    number = int(text) if len(text) < 20 else float(text)
    return number if abs(number) <= MAX_SAFE_INTEGER else float(number)


def _parse_float(text: str) -> float:
    return _narrow(float(text))


def _refuse_constant(name: str) -> Json:
    raise ValueError(f"{name} is not JSON")


def _ordered_object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    return dict(ordered_members(dict(pairs)))


_PLAIN = json.JSONDecoder(parse_float=_parse_float, parse_int=_parse_int, parse_constant=_refuse_constant)
_ORDERED = json.JSONDecoder(
    parse_float=_parse_float,
    parse_int=_parse_int,
    parse_constant=_refuse_constant,
    object_pairs_hook=_ordered_object,
)


def parse_json(text: str) -> Json:
    """``JSON.parse``: strict, last duplicate key wins, members in ECMAScript order.

    Raises:
        FormatError: slug ``bad-json`` for text that is not JSON, ``json-too-deep`` when it is nested deeper than
            the parser can follow.
    """
    decoder = _ORDERED if _INDEX_KEY_IN_TEXT.search(text) else _PLAIN
    try:
        return decoder.decode(text)
    except RecursionError:
        raise FormatError("json-too-deep", "the JSON text is nested too deeply") from None
    except ValueError as error:
        raise FormatError("bad-json", f"the text is not JSON: {error}") from None


def stringify(value: Json, *, indent: int | None = None) -> str:
    """``JSON.stringify(value, null, indent)`` for JSON values; dict members go out in ECMAScript order.

    Raises:
        TypeError: for a value that is not JSON.
    """
    parts: list[str] = []
    _write(value, parts, "" if indent is None else " " * indent, "\n" if indent else "")
    return "".join(parts)


def _write(value: Json, parts: list[str], step: str, newline: str) -> None:
    if value is None:
        parts.append("null")
    elif value is True:
        parts.append("true")
    elif value is False:
        parts.append("false")
    elif isinstance(value, str):
        parts.append(quote(value))
    elif isinstance(value, int | float):
        parts.append(number_text(value) if math.isfinite(value) else "null")
    elif isinstance(value, Mapping):
        colon = ": " if newline else ":"
        members = ordered_members(value)
        _write_group("{}", [(quote(key) + colon, member) for key, member in members], parts, step, newline)
    elif isinstance(value, Sequence):
        _write_group("[]", [("", member) for member in value], parts, step, newline)
    else:
        raise TypeError(f"{type(value).__name__} is not a JSON value")


def _write_group(brackets: str, members: list[tuple[str, Json]], parts: list[str], step: str, newline: str) -> None:
    if not members:
        parts.append(brackets)
        return
    inner = newline + step if newline else ""
    separator = brackets[0] + inner
    for prefix, member in members:
        parts.append(separator)
        parts.append(prefix)
        _write(member, parts, step, inner)
        separator = "," + inner
    parts.append(newline + brackets[1])


def quote(text: str) -> str:
    """A JSON string literal; lone surrogates become ``\\udXXX``, everything else above U+001F stays raw."""
    return '"' + _ESCAPED.sub(_escape, text) + '"'


def _escape(match: re.Match[str]) -> str:
    character = match.group()
    return _SHORT_ESCAPES.get(character) or f"\\u{ord(character):04x}"


def well_formed(text: str) -> str:
    """``String.prototype.toWellFormed``: pairs of surrogates joined, lone ones replaced by U+FFFD."""
    if not _LONE_SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def utf8(text: str) -> bytes:
    """UTF-8 bytes as a JavaScript encoder gives them (a lone surrogate becomes U+FFFD)."""
    return well_formed(text).encode()


def sha256_text(text: str) -> str:
    """Lower-case hex SHA-256 of a string's UTF-8 bytes. Source: spec/trace §2."""
    return hashlib.sha256(utf8(text)).hexdigest()


def sha256_json(value: Json) -> str:
    """Lower-case hex SHA-256 of ``JSON.stringify(value)``. Source: spec/trace §2."""
    return sha256_text(stringify(value))
