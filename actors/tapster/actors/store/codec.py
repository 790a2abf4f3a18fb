"""JSON values to stored bytes and back; every string comes back exactly, lone surrogates included."""

import hashlib
from copy import deepcopy
from datetime import UTC, datetime
from typing import Final

import msgspec

from tapster.engine.ecma import Json, parse_json, stringify

PRETTY_DEPTH: Final = 256


def encode(value: Json) -> bytes:
    """Compact JSON in UTF-8; escapes are used only where a lone surrogate asks for them."""
    try:
        # It holds the interpreter until it is done; the fastest writer keeps a large book from stalling others.
        return msgspec.json.encode(value)
    except (TypeError, UnicodeEncodeError, OverflowError, RecursionError):
        # Lone surrogates, nesting beyond the interpreter's stack: rare, and slower.
        return stringify(value).encode()


def encode_pretty(value: Json) -> bytes:
    """JSON with two-space indent and a last newline, as the contract's documents are written.

    Nesting beyond any real document is written compactly: its indents would outgrow it a thousandfold.
    """
    indent = 2 if is_within(value, PRETTY_DEPTH) else None
    return (stringify(value, indent=indent) + "\n").encode()


def is_within(value: Json, depth: int) -> bool:
    """Whether a value is nested at most that deep."""
    level = [value]
    for _ in range(depth):
        level = [
            child
            for item in level
            if isinstance(item, dict | list)
            for child in (item.values() if isinstance(item, dict) else item)
            if isinstance(child, dict | list)
        ]
        if not level:
            return True
    return False


def decode(data: bytes) -> Json:
    """The value of stored JSON bytes.

    Raises:
        FormatError: it isn't JSON in UTF-8.
    """
    return parse_json(data.decode("utf-8", "replace"))


def pack(value: Json) -> bytes:
    """msgpack, or JSON (which starts with a brace) for an object that msgpack can't hold.

    A msgpack map never starts with a brace, so ``unpack`` tells them apart.
    """
    try:
        return msgspec.msgpack.encode(value)
    except (UnicodeEncodeError, OverflowError, RecursionError):
        return stringify(value).encode()


def unpack(data: bytes) -> Json:
    """The object that ``pack`` wrote."""
    return decode(data) if data[:1] == b"{" else msgspec.msgpack.decode(data)


def copy(value: Json) -> Json:
    """A JSON value that shares nothing with the given one."""
    try:
        return deepcopy(value)
    except RecursionError:
        return decode(encode(value))


def same(left: Json, right: Json) -> bool:
    """Whether two JSON values are equal."""
    try:
        return bool(left == right)
    except RecursionError:
        return stringify(left) == stringify(right)


def sha256(data: bytes) -> str:
    """Lower-case hex SHA-256."""
    return hashlib.sha256(data).hexdigest()


def iso_ms(epoch_ms: int) -> str:
    """``YYYY-MM-DDTHH:mm:ss.sssZ``. Source: spec/resources §0 "Timestamps"."""
    moment = datetime.fromtimestamp(epoch_ms // 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{epoch_ms % 1000:03d}Z"


def epoch_ms(text: Json, default: int = 0) -> int:
    """Epoch milliseconds of an ISO timestamp; ``default`` when it isn't one."""
    if not isinstance(text, str):
        return default
    try:
        return round(datetime.fromisoformat(text).timestamp() * 1000)
    except ValueError:
        return default
