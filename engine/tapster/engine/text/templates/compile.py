"""Template text into the body of an async JavaScript function, with a map back to the template.

Source: spec/text_and_mvu B1.
"""

import bisect
import functools
import re

import attrs

from tapster.engine.ecma import quote, utf16_length
from tapster.engine.limits import TEMPLATE_SOURCE_UNITS

from .errors import TemplateError, TemplateSyntaxError

OUT_RAW, OUT_ESCAPED = "__raw", "__escaped"
"""What the generated code calls for ``<%-`` and ``<%=``, and ``__text`` for the text between tags."""
_LINE_BREAK = re.compile(r"\r?\n")
_TRAILING_BLANKS = re.compile(r"[ \t]+\Z")
_LEADING_SPACE = re.compile(r"\s+")
_SEMICOLON = re.compile(r";(\s*)\Z")


@attrs.frozen
class Program:
    """A compiled template. ``segments`` are (offset in the body, offset in the template) of each code piece."""

    name: str
    source: str
    body: str
    segments: tuple[tuple[int, int], ...]

    def place(self, line: int, column: int) -> tuple[int, int]:
        """Line and column in the template for a place in the body; all count from 1."""
        lines = self.body.split("\n")
        offset = sum(len(text) + 1 for text in lines[: line - 1]) + column - 1
        index = bisect.bisect_right(self.segments, (offset, len(self.source))) - 1
        if index < 0:
            return 1, 1
        start, origin = self.segments[index]
        return position_of(self.source, min(origin + offset - start, len(self.source)))


def position_of(text: str, offset: int) -> tuple[int, int]:
    """Line and column (from 1) of an offset."""
    before = text[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1


@functools.lru_cache(maxsize=256)
def compile_template(source: str, name: str = "template") -> Program:
    """A template as a program.

    Raises:
        TemplateSyntaxError: a tag is not closed.
        TemplateError: ``TEMPLATE_INPUT_LIMIT`` for a source that is too long.
    """
    if utf16_length(source) > TEMPLATE_SOURCE_UNITS:
        raise TemplateError(
            f"the template is longer than {TEMPLATE_SOURCE_UNITS} characters",
            code="TEMPLATE_INPUT_LIMIT",
            template=name,
        )
    return _Compiler(source, name).program()


class _Compiler:
    def __init__(self, source: str, name: str) -> None:
        self.source = source
        self.name = name
        self.parts: list[str] = []
        self.length = 0
        self.segments: list[tuple[int, int]] = []

    def program(self) -> Program:
        position = 0
        while (start := self.source.find("<%", position)) >= 0:
            end = self.source.find("%>", start + 2)
            if end < 0:
                line, column = position_of(self.source, start)
                raise TemplateSyntaxError(
                    "the template tag is not closed; '%>' is missing", template=self.name, line=line, column=column
                )
            text = self.source[position:start]
            if self.source.startswith("<%_", start):
                text = _TRAILING_BLANKS.sub("", text)
            self.text(text)
            position = self.tag(start, end)
        self.text(self.source[position:])
        return Program(self.name, self.source, "".join(self.parts), tuple(self.segments))

    def emit(self, code: str) -> None:
        self.parts.append(code)
        self.length += len(code)

    def text(self, text: str) -> None:
        if text:
            self.emit(f"__text({quote(text)});\n")

    def code(self, start: int, end: int) -> None:
        self.segments.append((self.length, start))
        self.emit(self.source[start:end])

    def tag(self, start: int, end: int) -> int:
        """One tag; gives where the text behind it begins."""
        mark = self.source[start + 2 : start + 3]
        if mark == "%":
            self.text(f"<%{self.source[start + 3 : end]}%>")
            return end + 2
        first = start + 3 if mark in ("-", "=", "#", "_") and start + 3 <= end else start + 2
        last, after = self.closing(first, end)
        if mark in ("-", "="):
            self.output(OUT_RAW if mark == "-" else OUT_ESCAPED, first, last)
        elif mark != "#":
            self.code(first, last)
            self.emit("\n")
        return after

    def output(self, function: str, first: int, last: int) -> None:
        semicolon = _SEMICOLON.search(self.source, first, last)
        self.emit(f"{function}((")
        self.code(first, semicolon.start() if semicolon else last)
        self.emit("\n));\n")

    def closing(self, first: int, end: int) -> tuple[int, int]:
        """Where the code ends and where the text goes on, by the mark before ``%>``."""
        mark = self.source[end - 1] if end > first else ""
        after = end + 2
        if mark == "-":
            line_break = _LINE_BREAK.match(self.source, after)
            return end - 1, line_break.end() if line_break else after
        if mark == "_":
            space = _LEADING_SPACE.match(self.source, after)
            return end - 1, space.end() if space else after
        return end, after
