"""JSON values to stored bytes and back; every string comes back exactly, lone surrogates included."""

import hashlib
import json
from datetime import UTC, datetime

import msgspec

from tapster.engine.ecma import Json, ordered_members, parse_json


def encode(value: Json) -> bytes:
    """Compact JSON in UTF-8; escapes are used only where a lone surrogate asks for them."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()


def encode_pretty(value: Json) -> bytes:
    """JSON with two-space indent and a last newline, as the contract's documents are written."""
    text = json.dumps(_ordered(value), ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    try:
        return text.encode()
    except UnicodeEncodeError:
        escaped = json.dumps(_ordered(value), indent=2, allow_nan=False)
        return (escaped + "\n").encode()


def _ordered(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _ordered(item) for key, item in ordered_members(value)}
    return [_ordered(item) for item in value] if isinstance(value, list) else value


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
    except (UnicodeEncodeError, OverflowError):
        return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()


def unpack(data: bytes) -> Json:
    """The object that ``pack`` wrote."""
    return json.loads(data) if data[:1] == b"{" else msgspec.msgpack.decode(data)


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
