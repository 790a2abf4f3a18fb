"""Reading host messages and making contributed ones.

A message stays the host's JSON document; the assembler reads a few of its members and never edits it.
Source: spec/assembler §2, §8.1.
"""

import json
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from tapster.engine.ecma import Json, stringify, utf8

from .errors import InvalidAssembly
from .ids import content_hash, message_id

Message: TypeAlias = Mapping[str, Json]
"""One host message: ``id``, ``role``, ``content`` blocks, ``source``."""

_SOURCES: dict[str, dict[str, str]] = {
    "system": {"kind": "system-prompt"},
    "assistant": {"kind": "model", "provider": "tavern", "model": "assembly"},
    "user": {"kind": "tavern-assembly"},
}


def check_native(messages: object) -> None:
    """Refuse host messages that nothing could be assembled from.

    Raises:
        InvalidAssembly: ``NATIVE_MESSAGE_INVALID``, for the first message without a text ``id`` or ``role``, or with a
            text block that holds no text.
    """
    if not isinstance(messages, list | tuple):
        raise InvalidAssembly("native messages must be a list", code="NATIVE_MESSAGE_INVALID")
    for index, message in enumerate(messages):
        if not isinstance(message, dict) or not all(isinstance(message.get(key), str) for key in ("id", "role")):
            raise InvalidAssembly(
                f"native message {index} needs an id and a role",
                code="NATIVE_MESSAGE_INVALID",
                details={"index": index},
            )
        for block in blocks_of(message):
            if block.get("type") == "text" and not isinstance(block.get("text"), str):
                raise InvalidAssembly(
                    f"native message {message['id']} has a text block without text",
                    code="NATIVE_MESSAGE_INVALID",
                    details={"index": index},
                )


def text_of(message: Message) -> str:
    """All text blocks of a message, joined by line breaks."""
    return "\n".join(
        block["text"]
        for block in blocks_of(message)
        if block.get("type") == "text" and isinstance(block.get("text"), str)
    )


def blocks_of(message: Message) -> list[Json]:
    """The content blocks of a message; none when it has no list of them."""
    content = message.get("content")
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def source_of(message: Message) -> Mapping[str, Json]:
    """The origin record of a message, empty when there is none."""
    source = message.get("source")
    return source if isinstance(source, dict) else {}


def kind_of(message: Message) -> str:
    """The exact origin tag of a message; ``unknown`` without one."""
    kind = source_of(message).get("kind")
    return kind if isinstance(kind, str) else "unknown"


def tool_calls(message: Message) -> list[str]:
    """The ids of the tool calls an assistant message opens."""
    if message.get("role") != "assistant":
        return []
    return [str(block.get("id")) for block in blocks_of(message) if block.get("type") == "tool-call"]


def is_tool_result(message: Message) -> bool:
    """Whether a message answers a tool call: by its role, or by a result block as older hosts write it."""
    return message.get("role") == "tool" or any(block.get("type") == "tool-result" for block in blocks_of(message))


def answered_call(message: Message) -> str | None:
    """The call a tool message answers, as the final integrity check reads it."""
    return _first_text(message.get("toolCallId"), source_of(message).get("callId"), *_result_blocks(message))


def answered_call_for_depth(message: Message) -> str | None:
    """The call a tool message answers, as depth insertion reads it."""
    own = (message.get("toolCallId"), source_of(message).get("callId"), message.get("callId"))
    return _first_text(*own, *_result_blocks(message))


def _result_blocks(message: Message) -> list[Json]:
    return [block.get("toolCallId") for block in blocks_of(message) if block.get("type") == "tool-result"]


def _first_text(*candidates: Json) -> str | None:
    return next((value for value in candidates if isinstance(value, str) and value), None)


def contributed(key: str, text: str, role: str, content: str | None = None) -> dict[str, Json]:
    """The message a text block becomes, with its stable id; ``content`` is its content hash if it is known."""
    return {
        "id": message_id(key, content or content_hash(text, role)),
        "role": role,
        "content": [{"type": "text", "text": text}],
        "source": dict(_SOURCES[role]),
    }


def json_size(value: Json) -> int:
    """UTF-8 bytes of a value's JSON text."""
    if holds_only_text(value):
        try:
            return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())
        except UnicodeEncodeError:
            pass
    return len(utf8(stringify(value)))


def holds_only_text(value: Json) -> bool:
    """Whether a value has no numbers, whose text differs between JSON writers."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            waiting += item.values()
        elif isinstance(item, list):
            waiting += item
        elif not isinstance(item, str):
            return False
    return True


def by_id(messages: Iterable[Message]) -> dict[str, Message]:
    """Messages by their id; the first of an id counts."""
    found: dict[str, Message] = {}
    for message in messages:
        found.setdefault(str(message.get("id")), message)
    return found
