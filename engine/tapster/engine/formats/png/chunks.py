"""The chunks of a PNG file, walked with limits and nothing decoded.

Source: spec/resources §4.
"""

import zlib
from collections.abc import Iterable, Iterator

import attrs

from tapster.engine.errors import FormatError
from tapster.engine.limits import PNG_CHUNKS, PNG_METADATA_BYTES

SIGNATURE = b"\x89PNG\r\n\x1a\n"
_FRAME_BYTES = 12
_HEADER_BYTES = 13


@attrs.frozen
class Chunk:
    """One chunk; ``crc`` is the checksum that stood in the file."""

    type: bytes
    data: bytes
    crc: int

    @property
    def is_intact(self) -> bool:
        """Whether the checksum fits the bytes."""
        return self.crc == checksum(self.type, self.data)


@attrs.frozen
class PngLimits:
    """Bounds of one PNG read or write."""

    chunks: int = PNG_CHUNKS
    metadata_bytes: int = PNG_METADATA_BYTES


def checksum(kind: bytes, data: bytes) -> int:
    """The CRC of a chunk."""
    return zlib.crc32(data, zlib.crc32(kind))


def is_png(data: bytes) -> bool:
    """Whether bytes start with the PNG signature."""
    return data.startswith(SIGNATURE)


def iter_chunks(data: bytes, limits: PngLimits = PngLimits(), *, exact: bool = True) -> Iterator[Chunk]:
    """The chunks up to and including IEND; bytes behind it are not looked at.

    ``exact`` False forgives the sizes of IHDR and IEND, as SillyTavern does.

    Raises:
        FormatError: ``png-bad-signature``, ``png-truncated-chunk``, ``png-chunk-overrun``, ``png-chunk-limit``,
            ``png-no-ihdr``, ``png-iend-not-empty`` or ``png-no-iend``, when the walk reaches the spot.
    """
    if not is_png(data):
        raise FormatError("png-bad-signature", "the file does not start with the PNG signature")
    offset = len(SIGNATURE)
    count = 0
    while offset < len(data):
        chunk = _chunk_at(data, offset)
        count += 1
        if count > limits.chunks:
            raise FormatError("png-chunk-limit", f"the PNG has more than {limits.chunks} chunks")
        if count == 1 and (chunk.type != b"IHDR" or (exact and len(chunk.data) != _HEADER_BYTES)):
            raise FormatError("png-no-ihdr", "the first chunk of the PNG is not a 13-byte IHDR")
        if exact and chunk.type == b"IEND" and chunk.data:
            raise FormatError("png-iend-not-empty", "the IEND chunk of the PNG is not empty")
        yield chunk
        if chunk.type == b"IEND":
            return
        offset += _FRAME_BYTES + len(chunk.data)
    raise FormatError("png-no-iend", "the PNG has no IEND chunk; the file was cut")


def _chunk_at(data: bytes, offset: int) -> Chunk:
    left = len(data) - offset
    if left < _FRAME_BYTES:
        raise FormatError("png-truncated-chunk", f"the PNG ends inside the chunk at byte {offset}")
    length = int.from_bytes(data[offset : offset + 4])
    if length > left - _FRAME_BYTES:
        raise FormatError("png-chunk-overrun", f"the chunk at byte {offset} of the PNG runs past the end of the file")
    body = offset + 8
    return Chunk(
        type=data[offset + 4 : body],
        data=data[body : body + length],
        crc=int.from_bytes(data[body + length : body + length + 4]),
    )


def write_png(chunks: Iterable[tuple[bytes, bytes]]) -> bytes:
    """A PNG file of (type, data) chunks, each with its right checksum."""
    parts = [SIGNATURE]
    for kind, data in chunks:
        parts += (len(data).to_bytes(4), kind, data, checksum(kind, data).to_bytes(4))
    return b"".join(parts)
