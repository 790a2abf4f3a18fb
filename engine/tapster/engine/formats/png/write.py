"""Card texts into and out of PNG files.

Source: spec/resources §4 "Write".
"""

import base64
from collections.abc import Sequence

from tapster.engine.ecma import trim, utf8
from tapster.engine.errors import FormatError

from .chunks import Chunk, PngLimits, iter_chunks, write_png
from .text import KEYWORDS, metadata_limit

_TEXT_TYPES = (b"tEXt", b"zTXt", b"iTXt")


def embed(
    png: bytes,
    text: str,
    keywords: Sequence[str] = ("chara",),
    *,
    limits: PngLimits = PngLimits(),  # noqa: B008 - a frozen value
    every_form: bool = False,
) -> bytes:
    """The PNG with a card text in place of those it had; every other chunk is kept as it is.

    ``every_form`` also removes card chunks that only a lenient reader would find (zTXt, iTXt, other case).

    Raises:
        FormatError: ``png-empty-metadata``, ``png-metadata-limit``, ``png-bad-keyword`` or a slug of the reader.
    """
    if not trim(text):
        raise FormatError("png-empty-metadata", "there is no card text to write into the PNG")
    data = utf8(text)
    if len(data) > limits.metadata_bytes:
        raise metadata_limit(keywords[0] if keywords else "chara", limits.metadata_bytes)
    for keyword in keywords:
        if keyword not in KEYWORDS:
            raise FormatError("png-bad-keyword", f"a card chunk is named 'chara' or 'ccv3', not {ascii(keyword)[:40]}")
    encoded = base64.b64encode(data)
    return embed_raw(png, [(keyword, encoded) for keyword in keywords], limits=limits, every_form=every_form)


def embed_raw(
    png: bytes,
    texts: Sequence[tuple[str, bytes]],
    *,
    limits: PngLimits = PngLimits(),  # noqa: B008 - a frozen value
    every_form: bool = False,
) -> bytes:
    """The PNG with (keyword, encoded text) chunks before its end in place of the card chunks it had."""
    *rest, end = [chunk for chunk in iter_chunks(png, limits) if not is_card_chunk(chunk, every_form=every_form)]
    cards = [(b"tEXt", keyword.encode("ascii") + b"\0" + encoded) for keyword, encoded in texts]
    return write_png([*((chunk.type, chunk.data) for chunk in rest), *cards, (end.type, end.data)])


def strip(
    png: bytes,
    *,
    limits: PngLimits = PngLimits(),  # noqa: B008 - a frozen value
    every_form: bool = False,
) -> bytes:
    """The PNG without card chunks.

    Raises:
        FormatError: a slug of the reader.
    """
    return embed_raw(png, (), limits=limits, every_form=every_form)


def is_card_chunk(chunk: Chunk, *, every_form: bool = False) -> bool:
    """Whether a chunk holds a card."""
    if chunk.type not in (_TEXT_TYPES if every_form else _TEXT_TYPES[:1]):
        return False
    keyword, separator, _ = chunk.data.partition(b"\0")
    return bool(separator) and (keyword.lower() if every_form else keyword) in (b"chara", b"ccv3")
