"""The card text inside a PNG, by the contract.

Source: spec/resources §4.
"""

import base64
from collections.abc import Iterable

import attrs

from tapster.engine.ecma import trim
from tapster.engine.errors import FormatError

from .chunks import Chunk, PngLimits, iter_chunks

KEYWORDS = ("ccv3", "chara")
"""The keywords of card chunks, the one that wins first."""
_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


@attrs.frozen
class CardText:
    """The JSON text of a card and the chunk it came from.

    ``available_keywords`` are in first-seen order; ``notes`` say what had to be forgiven (code, message).
    """

    keyword: str
    available_keywords: tuple[str, ...]
    text: str
    notes: tuple[tuple[str, str], ...] = ()


def read_card_text(data: bytes, limits: PngLimits = PngLimits()) -> CardText:  # noqa: B008 - a frozen value
    """The card text of a PNG: last chunk of a keyword wins, ``ccv3`` before ``chara``, checksums not looked at.

    Raises:
        FormatError: a slug of the contract's PNG table.
    """
    found: dict[str, str] = {}
    for keyword, encoded in text_chunks(iter_chunks(data, limits)):
        found[keyword] = _decode(keyword, encoded, limits.metadata_bytes)
    for word in KEYWORDS:
        if word in found:
            return CardText(word, tuple(found), found[word])
    raise FormatError("png-no-card", "the PNG holds no character card (no tEXt chunk 'chara' or 'ccv3')")


def text_chunks(chunks: Iterable[Chunk]) -> Iterable[tuple[str, bytes]]:
    """Keyword and encoded text of the card chunks, exactly as the contract recognises them."""
    for chunk in chunks:
        if chunk.type == b"tEXt":
            keyword, separator, encoded = chunk.data.partition(b"\0")
            if separator and keyword in (b"chara", b"ccv3"):
                yield keyword.decode("ascii"), encoded


def _decode(keyword: str, encoded: bytes, limit: int) -> str:
    if len(encoded) > base64_bound(limit):
        raise metadata_limit(keyword, limit)
    text = trim(encoded.decode("latin-1")).encode("latin-1")
    if not _is_strict_base64(text):
        raise FormatError("png-bad-base64", f"the '{keyword}' chunk of the PNG is not valid base64")
    decoded = base64.b64decode(text)
    if len(decoded) > limit:
        raise metadata_limit(keyword, limit)
    return decode_utf8(decoded, keyword)


def _is_strict_base64(text: bytes) -> bool:
    body = text.removesuffix(b"==") if text.endswith(b"==") else text.removesuffix(b"=")
    return bool(body) and len(text) % 4 == 0 and not body.translate(None, _ALPHABET)


def decode_utf8(data: bytes, keyword: str) -> str:
    """UTF-8 text with one leading byte-order mark dropped.

    Raises:
        FormatError: ``png-bad-utf8``.
    """
    try:
        return data.removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError as error:
        raise FormatError(
            "png-bad-utf8", f"the '{keyword}' chunk of the PNG is not UTF-8 at byte {error.start}"
        ) from error


def base64_bound(limit: int) -> int:
    """How many base64 characters ``limit`` bytes can take."""
    return (limit + 2) // 3 * 4


def metadata_limit(keyword: str, limit: int) -> FormatError:
    """The error for a card chunk that is too large."""
    return FormatError("png-metadata-limit", f"the '{keyword}' chunk of the PNG holds more than {limit} bytes")
