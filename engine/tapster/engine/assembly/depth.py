"""Inserting nodes at a depth, never inside a tool transaction.

Source: spec/assembler §8.3.
"""

from collections.abc import Callable, Sequence

import attrs

from .errors import AssemblyRefused
from .messages import Message, answered_call_for_depth, is_tool_result, tool_calls
from .nodes import Draft


def _is_conversation(message: Message) -> bool:
    return message.get("role") != "system"


def insertion_index(
    messages: Sequence[Message], depth: int, is_native: Callable[[Message], bool] = lambda _: True
) -> int:
    """Where a message at a depth goes: before the depth-th native non-system message from the end.

    Args:
        messages: the request so far.
        depth: 0 is the end; more than there are is the first.
        is_native: which messages are the host's.

    Raises:
        AssemblyRefused: ``TOOL_TRANSACTION_UNFINISHED``: calls stay open to the end.
    """
    return moved_past_tools(messages, _raw_index(messages, depth, is_native))


def _raw_index(messages: Sequence[Message], depth: int, is_native: Callable[[Message], bool]) -> int:
    if depth == 0:
        return len(messages)
    places = [index for index, message in enumerate(messages) if is_native(message) and _is_conversation(message)]
    return places[max(len(places) - depth, 0)] if places else len(messages)


def moved_past_tools(messages: Sequence[Message], index: int) -> int:
    """The first index from ``index`` on where no tool call is open."""
    opened: set[str] = set()
    for message in messages[:index]:
        _follow(opened, message)
    while opened:
        if index == len(messages):
            raise AssemblyRefused(
                "nothing can be inserted into a tool transaction that isn't finished",
                code="TOOL_TRANSACTION_UNFINISHED",
            )
        _follow(opened, messages[index])
        index += 1
    return index


def _follow(opened: set[str], message: Message) -> None:
    opened.update(tool_calls(message))
    answered = answered_call_for_depth(message)
    if is_tool_result(message) and answered is not None:
        opened.discard(answered)


@attrs.define(eq=False)
class _Flat:
    """The request's messages while nodes are inserted, with what each does to tool calls worked out once."""

    messages: list[Message]
    native_ids: frozenset[str]
    _effects: list[tuple[list[str], str | None] | None] = attrs.field(factory=list)

    def __attrs_post_init__(self) -> None:
        self._effects = [self._effect(message) for message in self.messages]

    def _effect(self, message: Message) -> tuple[list[str], str | None] | None:
        calls = tool_calls(message)
        answered = answered_call_for_depth(message) if is_tool_result(message) else None
        return (calls, answered) if calls or answered is not None else None

    def is_native(self, message: Message) -> bool:
        return message.get("id") in self.native_ids

    def raw_index(self, depth: int) -> int:
        """As ``_raw_index``, from the end on."""
        if depth == 0:
            return len(self.messages)
        first = len(self.messages)
        for index in range(len(self.messages) - 1, -1, -1):
            message = self.messages[index]
            if self.is_native(message) and _is_conversation(message):
                first, depth = index, depth - 1
                if depth == 0:
                    break
        return first

    def past_tools(self, index: int) -> int:
        """As ``moved_past_tools``."""
        opened: set[str] = set()
        for effect in self._effects[:index]:
            if effect is not None:
                opened.update(effect[0])
                opened.discard(effect[1] or "")
        return index if not opened else moved_past_tools(self.messages, index)

    def insert(self, index: int, messages: Sequence[Message]) -> None:
        self.messages[index:index] = messages
        self._effects[index:index] = [self._effect(message) for message in messages]


def insert_at_depth(nodes: Sequence[Draft], native_ids: frozenset[str]) -> list[Draft]:
    """The nodes with those that have a depth inserted, groups in order of first appearance."""
    placed = [node for node in nodes if node.depth is None]
    groups: dict[int, list[Draft]] = {}
    for node in nodes:
        if node.depth is not None:
            groups.setdefault(node.depth, []).append(node)
    flat = _Flat([message for node in placed for message in node.messages], native_ids)
    for depth, members in groups.items():
        for node in sorted(members, key=lambda member: member.entry.block.order):
            raw = flat.raw_index(depth)
            index = flat.past_tools(raw)
            node.lock_reason = "depth"
            node.adjusted_for_tools = index != raw
            _insert(placed, node, index)
            flat.insert(index, node.messages)
    return placed


def _insert(placed: list[Draft], node: Draft, index: int) -> None:
    start = 0
    for position, other in enumerate(placed):
        count = len(other.messages)
        if index <= start + count:
            _split(placed, position, node, index - start)
            return
        start += count
    placed.append(node)


def _split(placed: list[Draft], position: int, node: Draft, offset: int) -> None:
    other = placed[position]
    if offset == len(other.messages):
        placed.insert(position + 1, node)
        return
    tail = attrs.evolve(other, id=f"{other.id}:split:{offset}", messages=other.messages[offset:])
    if offset == 0:
        placed[position : position + 1] = [node, tail]
        return
    other.messages = other.messages[:offset]
    placed[position + 1 : position + 1] = [node, tail]
