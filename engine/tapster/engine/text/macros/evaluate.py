"""Evaluation of a macro tree: arguments first, left to right; ``if`` alone is lazy; scopes are paired on the way.

What can't be resolved is written back as it stood, with the macros inside it evaluated.
"""

import functools
import re
from collections.abc import Sequence

import attrs

from tapster.engine.ecma import WHITE_SPACE, utf16_length
from tapster.engine.limits import ST_MACRO_MAX_SCOPES
from tapster.engine.text.macro_output import OutputRoom
from tapster.engine.text.string_hash import string_hash

from .context import Draw, Expansion, MacroContext
from .expressions import variable_expression
from .registry import Call, MacroDefinition, Unresolved
from .scopes import dedent, pair_scopes, split_else
from .syntax import NAME, VARIABLE, Argument, Macro, Node, Text, VariableExpression, parse
from .variables import VariableStore

_LEGACY = re.compile(r"<(USER|BOT|CHAR|GROUP|CHARIFNOTGROUP)>", re.IGNORECASE)
_LEGACY_NAMES = {"user": "user", "bot": "char", "char": "char", "group": "group", "charifnotgroup": "charIfNotGroup"}
_LEGACY_TIME = re.compile(r"\{\{time_(UTC[+-][0-9]+)\}\}", re.IGNORECASE)
_TRIM = re.compile(r"(?:\r?\n)*\{\{trim\}\}(?:\r?\n)*", re.IGNORECASE)
_ESCAPED_BRACE = re.compile(r"\\([{}])")
_FALSE = ("", "off", "false", "0")


