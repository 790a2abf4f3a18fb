"""The macros of the tavern contract: names, variables, random draws, literal protection.

Every draw comes from the caller, so the same inputs give the same text.

Source: spec/loader §9.1, spec/text_and_mvu A4.
"""

import math
import re
from collections.abc import Callable, Mapping

import attrs

from tapster.engine.ecma import WHITE_SPACE, Json, trim
from tapster.engine.errors import RequestError
from tapster.engine.limits import TAVERN_MACRO_MAX_DICE, TAVERN_MACRO_MAX_PASSES

from .macro_output import OutputRoom
from .pairs import closed_part

Draw = Callable[[], float]
"""One random number a call, nominally in [0, 1)."""

DEFAULT_USER = "User"
DEFAULT_CHARACTER = "Assistant"
_LARGEST_DRAW = 0.999999
_MACRO = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_SPACE = f"[{re.escape(WHITE_SPACE)}]"
_SET = re.compile(r"setvar::([^:]+)::(.*)", re.DOTALL | re.IGNORECASE | re.ASCII)
_GET = re.compile(r"getvar::(.*)", re.DOTALL | re.IGNORECASE | re.ASCII)
_RANDOM = re.compile(r"random::(.*)", re.DOTALL | re.IGNORECASE | re.ASCII)
_ROLL = re.compile(rf"roll{_SPACE}+([0-9]+)d([0-9]+)([+-][0-9]+)?", re.IGNORECASE | re.ASCII)


class LiteralMacroInvalid(RequestError):
    """A literal macro's value is not a string."""

    code = "LITERAL_MACRO_INVALID"


@attrs.frozen
class MacroContext:
    """The names and messages that macros insert; an absent name has the contract's default."""

    user: str = DEFAULT_USER
    character: str = DEFAULT_CHARACTER
    last_user_message: str = ""
    last_character_message: str = ""


@attrs.frozen
class Expansion:
    """An expanded text and the variables after it."""

    text: str
    variables: Mapping[str, str] = attrs.field(factory=dict)


def expand_macros(
    text: str,
    context: MacroContext,
    *,
    draw: Draw,
    variables: Mapping[str, str] | None = None,
    literals: Mapping[str, Json] | None = None,
) -> Expansion:
    """The text with its macros replaced, trimmed, and the variables as they are afterwards.

    Args:
        literals: name -> text that goes in as it stands, its continuation lines indented to the macro's column.

    Raises:
        LiteralMacroInvalid: a literal is not a string.
        MacroOutputTooLarge: a few bytes of macros would fill the memory.

    Source: spec/loader §9.1, spec/text_and_mvu A4.
    """
    protected = _Literals.protect(text, literals or {})
    store = dict(variables or {})
    expanded = protected.text
    for _ in range(TAVERN_MACRO_MAX_PASSES):
        if not _MACRO.search(closed_part(expanded, "}}")):
            break
        expanded = _one_pass(expanded, context, store, draw)
    return Expansion(protected.restore(settled(expanded)), protected.revealed(store))


def settled(text: str) -> str:
    """A text whose macros have run, as it stands in a prompt: trimmed, and nothing in it is a macro any more."""
    return trim(text.replace("{{", "{ {").replace("}}", "} }"))


def _one_pass(text: str, context: MacroContext, store: dict[str, str], draw: Draw) -> str:
    room, stored = OutputRoom(), OutputRoom()

    def value(match: re.Match[str]) -> str:
        inserted = _value(trim(match[1]), context, store, draw)
        room.take(len(inserted))
        return inserted

    expanded = _MACRO.sub(value, text)
    stored.take(sum(map(len, store.values())))
    return expanded


def _value(body: str, context: MacroContext, store: dict[str, str], draw: Draw) -> str:
    if body.startswith("//"):
        return ""
    if match := _SET.fullmatch(body):
        store[trim(match[1])] = match[2]
        return ""
    if match := _GET.fullmatch(body):
        return store.get(trim(match[1]), "")
    if match := _RANDOM.fullmatch(body):
        items = [item for part in match[1].split(",") if (item := trim(part))]
        return items[math.floor(_clamped(draw) * len(items))] if items else ""
    if match := _ROLL.fullmatch(body):
        return _roll(int(match[1]), int(match[2]), int(match[3] or 0), draw)
    return _named(body.lower(), context)


def _named(name: str, context: MacroContext) -> str:
    values = {
        "user": context.user,
        "char": context.character,
        "lastusermessage": context.last_user_message,
        "lastcharmessage": context.last_character_message,
    }
    return values.get(name, "")


def _roll(dice: int, sides: int, bonus: int, draw: Draw) -> str:
    sides = max(sides, 1)
    return str(sum(1 + math.floor(_clamped(draw) * sides) for _ in range(min(dice, TAVERN_MACRO_MAX_DICE))) + bonus)


def _clamped(draw: Draw) -> float:
    return min(max(draw(), 0.0), _LARGEST_DRAW)


@attrs.frozen
class _Literals:
    text: str
    values: Mapping[str, str]

    @classmethod
    def protect(cls, text: str, literals: Mapping[str, Json]) -> "_Literals":
        for name, value in literals.items():
            if not isinstance(value, str):
                raise LiteralMacroInvalid(f"literal macro {name!r} must be a string")
        if not literals:
            return cls(text, {})
        names = {f"literal-{index}": name for index, name in enumerate(literals)}
        mark = _unused_mark(text)
        tokens: dict[str, str] = {}
        for key, name in names.items():
            macro = "{{" + name + "}}"
            if macro in text:
                tokens[f"{mark}{key}{mark}"] = literals[name]
                text = text.replace(macro, f"{mark}{key}{mark}")
        return cls(text, tokens)

    def revealed(self, store: dict[str, str]) -> dict[str, str]:
        """Variables that a literal got into, with its text: other texts don't know what stands for it here."""
        for mark, value in self.values.items():
            for name, held in store.items():
                if mark in held:
                    OutputRoom().take(len(held) + held.count(mark) * len(value))
                    store[name] = held.replace(mark, value)
        return store

    def restore(self, text: str) -> str:
        if not self.values:
            return text
        parts: list[str] = []
        line = ""
        for piece in re.split("(" + "|".join(map(re.escape, self.values)) + ")", text):
            value = self.values.get(piece)
            added = piece if value is None else value.replace("\n", "\n" + " " * len(line))
            parts.append(added)
            line = (line + added).rpartition("\n")[2]
        return "".join(parts)


def _unused_mark(text: str) -> str:
    mark = "\ue000"
    while mark in text:
        mark += "\ue000"
    return mark
