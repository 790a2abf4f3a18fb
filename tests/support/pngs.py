"""Tiny PNG files of our own making."""

import base64
import zlib

from tapster.engine.formats.png import write_png

_HEADER = b"\0\0\0\1\0\0\0\1\x08\0\0\0\0"
_PIXELS = zlib.compress(b"\0\x7f")


def png_with(*chunks: tuple[bytes, bytes], before: tuple[tuple[bytes, bytes], ...] = ()) -> bytes:
    """A one-pixel PNG with chunks after (and before) its pixels."""
    return write_png([(b"IHDR", _HEADER), *before, (b"IDAT", _PIXELS), *chunks, (b"IEND", b"")])


def card_chunk(text: str, keyword: str = "chara") -> tuple[bytes, bytes]:
    """A tEXt chunk with a card text."""
    return b"tEXt", keyword.encode() + b"\0" + base64.b64encode(text.encode())


PIXEL = png_with()
