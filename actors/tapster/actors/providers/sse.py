"""Server-sent events from bytes, whatever the pieces they arrive in.

Source: the WHATWG rules for event streams, as far as model providers use them.
"""

import codecs
from typing import final

import attrs

from tapster.engine.errors import SourceError

MAX_LINE_CHARACTERS = 4 * 1024 * 1024
"""A line longer than this isn't a model's event; it would only fill memory."""


@final
@attrs.define(eq=False)
class SseDecoder:
    """Turns bytes into the ``data`` of whole events; comments and other fields are skipped."""

    _decoder: codecs.IncrementalDecoder = attrs.field(factory=lambda: codecs.getincrementaldecoder("utf-8")("replace"))
    _buffer: str = ""
    _data: list[str] = attrs.field(factory=list)
    _at_start: bool = True

    def feed(self, data: bytes) -> list[str]:
        """The events that became whole with this piece.

        Raises:
            SourceError: a single line is absurdly long.
        """
        text = self._decoder.decode(data)
        if self._at_start and text:
            text, self._at_start = text.removeprefix("\ufeff"), False
        self._buffer += text
        if len(self._buffer) > MAX_LINE_CHARACTERS:
            raise SourceError(f"an event stream sent a line of over {MAX_LINE_CHARACTERS} characters")
        return [event for line in self._lines() if (event := self._line(line)) is not None]

    def _lines(self) -> list[str]:
        held = self._buffer.endswith("\r")
        text = self._buffer[:-1] if held else self._buffer
        *lines, rest = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self._buffer = rest + ("\r" if held else "")
        return lines

    def _line(self, line: str) -> str | None:
        if not line:
            event, self._data = "\n".join(self._data) if self._data else None, []
            return event
        field, _, value = line.partition(":")
        if field == "data":
            self._data.append(value.removeprefix(" "))
        return None
