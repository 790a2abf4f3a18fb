"""ECMAScript text and JSON rules: UTF-16 lengths, trimming, JSON.parse and JSON.stringify.

The formats Tapster reads were made by JavaScript programs, so their hashes, lengths and member orders are
defined by that engine. Everything here is pure; lone surrogates are legal in every string.

Source: spec/resources §0, spec/trace §2.
"""

import hashlib
import itertools
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from json.encoder import encode_basestring
from typing import Any, TypeAlias

from .errors import FormatError
from .lazy_list import LazyList

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
_ESCAPED_SURROGATES = {code: f"\\u{code:04x}" for code in range(0xD800, 0xE000)}
_NUMERIC = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?Infinity")
_RADIX = {"0x": (16, re.compile(r"[0-9a-fA-F]+")), "0o": (8, re.compile("[0-7]+")), "0b": (2, re.compile("[01]+"))}


def utf16_length(text: str) -> int:
    """Length in UTF-16 code units."""
    if text.isascii():
        return len(text)
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def has_astral(text: str) -> bool:
    """Whether some character takes two UTF-16 units."""
    return not text.isascii() and len(text.encode("utf-16-le", "surrogatepass")) != 2 * len(text)


def utf16_units(text: str) -> Sequence[int]:
    """The UTF-16 code units, as ``charCodeAt`` gives them."""
    if text.isascii():
        return text.encode()
    data = text.encode("utf-16-le", "surrogatepass")
    return [data[index] | data[index + 1] << 8 for index in range(0, len(data), 2)]


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


def parse_json(text: str, *, allow_deep: bool = True) -> Json:
    """``JSON.parse``: strict, last duplicate key wins, members in ECMAScript order.

    Args:
        allow_deep: read what is nested too deeply for the fast decoder, about a second for each megabyte.

    Raises:
        FormatError: slug ``bad-json`` for text that is not JSON, ``too-deep`` where deep text isn't allowed.
    """
    decoder = _ORDERED if _INDEX_KEY_IN_TEXT.search(text) else _PLAIN
    try:
        return decoder.decode(text)
    except RecursionError:
        if not allow_deep:
            raise FormatError("too-deep", "the JSON is nested too deeply") from None
        return _parse_deep(text)
    except ValueError as error:
        raise FormatError("bad-json", f"the text is not JSON: {error}") from None


_TOKEN = re.compile(r'[ \t\n\r]*(?:([\[\]{},:])|("(?:[^"\\\x00-\x1f]|\\.)*")|([^\s\[\]{},:"]+))')


def _parse_deep(text: str) -> Json:
    """``JSON.parse`` without recursion, for text that is nested too deeply for the fast decoder."""
    open_lists: list[tuple[list[Json], bool]] = []
    items: list[Json] = []
    in_object = False
    expects_value, may_close = True, False
    position = 0
    while expects_value or open_lists:
        match = _TOKEN.match(text, position)
        if match is None:
            raise _bad_json(position)
        position = match.end()
        mark = match[1]
        if mark in ("[", "{") and expects_value and not _expects_key(in_object, items):
            open_lists.append((items, in_object))
            items, in_object, may_close = [], mark == "{", True
        elif mark in ("]", "}") and open_lists and in_object == (mark == "}") and (may_close or not expects_value):
            value: Json = _paired(items) if in_object else items
            items, in_object = open_lists.pop()
            items.append(value)
            expects_value, may_close = False, False
        elif mark == "," and open_lists and not expects_value:
            expects_value = True
        elif mark is None and expects_value:
            items.append(_scalar(match[0].strip(" \t\n\r"), position, key=_expects_key(in_object, items)))
            expects_value, may_close = False, False
            if in_object and len(items) % 2:
                position = _after_colon(text, position)
                expects_value = True
        else:
            raise _bad_json(match.start())
    if text[position:].strip(" \t\n\r"):
        raise _bad_json(position)
    return items[0]


def _expects_key(in_object: bool, items: list[Json]) -> bool:
    return in_object and len(items) % 2 == 0


def _paired(items: list[Json]) -> dict[str, Json]:
    return dict(ordered_members(dict(zip(items[::2], items[1::2], strict=True))))


def _after_colon(text: str, position: int) -> int:
    match = _TOKEN.match(text, position)
    if match is None or match[1] != ":":
        raise _bad_json(position)
    return match.end()


def _scalar(text: str, position: int, *, key: bool) -> Json:
    try:
        value = _PLAIN.decode(text)
    except ValueError:
        raise _bad_json(position) from None
    if key and not isinstance(value, str):
        raise _bad_json(position)
    return value


def _bad_json(position: int) -> FormatError:
    return FormatError("bad-json", f"the text is not JSON near character {position}")


def stringify(value: Json, *, indent: int | None = None) -> str:
    """``JSON.stringify(value, null, indent)`` for JSON values; dict members go out in ECMAScript order.

    Raises:
        TypeError: for a value that is not JSON.
    """
    return "".join(_json_pieces(value, indent))


