"""Card texts in PNG files, as SillyTavern reads them and as a person would hope.

SillyTavern: tEXt only, any case of the keyword, the first of several, checksums must fit, base64 by Node's rules.
Lenient: also zTXt and iTXt, raw JSON instead of base64, wrong checksums, a cut file; each forgiven with a note.

Source: the vectors of st_cards; spec/resources §4 for the order of keywords and the limits.
"""

import base64
import re
import zlib
from collections.abc import Iterator

import attrs

from tapster.engine.errors import FormatError
from tapster.engine.limits import PNG_INFLATED_BYTES

from .chunks import Chunk, PngLimits, iter_chunks
from .text import KEYWORDS, CardText, base64_bound, metadata_limit

_NOT_BASE64 = re.compile(rb"[^A-Za-z0-9+/]+")
_URL_SAFE = bytes.maketrans(b"-_", b"+/")


def decode_base64(encoded: bytes) -> bytes:
    """Base64 as Node's Buffer reads it: both alphabets, foreign characters skipped, padding optional."""
    clean = _NOT_BASE64.sub(b"", encoded.translate(_URL_SAFE))
    clean = clean[: len(clean) - (len(clean) % 4 == 1)]
    return base64.b64decode(clean + b"=" * (-len(clean) % 4))


def read_sillytavern_text(data: bytes, limits: PngLimits = PngLimits()) -> CardText:  # noqa: B008 - a frozen value
    """The card text SillyTavern would find.

    Raises:
        FormatError: a slug of the contract's PNG table, or ``png-bad-crc``, ``png-bad-text``.
    """
    found: dict[str, bytes] = {}
    for chunk in iter_chunks(data, limits, exact=False):
        if not chunk.is_intact:
            raise FormatError("png-bad-crc", f"the checksum of a {ascii(chunk.type)[2:-1]} chunk does not fit its data")
        if chunk.type == b"tEXt":
            keyword, _, text = chunk.data.partition(b"\0")
            if b"\0" in text:
                raise FormatError("png-bad-text", "a text chunk of the PNG holds a NUL character")
            found.setdefault(keyword.decode("latin-1").lower(), text)
    for word in KEYWORDS:
        if word in found:
            if len(found[word]) > base64_bound(limits.metadata_bytes):
                raise metadata_limit(word, limits.metadata_bytes)
            card = decode_base64(found[word]).decode("utf-8", "replace")
            return CardText(word, tuple(key for key in found if key in KEYWORDS), card)
    raise FormatError("png-no-card", "the PNG holds no character card (no text chunk 'chara' or 'ccv3')")


def read_lenient_text(data: bytes, limits: PngLimits = PngLimits()) -> CardText:  # noqa: B008 - a frozen value
    """The card text anywhere in the file, with a note for everything forgiven.

    Raises:
        FormatError: there is no readable card, or a limit is broken.
    """
    reader = _Reader(limits)
    found: dict[str, str] = {}
    for chunk in reader.chunks(data):
        text = reader.text_of(chunk)
        if text is not None:
            if text[0] in found:
                reader.note("png-repeated-chunk", f"the PNG holds several '{text[0]}' chunks; the last one was taken")
            found[text[0]] = text[1]
    for word in KEYWORDS:
        if word in found:
            return CardText(word, tuple(found), found[word], tuple(reader.notes))
    if reader.failure is not None:
        raise reader.failure
    raise FormatError(
        "png-no-card", "the PNG holds no character card in any text chunk; export it again with its card data"
    )


@attrs.define(eq=False)
class _Reader:
    limits: PngLimits
    notes: list[tuple[str, str]] = attrs.field(factory=list)
    failure: FormatError | None = None
    inflated: int = 0

    def note(self, code: str, message: str) -> None:
        if (code, message) not in self.notes:
            self.notes.append((code, message))

    def chunks(self, data: bytes) -> Iterator[Chunk]:
        """The chunks; a damaged end becomes a note."""
        try:
            for chunk in iter_chunks(data, self.limits, exact=False):
                if not chunk.is_intact:
                    kind = ascii(chunk.type)[2:-1]
                    self.note("png-bad-crc", f"the checksum of a {kind} chunk does not fit; the data was read anyway")
                yield chunk
        except FormatError as error:
            if error.slug not in ("png-truncated-chunk", "png-chunk-overrun", "png-no-iend"):
                raise
            self.failure = error
            self.note(error.slug, f"{error.message}; what stands before was read")

    def text_of(self, chunk: Chunk) -> tuple[str, str] | None:
        """Keyword and text of a card chunk of any form, or None."""
        if chunk.type not in (b"tEXt", b"zTXt", b"iTXt"):
            return None
        name, separator, body = chunk.data.partition(b"\0")
        keyword = name.decode("latin-1").lower()
        if not separator or keyword not in KEYWORDS:
            return None
        if name.decode("latin-1") != keyword:
            self.note("png-keyword-case", f"the chunk is called {ascii(name)[2:-1]}; read as '{keyword}'")
        if chunk.type != b"tEXt":
            self.note("png-compressed-text", f"the card stands in a {chunk.type.decode()} chunk")
        payload = self._payload(chunk.type, keyword, body)
        return None if payload is None else (keyword, self._decoded(keyword, payload))

    def _payload(self, kind: bytes, keyword: str, body: bytes) -> bytes | None:
        if kind == b"tEXt":
            return body
        if kind == b"zTXt":
            return self._inflate(keyword, body[1:])
        compressed = body[:1] == b"\1"
        _, _, rest = body[2:].partition(b"\0")  # language
        _, separator, text = rest.partition(b"\0")  # translated keyword
        if not separator:
            return None
        return self._inflate(keyword, text) if compressed else text

    def _inflate(self, keyword: str, data: bytes) -> bytes:
        bound = base64_bound(self.limits.metadata_bytes)
        try:
            out = zlib.decompressobj().decompress(data, bound + 1)
        except zlib.error as error:
            raise FormatError("png-bad-compression", f"the '{keyword}' chunk cannot be inflated: {error}") from error
        self.inflated += len(out)
        if len(out) > bound or self.inflated > PNG_INFLATED_BYTES:
            raise metadata_limit(keyword, self.limits.metadata_bytes)
        return out

    def _decoded(self, keyword: str, payload: bytes) -> str:
        if len(payload) > base64_bound(self.limits.metadata_bytes):
            raise metadata_limit(keyword, self.limits.metadata_bytes)
        data = payload.strip()
        if data.startswith((b"{", b"\xef\xbb\xbf{")):
            self.note("png-raw-json", f"the '{keyword}' chunk holds plain JSON instead of base64")
        else:
            data = decode_base64(data)
        text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")
        if "\ufffd" in text:
            self.note("png-bad-utf8", f"the '{keyword}' chunk is not clean UTF-8; U+FFFD stands for the rest")
        return text
