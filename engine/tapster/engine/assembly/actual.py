"""What was actually sent, as a display of a recorded request; never a reconstruction.

Source: spec/assembler §18.
"""

from collections.abc import Mapping, Sequence

import attrs

from tapster.engine.ecma import Json

from .messages import blocks_of, source_of

OWNERS = frozenset({"dsh-prompt-assembler", "pmp-dsh-tavern"})
"""Owners whose ``request/assembly`` records are read."""


@attrs.frozen(eq=False)
class ActualResult:
    """A recorded request as people see it."""

    messages: tuple[Mapping[str, Json], ...]
    nodes: tuple[dict[str, Json], ...]
    diagnostics: tuple[Json, ...]
    history_policy: Json
    assembly: Mapping[str, Json]

    def to_json(self) -> dict[str, Json]:
        return {
            **self.assembly,
            "diagnostics": list(self.diagnostics),
            "nodes": list(self.nodes),
            "messages": list(self.messages),
            "historyPolicy": self.history_policy,
            "actual": True,
        }


def actual_assembly_result(record: Mapping[str, Json]) -> ActualResult:
    """The display of a verified record.

    Args:
        record: ``messages`` and perhaps ``metadata`` with ``assembly`` and ``historyPolicy``.
    """
    messages = [message for message in record.get("messages") or [] if isinstance(message, dict)]
    metadata = _record(record.get("metadata"))
    assembly, policy = metadata.get("assembly"), metadata.get("historyPolicy")
    if isinstance(assembly, dict):
        given = assembly.get("nodes")
        nodes = _adjusted(given if isinstance(given, list) else [], messages, _record(policy))
        diagnostics = assembly.get("diagnostics")
    else:
        assembly, diagnostics = {}, []
        nodes = [_plain_node(index, message) for index, message in enumerate(messages)]
    return ActualResult(
        messages=tuple(messages),
        nodes=tuple(nodes),
        diagnostics=tuple(diagnostics if isinstance(diagnostics, list) else []),
        history_policy=policy,
        assembly=assembly,
    )


def _record(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, dict) else {}


def _plain_node(index: int, message: Mapping[str, Json]) -> dict[str, Json]:
    role = str(message.get("role"))
    is_unrecorded = role == "system" or source_of(message).get("form") == "snapshot"
    return {
        "id": message.get("id"),
        "module": "native-system" if role == "system" else "history",
        "name": "source-unrecorded" if is_unrecorded else role,
        "role": role,
        "text": display_text(message),
        "messages": [message],
        "start": index,
        "count": 1,
    }


def display_text(message: Mapping[str, Json]) -> str:
    """The text of a message with other blocks shown as ``[type]``."""
    parts = [block["text"] if block.get("type") == "text" else f"[{block.get('type')}]" for block in blocks_of(message)]
    return "\n".join(parts)


def _adjusted(
    nodes: Sequence[Json], messages: Sequence[Mapping[str, Json]], policy: Mapping[str, Json]
) -> list[dict[str, Json]]:
    decisions = policy.get("decisions")
    changed = {
        str(decision.get("messageId"))
        for decision in (decisions if isinstance(decisions, list) else [])
        if isinstance(decision, dict) and decision.get("action") != "keep"
    }
    final = {str(message.get("id")): message for message in messages}
    shown = [_adjust(node, changed, final) for node in nodes if isinstance(node, dict)]
    return [node for node in shown if node is not None]


def _adjust(
    node: dict[str, Json], changed: set[str], final: Mapping[str, Mapping[str, Json]]
) -> dict[str, Json] | None:
    carried = node.get("messages")
    own = [message for message in carried if isinstance(message, dict)] if isinstance(carried, list) else []
    if not any(str(message.get("id")) in changed for message in own):
        return node
    kept: list[Mapping[str, Json]] = []
    for message in own:
        message_id = str(message.get("id"))
        if message_id not in changed:
            kept.append(message)
        elif message_id in final:
            kept.append(final[message_id])
    if not kept:
        return None
    text = "\n\n".join(display_text(message) for message in kept)
    return {**node, "messages": kept, "text": text, "historyFiltered": True}
