"""The ports through which pure code reaches JavaScript: regular expressions and scripts.

The engine never imports a JS engine; callers pass one in. Every call may raise ``ScriptBudgetExceeded``: a hostile
pattern or template costs its budget, never more.

Source: design §3, §4 rule 16; style §6 "JS regex, EJS".
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeAlias

import attrs

from tapster.engine.errors import SourceError

Checkpoint: TypeAlias = Callable[[], None]
"""Called between the steps of long work; raises to end it when nobody waits for the result any more."""


def go_on() -> None:
    """A ``Checkpoint`` of work that is never ended early."""


class InvalidPattern(SourceError):
    """A pattern or its flags are not JavaScript."""

    code = "INVALID_PATTERN"
    kind = "TypeError"


class ScriptBudgetExceeded(SourceError):
    """A pattern or script ran over its time, memory or output budget; ``details`` names which."""

    code = "SCRIPT_BUDGET_EXCEEDED"


@attrs.frozen
class RegexMatch:
    """One match; offsets are UTF-16 code units, an unmatched group is None.

    ``groups`` holds the numbered captures from 1 on (the whole match is ``text``).
    """

    start: int
    end: int
    text: str
    groups: tuple[str | None, ...] = ()
    named: Mapping[str, str | None] = attrs.field(factory=dict)


class RegexEngine(Protocol):
    """JavaScript regular expressions with exact syntax and flags."""

    def check(self, pattern: str, flags: str) -> None:
        """Compile only.

        Raises:
            InvalidPattern: the pattern or its flags are not JavaScript.
        """

    def find(self, pattern: str, flags: str, text: str, *, owner: str = "") -> RegexMatch | None:
        """The first match (``RegExp.prototype.exec`` with ``lastIndex`` 0), or None.

        Raises:
            InvalidPattern: the pattern or its flags are not JavaScript.
            ScriptBudgetExceeded: over the budget; the message names ``owner``, whose pattern it is.
        """

    def find_all(self, pattern: str, flags: str, text: str, *, owner: str = "") -> Sequence[RegexMatch]:
        """Every match (``String.prototype.matchAll``; ``g`` is implied); raises as ``find`` does.

        With flag ``y``, the matches that follow one another without a gap from the start.
        """