def json_bytes(value: Json) -> bytes:
    """The UTF-8 bytes of ``stringify``.

    Raises:
        TypeError: for a value that is not JSON.
    """
    # Surrogates are escaped in JSON text, so each piece can be encoded by itself.
    return b"".join([piece.encode() for piece in _json_pieces(value, None)])


def _json_pieces(value: Json, indent: int | None) -> Iterator[str]:
    """The text in pieces of some size: joining or freeing a million parts in one step would hold the interpreter."""
    parts = json_parts(value, indent=indent)
    while piece := list(itertools.islice(parts, _PIECE_PARTS)):
        yield "".join(piece)


def json_parts(value: Json, *, indent: int | None = None) -> Iterator[str]:
    """What ``stringify`` joins, piece by piece: for a text that isn't wanted whole, or not at once.

    Raises:
        TypeError: for a value that is not JSON.
    """
    step = "" if indent is None else " " * indent
    newline = "\n" if indent else ""
    stack: list[_Group] = []
    pending: Json = value
    while True:
        group = _group(pending, stack[-1].inner if stack else newline, step)
        if group is None:
            yield _leaf(pending)
        elif group.is_empty:
            yield group.brackets
        else:
            stack.append(group)
        while stack:
            group = stack[-1]
            prefix, pending = next(group.members, _DONE)
            if pending is not _END:
                yield group.separator + prefix
                group.separator = "," + group.inner
                break
            stack.pop()
            yield group.outer + group.brackets[1]
        if not stack:
            return


_PIECE_PARTS = 4096
# Asked first: the other two are slow to ask for, and most values are these.
_LEAVES = (str, int, float, type(None))
_END: Json = object()
_DONE: tuple[str, Json] = ("", _END)


class _Group:
    """An object or list that is being written; ``outer`` and ``inner`` break its lines, empty in compact text."""

    __slots__ = ("brackets", "inner", "is_empty", "members", "outer", "separator")

    def __init__(
        self, brackets: str, members: Iterable[tuple[str, Json]], *, is_empty: bool, outer: str, step: str
    ) -> None:
        self.brackets = brackets
        self.members = iter(members)
        self.is_empty = is_empty
        self.outer = outer
        self.inner = outer + step
        self.separator = brackets[0] + self.inner


class _Written(str):
    """A member whose JSON text is known already."""

    __slots__ = ()


def _group(value: Json, outer: str, step: str) -> _Group | None:
    """An object or list about to be written; None for a leaf."""
    if isinstance(value, _LEAVES):
        return None
    if isinstance(value, Mapping):
        colon = ": " if outer else ":"
        members = [(quote(key) + colon, member) for key, member in ordered_members(value)]
        return _Group("{}", members, is_empty=not members, outer=outer, step=step)
    if isinstance(value, Sequence):
        items = _list_members(value, is_compact=not outer)
        return _Group("[]", items, is_empty=len(value) == 0, outer=outer, step=step)
    return None


def _list_members(value: Sequence[Json], *, is_compact: bool) -> Iterator[tuple[str, Json]]:
    if is_compact and isinstance(value, LazyList):
        for index in range(len(value)):
            text = value.written(index)
            yield "", value[index] if text is None else _Written(text)
        return
    for member in value:
        yield "", member


def _leaf(value: Json) -> str:
    if isinstance(value, str):
        return value if isinstance(value, _Written) else quote(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return number_text(value) if math.isfinite(value) else "null"
    raise TypeError(f"{type(value).__name__} is not a JSON value")


def quote(text: str) -> str:
    """A JSON string literal; lone surrogates become ``\\udXXX``, everything else above U+001F stays raw."""
    literal = encode_basestring(text)
    return literal if literal.isascii() or is_well_formed(literal) else literal.translate(_ESCAPED_SURROGATES)


def is_well_formed(text: str) -> bool:
    """Whether a text has no surrogate among its characters."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def well_formed(text: str) -> str:
    """``String.prototype.toWellFormed``: pairs of surrogates joined, lone ones replaced by U+FFFD."""
    if is_well_formed(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def utf8(text: str) -> bytes:
    """UTF-8 bytes as a JavaScript encoder gives them (a lone surrogate becomes U+FFFD)."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return well_formed(text).encode()


def sha256_text(text: str) -> str:
    """Lower-case hex SHA-256 of a string's UTF-8 bytes. Source: spec/trace §2."""
    return hashlib.sha256(utf8(text)).hexdigest()


def sha256_json(value: Json) -> str:
    """Lower-case hex SHA-256 of ``JSON.stringify(value)``. Source: spec/trace §2."""
    digest = hashlib.sha256()
    for part in json_parts(value):
        digest.update(part.encode())
    return digest.hexdigest()
