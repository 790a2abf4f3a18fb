"""The table of macros: name, how many arguments, what it does."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

import attrs

from tapster.engine.ecma import WHITE_SPACE

if TYPE_CHECKING:
    from .evaluate import Run

Handler: TypeAlias = "Callable[[Call], str]"


class Unresolved(Exception):
    """A macro can't do what its arguments ask; it stays in the text as written."""


@attrs.frozen
class Call:
    """One use of a macro with its evaluated arguments."""

    run: "Run"
    name: str
    arguments: tuple[str, ...]
    offset: int
    scoped: bool = False

    def integer(self, index: int) -> int:
        """An argument as a whole number.

        Raises:
            Unresolved: it is none.
        """
        text = self.arguments[index].strip(WHITE_SPACE)
        digits = text[1:] if text[:1] in ("-", "+") else text
        if not (digits.isascii() and digits.isdigit()):
            raise Unresolved
        return int(text)


@attrs.frozen
class MacroDefinition:
    """A macro; ``most`` None takes any number of arguments."""

    handler: Handler
    least: int = 0
    most: int | None = 0

    def takes(self, count: int) -> bool:
        return count >= self.least and (self.most is None or count <= self.most)

    def has_room(self, count: int) -> bool:
        """Whether a scope's content may follow that many arguments."""
        return self.most is None or count < self.most


def table(*parts: Mapping[str, MacroDefinition]) -> dict[str, MacroDefinition]:
    """One table of lower-case names."""
    return {name.lower(): definition for part in parts for name, definition in part.items()}


def constant(read: Callable[["Run"], str]) -> MacroDefinition:
    """A macro without arguments."""
    return MacroDefinition(lambda call: read(call.run))


def aliases(names: str, definition: MacroDefinition) -> dict[str, MacroDefinition]:
    """The same macro under several blank-separated names."""
    return dict.fromkeys(names.split(), definition)
