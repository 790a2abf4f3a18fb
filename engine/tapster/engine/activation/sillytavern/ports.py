"""What a scan is given from outside: random draws, a token counter, macros, regex scripts.

All of them are called in an order that only depends on the input, so a replay with the same answers is the same scan.
"""

from collections.abc import Mapping
from typing import Literal, Protocol

import attrs

from tapster.engine.ecma import Json

Variables = Mapping[str, Json]


@attrs.frozen
class DrawFor:
    """What a random number is for: a group by name, or an entry by ``<world>.<uid>``."""

    kind: Literal["group", "entry"]
    name: str


class DrawPort(Protocol):
    """Random numbers in [0, 1)."""

    def __call__(self, purpose: DrawFor, /) -> float:
        """The next number."""


class TokenPort(Protocol):
    """A token counter."""

    def __call__(self, text: str, /) -> int:
        """How many tokens a text has."""


class PromptTextPort(Protocol):
    """The regex scripts that touch world-book content on its way into a prompt."""

    def __call__(self, text: str, depth: int | None, /) -> str:
        """The text after the scripts; ``depth`` only for entries placed in the chat."""


@attrs.frozen
class ScanVariables:
    """The chat's and the global variables."""

    chat: Variables = attrs.field(factory=dict)
    shared: Variables = attrs.field(factory=dict)


@attrs.frozen
class MacroOutcome:
    """A text after its macros, and the variables after them."""

    text: str
    variables: ScanVariables


class MacroPort(Protocol):
    """The macro engine."""

    def __call__(self, text: str, variables: ScanVariables, /) -> MacroOutcome:
        """The expanded text."""


def no_macros(text: str, variables: ScanVariables) -> MacroOutcome:
    """A macro port that leaves texts as they are."""
    return MacroOutcome(text, variables)


def keep_text(text: str, depth: int | None) -> str:
    """A prompt-text port without any script."""
    return text
