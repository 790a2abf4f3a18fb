"""JSON from outside: counted and measured on its bytes before anything is built.

A hostile text is refused by what it would cost (values, depth) in time linear in its length; only a text within the
limits is parsed.

Source: spec/resources §0 "JSON input"; docs/formats.md "Limits".
"""

from collections.abc import Iterator

import attrs

from tapster.engine.ecma import Json, parse_json
from tapster.engine.errors import FormatError
from tapster.engine.limits import JSON_DEPTH, JSON_ESCAPES, JSON_VALUES

_WINDOW = 1 << 18
_STRUCTURE = bytes(byte for byte in range(256) if byte not in b"[]{},")
_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")


@attrs.frozen
class JsonLimits:
    """Bounds of a JSON text: values in it, levels of nesting, backslashes (each costs the parser a step)."""

    values: int = JSON_VALUES
    depth: int = JSON_DEPTH
    escapes: int = JSON_ESCAPES


def load_json(given: bytes | str, limits: JsonLimits = JsonLimits()) -> Json:
    """The value of a JSON text within its limits; bytes are UTF-8 with one byte-order mark dropped.

    Raises:
        FormatError: ``bad-utf8``, ``bad-json``, or a limit as in ``check_json``.
    """
    text = decode_text(given) if isinstance(given, bytes) else given
    check_json(given if isinstance(given, bytes) else text.encode("utf-8", "surrogatepass"), limits)
    return parse_json(text)


def decode_text(data: bytes) -> str:
    """UTF-8 text with one leading byte-order mark dropped.

    Raises:
        FormatError: ``bad-utf8``.
    """
    try:
        return data.removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError as error:
        raise FormatError("bad-utf8", f"the file is not UTF-8 text at byte {error.start}; save it as UTF-8") from error


def check_json(data: bytes, limits: JsonLimits) -> None:
    """Refuse a text that would build too many values or too deep ones; it need not be JSON.

    Raises:
        FormatError: ``json-too-many-values``, ``json-too-many-escapes`` or ``json-too-deep``.
    """
    escapes = data.count(b"\\")
    if escapes > limits.escapes:
        raise FormatError("json-too-many-escapes", f"the JSON holds more than {limits.escapes} escapes in its texts")
    if _cheap_bound(data) <= min(limits.values, limits.depth):
        return
    if escapes:
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    if data.count(b'"') > 4 * limits.values:  # a string is a value, or the name of one
        raise _too_many(limits)
    values = 1
    depth = 0
    for part in _outside_strings(data):
        marks = part.translate(None, _STRUCTURE)
        values += marks.count(b",") + marks.count(b"[") + marks.count(b"{")
        if values > limits.values:
            raise _too_many(limits)
        depth = _follow(marks.translate(None, _BRACKETS), depth, limits)


def _cheap_bound(data: bytes) -> int:
    return data.count(b",") + data.count(b"[") + data.count(b"{") + 1


def _outside_strings(data: bytes) -> Iterator[bytes]:
    """The text between string literals, a window at a time; escapes have been taken out."""
    inside = False
    for start in range(0, len(data), _WINDOW):
        pieces = data[start : start + _WINDOW].split(b'"')
        yield b"".join(pieces[1 if inside else 0 :: 2])
        inside ^= len(pieces) % 2 == 0


def _follow(brackets: bytes, depth: int, limits: JsonLimits) -> int:
    for mark in brackets:
        if mark in b"[{":
            depth += 1
            if depth > limits.depth:
                raise FormatError("json-too-deep", f"the JSON is nested deeper than {limits.depth} levels")
        else:
            depth -= 1
    return depth


def _too_many(limits: JsonLimits) -> FormatError:
    return FormatError("json-too-many-values", f"the JSON holds more than {limits.values} values")
