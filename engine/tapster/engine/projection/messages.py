"""What the projection keeps of a host message: an id, a role and its text.

Source: spec/activation §3.2; spec/dsh_host §6 (message shape).
"""

from collections.abc import Iterable
from typing import Literal

import attrs

from tapster.engine.ecma import Json, utf16_length, utf16_slice

Role = Literal["user", "assistant"]
JOINER = "\n"


@attrs.frozen
class InputMessage:
    """One queued or claimed message; ``truncated`` when only the tail of its text was kept."""

    id: str | None
    role: Role
    text: str
    truncated: bool = False

    @property
    def units(self) -> int:
        """Length of the text in UTF-16 code units."""
        return utf16_length(self.text)


@attrs.frozen
class HistoryMessage:
    """One message of the host's derived history; ``source_kind`` is None when the host names no source."""

    id: str | None
    role: str
    text: str
    source_kind: str | None = None

    @property
    def is_real_user(self) -> bool:
        """Whether a person wrote it, not a plug-in."""
        return self.role == "user" and self.source_kind in (None, "user")

    @classmethod
    def from_json(cls, message: Json) -> "HistoryMessage":
        """A history message as the host writes it."""
        source = message.get("source")
        kind = source.get("kind") if isinstance(source, dict) else None
        return cls(message_id(message), str(message.get("role")), JOINER.join(text_blocks(message)), kind)


def greeting_applies(history: Iterable[HistoryMessage]) -> bool:
    """Whether the card's greeting still belongs in the prompt: nobody answered, at most one person's message.

    Source: spec/loader §7 "greeting flag".
    """
    people = 0
    for message in history:
        people += message.is_real_user
        if message.role == "assistant" or people > 1:
            return False
    return True


def message_id(message: Json) -> str | None:
    """The id of a host message, or None when it has none."""
    value = message.get("id")
    return value if isinstance(value, str) and value else None


def text_blocks(message: Json) -> list[str]:
    """The texts of a host message's text blocks, in order."""
    content = message.get("content")
    if isinstance(content, str):
        return [content]
    if not isinstance(content, list):
        return []
    return [
        block["text"]
        for block in content
        if isinstance(block, dict) and block.get("type") == "text" and isinstance(block.get("text"), str)
    ]


def materialise(message: Json, room: int) -> InputMessage:
    """The stored form of an inserted message; what exceeds ``room`` code units is cut from its start."""
    if not isinstance(message, dict):
        return InputMessage(None, "user", "")
    role = message.get("role")
    texts = text_blocks(message) if role in ("user", "assistant") else []
    text, truncated = keep_tail(texts, room)
    return InputMessage(message_id(message), "assistant" if role == "assistant" else "user", text, truncated)


def keep_tail(texts: list[str], room: int) -> tuple[str, bool]:
    """The joined texts, or the tail that fits: whole last texts first, then the end of the one before."""
    joined = JOINER.join(texts)
    if utf16_length(joined) <= room:
        return joined, False
    kept: list[str] = []
    for text in reversed(texts):
        left = room - (1 if kept else 0)
        if left <= 0:
            break
        kept.append(tail(text, left))
        room = left - utf16_length(kept[-1])
    return JOINER.join(reversed(kept)), True


def tail(text: str, units: int) -> str:
    """The last code units of a text, at most so many."""
    if units <= 0:
        return ""
    length = utf16_length(text)
    return text if length <= units else utf16_slice(text, length - units)
