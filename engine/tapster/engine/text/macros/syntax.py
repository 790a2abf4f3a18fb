"""The macro grammar: text into a tree of text and macros, by one left-to-right descent.

``{{`` opens, the first ``}}`` behind it closes; what can't be read as a macro stays text. Arguments are separated by
``::``; after a single colon or a blank everything is one argument. ``{{.name op value}}`` and ``{{$name op value}}``
are variable expressions; flags may precede the name; ``/`` makes a closing tag.

Source: behaviour recorded in st_macros.jsonl (areas malformed, nested, escape, var_shorthand, fuzz).
"""

import re
from typing import TypeAlias

import attrs

from tapster.engine.ecma import WHITE_SPACE
from tapster.engine.limits import ST_MACRO_MAX_NESTING

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
VARIABLE = re.compile(r"[A-Za-z](?:[A-Za-z0-9_-]*[A-Za-z0-9_])?")
_OPERATOR = re.compile(r"\?\?=|\|\|=|\+\+|--|\+=|-=|\?\?|\|\||==|!=|>=|<=|=|>|<")
_BLANK = re.compile(r"\s*")
_FLAGS = re.compile(r"(?:[!?~>#]\s*)*")
_AFTER_NAME = re.compile(r"\}\}|::|:|\s|\|")
# Three braces or more open nothing inside an argument (outside, the last two of them do).
_IN_ARGUMENT = re.compile(r"\{\{+|\}\}|::")
_IN_SINGLE = re.compile(r"\{\{+|\}\}")
COMMENT = "//"


@attrs.frozen
class Text:
    """A run of plain text."""

    text: str


@attrs.frozen
class Argument:
    """One argument: the span it covers and its content, untrimmed."""

    start: int
    end: int
    nodes: "tuple[Node, ...]"


@attrs.frozen
class Macro:
    """``{{name…}}``; ``start``/``end`` are offsets in the text it was read from."""

    start: int
    end: int
    name: str
    arguments: tuple[Argument, ...] = ()
    closing: bool = False
    keep_blanks: bool = False


@attrs.frozen
class VariableExpression:
    """``{{.name op value}}``; ``operator`` is empty for a plain read."""

    start: int
    end: int
    name: str
    is_global: bool
    operator: str = ""
    value: Argument | None = None


Node: TypeAlias = "Text | Macro | VariableExpression"


def parse(text: str) -> tuple[Node, ...]:
    """The whole text as nodes."""
    return _Parser(text).document()


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.last_close = text.rfind("}}")
        self.known: dict[int, Macro | VariableExpression | None] = {}

    def document(self) -> tuple[Node, ...]:
        nodes: list[Node] = []
        start = position = 0
        while True:
            position = self.text.find("{{", position)
            if position < 0 or position > self.last_close:
                break
            macro = self.macro(position, 0)
            if macro is None:
                position += 1
                continue
            if start < position:
                nodes.append(Text(self.text[start:position]))
            nodes.append(macro)
            start = position = macro.end
        if start < len(self.text):
            nodes.append(Text(self.text[start:]))
        return tuple(nodes)

    def macro(self, start: int, depth: int) -> Macro | VariableExpression | None:
        """The macro that opens at an offset, or None when what is there can't be one."""
        if start in self.known:
            return self.known[start]
        if depth > ST_MACRO_MAX_NESTING or start > self.last_close:
            return None
        self.known[start] = found = self.read(start, depth)
        return found

    def read(self, start: int, depth: int) -> Macro | VariableExpression | None:
        position = self.blank(start + 2)
        flags_end = _FLAGS.match(self.text, position).end()  # type: ignore[union-attr]  # matches the empty string
        keep_blanks = "#" in self.text[position:flags_end]
        position = flags_end
        if self.text[position : position + 1] in (".", "$"):
            return self.variable(start, position, depth)
        if self.text.startswith(COMMENT, position):
            return self.comment(start, position, depth)
        closing = self.text.startswith("/", position)
        if closing:
            position = self.blank(position + 1)
        name = NAME.match(self.text, position)
        if name is None:
            return None
        arguments = self.arguments(name.end(), depth)
        if arguments is None:
            return None
        found, end = arguments
        return Macro(start, end, name[0], found, closing, keep_blanks)

    def blank(self, position: int) -> int:
        return _BLANK.match(self.text, position).end()  # type: ignore[union-attr]  # matches the empty string

    def comment(self, start: int, position: int, depth: int) -> Macro | None:
        if self.text.startswith("///", position):
            end = self.blank(position + 3)
            if self.text.startswith("}}", end):
                return Macro(start, end + 2, COMMENT, closing=True)
        content = self.argument(position + 2, depth, single=True)
        if content is None:
            return None
        arguments = (content,) if self.text[content.start : content.end].strip(WHITE_SPACE) else ()
        return Macro(start, content.end + 2, COMMENT, arguments)

    def arguments(self, position: int, depth: int) -> tuple[tuple[Argument, ...], int] | None:
        """The arguments behind a name and the offset after ``}}``; None when the macro never ends."""
        after = _AFTER_NAME.search(self.text, position)  # what else stands here is skipped, as an unknown character
        if after is None or after[0] == "|":
            return None
        if after[0].isspace():
            position = self.blank(after.end())
            after = _AFTER_NAME.match(self.text, position)
            if after is None or after[0] not in ("::", ":", "}}"):
                return self.one_argument(position, depth)
        if after[0] == "}}":
            return (), after.end()
        if after[0] == ":":
            return self.one_argument(after.end(), depth)
        found: list[Argument] = []
        position = after.end()
        while True:
            argument = self.argument(position, depth, single=False)
            if argument is None:
                return None
            found.append(argument)
            position = argument.end + 2
            if self.text.startswith("}}", argument.end):
                return tuple(found), position

    def one_argument(self, position: int, depth: int) -> tuple[tuple[Argument, ...], int] | None:
        argument = self.argument(position, depth, single=True)
        return None if argument is None else ((argument,), argument.end + 2)

    def argument(self, position: int, depth: int, *, single: bool) -> Argument | None:
        """Content up to ``}}`` (or ``::`` unless ``single``), or None when the text ends first."""
        stop = _IN_SINGLE if single else _IN_ARGUMENT
        nodes: list[Node] = []
        start = run = position
        while True:
            mark = stop.search(self.text, position)
            if mark is None:
                return None
            if mark[0][0] != "{":
                if run < mark.start():
                    nodes.append(Text(self.text[run : mark.start()]))
                return Argument(start, mark.start(), tuple(nodes))
            macro = self.macro(mark.start(), depth + 1) if mark[0] == "{{" else None
            if macro is None:
                position = mark.end()
                continue
            if run < mark.start():
                nodes.append(Text(self.text[run : mark.start()]))
            nodes.append(macro)
            run = position = macro.end

    def variable(self, start: int, position: int, depth: int) -> VariableExpression | None:
        is_global = self.text[position] == "$"
        name = VARIABLE.match(self.text, self.blank(position + 1))
        if name is None:
            return None
        position = self.blank(name.end())
        if self.text.startswith("}}", position):
            return VariableExpression(start, position + 2, name[0], is_global)
        operator = _OPERATOR.match(self.text, position)
        if operator is None:
            return None
        if operator[0] in ("++", "--"):
            end = self.blank(operator.end())
            if not self.text.startswith("}}", end):
                return None
            return VariableExpression(start, end + 2, name[0], is_global, operator[0])
        value = self.argument(operator.end(), depth, single=True)
        if value is None:
            return None
        return VariableExpression(start, value.end + 2, name[0], is_global, operator[0], value)