class Run:
    """One expansion in progress."""

    def __init__(self, text: str, context: MacroContext, outer: "Run | None" = None) -> None:
        self.context: MacroContext = context
        self.text: str = before(text)
        self.local: VariableStore = outer.local if outer else VariableStore(context.variables)
        self.globals: VariableStore = outer.globals if outer else VariableStore(context.global_variables)
        self.draws: list[Draw] = outer.draws if outer else []
        self.room: OutputRoom = outer.room if outer else OutputRoom()
        self.original_used = False
        self.lazy_offset: int | None = None
        self.depth = 0
        self.dynamic = {name.lower(): value for name, value in context.dynamic.items()} if context.dynamic else {}

    def place(self, offset: int) -> int:
        """Where a macro stands in the text, in UTF-16 units."""
        end = offset if self.lazy_offset is None else self.lazy_offset
        return end if self.is_ascii else utf16_length(self.text[:end])

    @functools.cached_property
    def is_ascii(self) -> bool:
        return self.text.isascii()

    @functools.cached_property
    def text_hash(self) -> int:
        return string_hash(self.text)

    def draw(self, macro: str, offset: int) -> float:
        """A random number, recorded."""
        value = self.context.random()
        self.draws.append(Draw(macro, self.place(offset), value))
        return value

    def result(self) -> str:
        return after(self.nodes(parse(self.text))) if "{{" in self.text else after(self.text)

    def nested(self, text: str) -> str:
        """A card's field: expanded on its own, without the card's fields and without ``original``."""
        if "{{" not in text and "<" not in text:
            return text
        return Run(text, bare(self.context), self).result()

    def definition(self, name: str) -> MacroDefinition | None:
        from .builtins import MACROS  # the table imports the modules that this one serves

        if name in self.dynamic:
            return MacroDefinition(lambda call: self.dynamic[name])
        if name == "original" and self.context.original is None:
            return None
        return MACROS.get(name)

    def has_room(self, macro: Macro) -> bool:
        definition = self.definition(macro.name.lower())
        return definition is not None and definition.has_room(len(macro.arguments))

    def nodes(self, nodes: Sequence[Node]) -> str:
        """The text a list of nodes gives."""
        scopes = pair_scopes(nodes, self.has_room) if self.depth < ST_MACRO_MAX_SCOPES else {}
        self.depth += 1
        parts: list[str] = []
        index = 0
        while index < len(nodes):
            node = nodes[index]
            close = scopes.get(index)
            if isinstance(node, Text):
                parts.append(node.text)
            elif isinstance(node, VariableExpression):
                parts.append(self.finish(variable_expression(self, node)))
            elif close is None:
                parts.append(self.macro(node))
            else:
                parts.append(self.scope(node, nodes[index + 1 : close], nodes[close]))
                index = close
            index += 1
        self.depth -= 1
        return "".join(parts)

    def plain(self, nodes: Sequence[Node]) -> str:
        """The nodes one by one: scopes are not paired inside a variable expression."""
        return "".join(node.text if isinstance(node, Text) else self.nodes((node,)) for node in nodes)

    def finish(self, value: str) -> str:
        process = self.context.post_process
        text = process(value) if process is not None else value
        self.room.take(len(text))
        return text

    def argument(self, argument: Argument) -> tuple[str, str]:
        """An argument's value as written and with the blanks of its own text around it removed."""
        if not argument.nodes:
            return "", ""
        only = argument.nodes[0]
        if len(argument.nodes) == 1 and isinstance(only, Text):
            return only.text, only.text.strip(WHITE_SPACE)
        full = self.nodes(argument.nodes)
        start = full
        if isinstance(argument.nodes[0], Text):
            lead = len(argument.nodes[0].text) - len(argument.nodes[0].text.lstrip(WHITE_SPACE))
            start = full[lead:]
        if isinstance(argument.nodes[-1], Text):
            trail = len(argument.nodes[-1].text) - len(argument.nodes[-1].text.rstrip(WHITE_SPACE))
            start = start[: len(start) - trail] if trail else start
        return full, start

    def raw(self, macro: Macro, values: Sequence[str] | None = None) -> str:
        """The macro as written, with evaluated arguments where they are given."""
        if values is None:
            return self.text[macro.start : macro.end]
        parts: list[str] = []
        position = macro.start
        for argument, value in zip(macro.arguments, values, strict=True):
            parts += [self.text[position : argument.start], value]
            position = argument.end
        return "".join(parts) + self.text[position : macro.end]

    def macro(self, macro: Macro) -> str:
        """A macro without a scope."""
        if macro.closing:
            return self.raw(macro)
        name = macro.name.lower()
        if name == "if":
            return self.inline_if(macro)
        values = [self.argument(argument) for argument in macro.arguments]
        definition = self.definition(name)
        if definition is not None and definition.takes(len(values)):
            try:
                arguments = tuple(trimmed for _, trimmed in values)
                return self.finish(definition.handler(Call(self, name, arguments, macro.start)))
            except Unresolved:
                pass
        return self.raw(macro, [full for full, _ in values])

    def scope(self, macro: Macro, content: Sequence[Node], close: Node) -> str:
        """A macro whose last argument is what stands between it and its closing tag."""
        name = macro.name.lower()
        if name == "if" and len(macro.arguments) == 1:
            chosen = self.choose(macro, content)
            return self.finish(chosen if macro.keep_blanks else dedent(chosen))
        values = [self.argument(argument) for argument in macro.arguments] if name != "if" else []
        body = self.nodes(content)
        definition = self.definition(name)
        if definition is not None and definition.takes(len(values) + 1):
            given = body if macro.keep_blanks else dedent(body)
            arguments = (*(trimmed for _, trimmed in values), given)
            try:
                return self.finish(definition.handler(Call(self, name, arguments, macro.start, scoped=True)))
            except Unresolved:
                pass
        opening = self.raw(macro, [full for full, _ in values] if values else None)
        assert isinstance(close, Macro)
        return opening + body + (self.raw(close) if definition is not None else "}}")

    def inline_if(self, macro: Macro) -> str:
        if len(macro.arguments) != 2:
            return self.raw(macro)
        return self.finish(self.choose(macro, macro.arguments[1].nodes).strip(WHITE_SPACE))

    def choose(self, macro: Macro, content: Sequence[Node]) -> str:
        """The branch of ``if`` that applies, evaluated; everything in it counts as standing where the ``if`` does."""
        first, second = split_else(content, self.has_room)
        chosen = first if self.is_true(macro.arguments[0]) else second
        outermost = self.lazy_offset is None
        if outermost:
            self.lazy_offset = macro.start
        try:
            return self.nodes(chosen)
        finally:
            if outermost:
                self.lazy_offset = None

    def is_true(self, condition: Argument) -> bool:
        """Whether a condition holds; a bare macro name or variable shorthand stands for its value."""
        text = self.argument(condition)[1].strip(WHITE_SPACE)
        inverted = text.startswith("!")
        if inverted:
            text = text[1:].strip(WHITE_SPACE)
        return (self.condition_value(text).strip(WHITE_SPACE).lower() in _FALSE) == inverted

    def condition_value(self, text: str) -> str:
        if text[:1] in (".", "$") and VARIABLE.fullmatch(text[1:].strip(WHITE_SPACE)):
            store = self.globals if text[0] == "$" else self.local
            return store.text(text[1:].strip(WHITE_SPACE))
        if NAME.fullmatch(text):
            definition = self.definition(text.lower())
            if definition is not None and definition.takes(0):
                return definition.handler(Call(self, text.lower(), (), 0))
        return text


def bare(context: MacroContext) -> MacroContext:
    """The context for a card's own fields."""
    return attrs.evolve(context, card=None, original=None, post_process=None)


def before(text: str) -> str:
    """The old spellings rewritten as macros."""
    if "<" in text:
        text = _LEGACY.sub(lambda match: "{{" + _LEGACY_NAMES[match[1].lower()] + "}}", text)
    return _LEGACY_TIME.sub(r"{{time::\1}}", text) if "{{time_" in text.lower() else text


def after(text: str) -> str:
    """``{{trim}}`` taken out with the line breaks around it; escaped braces made plain."""
    if "{{" in text:
        text = _TRIM.sub("", text)
    return _ESCAPED_BRACE.sub(r"\1", text) if "\\" in text else text


def expand(text: str, context: MacroContext) -> Expansion:
    """A text with its macros expanded as SillyTavern does.

    Inserted text is not expanded again. Variables are given back as new values; the context is not changed.
    Raises:
        MacroOutputTooLarge: a few bytes of macros would fill the memory.

    Source: vectors/README "st_macros".
    """
    run = Run(text, context)
    result = run.result()
    return Expansion(result, run.local.values, run.globals.values, tuple(run.draws))
