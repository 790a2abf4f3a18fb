"""The last checks of a request; nothing leaves the assembler that fails one.

Source: spec/assembler §9.
"""

from collections import Counter
from collections.abc import Sequence

from tapster.engine.ecma import Json

from .errors import AssemblyRefused
from .messages import Message, answered_call, is_tool_result, json_size, tool_calls


def check_native_once(messages: Sequence[Message], required: Sequence[str]) -> None:
    """Each native message an emitted block names is there exactly once.

    Raises:
        AssemblyRefused: ``NATIVE_MESSAGES_INCOMPLETE``.
    """
    counts = Counter(str(message.get("id")) for message in messages)
    named = Counter(required)
    if any(count != 1 or counts[message_id] != 1 for message_id, count in named.items()):
        raise AssemblyRefused(
            "each enabled native message must be in the request exactly once", code="NATIVE_MESSAGES_INCOMPLETE"
        )


def check_system_order(messages: Sequence[Message], native: Sequence[Message], included: frozenset[str]) -> None:
    """Each native system message keeps the same conversation before it as in the host's history.

    Raises:
        AssemblyRefused: ``ASSEMBLY_NATIVE_SYSTEM_ORDER`` (409).
    """
    if _conversation_before(native, included) != _conversation_before(messages, included):
        raise AssemblyRefused(
            "this layout moves native messages across a system update", code="ASSEMBLY_NATIVE_SYSTEM_ORDER", status=409
        )


def _conversation_before(messages: Sequence[Message], included: frozenset[str]) -> dict[str, frozenset[str]]:
    seen: set[str] = set()
    before: dict[str, frozenset[str]] = {}
    for message in messages:
        message_id = str(message.get("id"))
        if message_id in included:
            if message.get("role") == "system":
                before[message_id] = frozenset(seen)
            else:
                seen.add(message_id)
    return before


def check_tools(messages: Sequence[Message]) -> None:
    """No tool transaction is split, reordered or left open.

    Raises:
        AssemblyRefused: ``TOOL_TRANSACTION_SPLIT``, ``TOOL_RESULT_ORPHAN`` or ``TOOL_TRANSACTION_INCOMPLETE``.
    """
    opened: set[str] = set()
    for message in messages:
        if is_tool_result(message):
            answered = answered_call(message)
            if answered not in opened:
                raise AssemblyRefused("a tool result must follow the call it answers", code="TOOL_RESULT_ORPHAN")
            opened.discard(answered)
            continue
        if opened:
            raise AssemblyRefused("a tool call and its results can't be split", code="TOOL_TRANSACTION_SPLIT")
        opened.update(tool_calls(message))
    if opened:
        raise AssemblyRefused("a native tool transaction isn't complete", code="TOOL_TRANSACTION_INCOMPLETE")


def emptiness(messages: Sequence[Message]) -> list[dict[str, Json]]:
    """The diagnostic for a request with nothing, or nothing but system text."""
    if not messages:
        return [{"code": "ASSEMBLY_EMPTY"}]
    if all(message.get("role") == "system" for message in messages):
        return [{"code": "ASSEMBLY_SYSTEM_ONLY"}]
    return []


def check_size(contributed: Sequence[Message], max_bytes: int) -> int:
    """The JSON bytes of what was contributed.

    Raises:
        AssemblyRefused: ``ASSEMBLY_TOO_LARGE`` (413) above the limit.
    """
    size = json_size(list(contributed))
    if size > max_bytes and contributed:
        raise AssemblyRefused(
            f"the assembled content has {size} bytes, {max_bytes} are allowed",
            code="ASSEMBLY_TOO_LARGE",
            status=413,
            details={"size_bytes": size, "limit_bytes": max_bytes},
        )
    return size
