"""A chat's greeting: its macros run once, when the chat is first opened with it.

Source: the vectors' README, repaired quirk 6.
"""

import attrs

from .ports import MacroPort, ScanVariables


@attrs.frozen
class ChatOpening:
    """The greeting a chat was opened with, its macros already run; None before that."""

    greeting: str | None = None


def open_chat(
    opening: ChatOpening, greeting: str, variables: ScanVariables, macros: MacroPort
) -> tuple[ChatOpening, ScanVariables]:
    """The opened chat and the variables after it; a chat that was opened before stays as it is."""
    if opening.greeting is not None:
        return opening, variables
    outcome = macros(greeting, variables)
    return ChatOpening(outcome.text), outcome.variables
