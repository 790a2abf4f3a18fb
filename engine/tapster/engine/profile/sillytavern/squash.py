"""Neighbouring system messages as one, and what is left out of a request."""

from collections.abc import Sequence
from typing import Final

import attrs

from .content import join
from .model import Message

_KEPT_APART: Final = frozenset({"newMainChat", "newChat", "groupNudge"})


def sent_messages(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages without the empty ones."""
    return tuple(message for message in messages if message.content)


def squash(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages with neighbouring unnamed system messages joined by a line break; announcements stay apart."""
    result: list[Message] = []
    for message in sent_messages(messages):
        if result and _joins(result[-1]) and _joins(message):
            result[-1] = attrs.evolve(result[-1], content=join("\n", [result[-1].content, message.content]))
        else:
            result.append(message)
    return tuple(result)


def _joins(message: Message) -> bool:
    return message.role == "system" and not message.name and message.identifier not in _KEPT_APART
