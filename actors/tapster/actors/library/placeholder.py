"""The image of a card that has none: a plain grey one in the usual 2:3 shape."""

import struct
import zlib
from typing import Final


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _grey_image(width: int, height: int, level: int) -> bytes:
    rows = (b"\0" + bytes([level]) * width) * height
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(rows, 9)) + _chunk(b"IEND", b"")
    )


PLACEHOLDER_PNG: Final = _grey_image(400, 600, 0xD0)
