"""Nodes: one emitted block each, first as a draft being placed, then as part of a result.

Source: spec/assembler §13.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import attrs

from tapster.engine.ecma import Json

from .definition import ResourceAnchor
from .entries import Entry
from .ids import content_hash
from .messages import Message, contributed
from .preset import Rule

Region = Literal[
    "request",
    "system",
    "history",
    "before-input:pre-step",
    "input",
    "after-input:context",
    "after-input:pre-step",
]


@attrs.frozen
class Span:
    """Where characters [start, end) of a text came from; offsets in UTF-16 units.

    ``via`` is ``text`` for the block's own, ``macro:<name>`` for an inserted block, and ``render`` for a text that
    its source's renderer changed as a whole.
    """

    start: int
    end: int
    key: str
    via: str

    def to_json(self) -> dict[str, Json]:
        return {"start": self.start, "end": self.end, "key": self.key, "via": self.via}


@attrs.define(eq=False, kw_only=True)
class Draft:
    """A node while the request is being placed; lives within one assembly and never leaves it."""

    id: str
    entry: Entry
    rule: Rule
    place_rule: Rule
    role: str
    text: str = ""
    messages: list[Message] = attrs.field(factory=list)
    children: list[Json] = attrs.field(factory=list)
    spans: tuple[Span, ...] = ()
    depth: int | None = None
    requested_depth: int | None = None
    lock_reason: str | None = None
    slot_id: str | None = None
    slot_owner: str | None = None
    slot_owner_rule_id: str | None = None
    decision: str = "source"
    original_role: str | None = None
    authored_role: str | None = None
    adjusted_for_tools: bool = False
    native_placement: str | None = None
    native_delivery: str | None = None
    is_overridden: bool = False
    is_adapted: bool = False
    is_depth_anchor: bool = False
    region: Region = "request"
    first_index: int = 0
    _hashed: tuple[str, str] = ("", "")

    @property
    def is_native(self) -> bool:
        return self.entry.block.type == "native"

    @property
    def is_snapshot(self) -> bool:
        return not self.is_native and self.rule.lifetime == "snapshot"

    @property
    def is_runtime(self) -> bool:
        """Whether the node's place is the host's or the run's: no strategy and no user moves it."""
        return self.is_native or self.is_snapshot or self.is_depth_anchor or self.depth is not None

    @property
    def module(self) -> str:
        return self.entry.source_id

    @property
    def name(self) -> str:
        return self.entry.block.name

    @property
    def anchor(self) -> ResourceAnchor | None:
        return None if self.is_native else self.entry.position.anchor

    @property
    def lifetime(self) -> str:
        return "native" if self.is_native else self.rule.lifetime

    @property
    def hash(self) -> str:
        """The content's hash, worked out once for the role it has by then."""
        if self._hashed[0] != self.role:
            self._hashed = (self.role, content_hash(self.text, self.role))
        return self._hashed[1]

    @property
    def layout_group(self) -> str:
        return self.entry.block.group or self.entry.block.field

    def make_message(self) -> None:
        """Give a text node its message, once its role is final."""
        if not self.is_native:
            self.messages = [contributed(self.entry.key, self.text, self.role, self.hash)]

    def strategy_json(self) -> dict[str, Json]:
        """The node as strategies see it."""
        return {
            "id": self.id,
            "ruleId": self.rule.id,
            "module": self.module,
            "name": self.name,
            "role": self.role,
            "text": self.text,
            "source": source_json(self.entry),
            "lifetime": self.lifetime,
            "depth": self.requested_depth if self.depth is None else self.depth,
            "order": self.entry.block.order,
            "positionId": self.entry.position.id,
            "layoutGroup": self.layout_group,
            "slotId": self.slot_id,
            "slotOwner": self.slot_owner,
            "slotOwnerRuleId": self.slot_owner_rule_id,
            "resourceAnchor": None if self.anchor is None else self.anchor.to_json(),
            "region": self.region,
        }


def source_json(entry: Entry) -> dict[str, Json]:
    """The provenance record of a block."""
    definition = entry.job.registration.definition
    return {
        "plugin": definition.plugin_id,
        "module": definition.id,
        "sourceId": definition.id,
        "version": definition.version,
        "resourceId": entry.block.resource_id,
        "field": entry.block.field,
        "generationRequiresPlugin": definition.generation_requires_plugin is not False,
        "recordedContentSurvivesRemoval": True,
    }


@attrs.frozen(kw_only=True)
class Node:
    """One placed piece of a request; bodies are in the request's messages, not here.

    ``start`` and ``count`` are message indexes; ``spans`` cover ``text`` without gap or overlap.
    """

    id: str
    rule_id: str
    module: str
    name: str
    role: str
    text: str
    source: Mapping[str, Json]
    stability: str
    lifetime: str
    recorded: bool
    lock_reason: str | None
    children: tuple[Json, ...]
    spans: tuple[Span, ...]
    hash: str
    depth: int | None
    order: float
    changed: bool
    start: int
    count: int
    request_message_ids: tuple[str, ...]
    position_id: str
    position_decision: str
    original_role: str | None
    message_roles: tuple[str, ...]
    layout_group: str
    slot_id: str | None = None
    slot_owner: str | None = None
    slot_owner_rule_id: str | None = None
    resource_anchor: Mapping[str, Json] | None = None
    adjusted_for_tools: bool = False
    native_placement: str | None = None
    native_delivery: str | None = None
    native_requested_depth: int | None = None
    authored_role: str | None = None
    position_override: bool = False
    input_message_ids: tuple[str, ...] | None = None
    region: Region = "request"
    is_runtime: bool = False

    def to_json(self) -> dict[str, Json]:
        value: dict[str, Json] = {
            "id": self.id,
            "ruleId": self.rule_id,
            "module": self.module,
            "name": self.name,
            "role": self.role,
            "text": self.text,
            "source": dict(self.source),
            "stability": self.stability,
            "lifetime": self.lifetime,
            "recorded": self.recorded,
            "locked": self.lock_reason is not None,
            "lockReason": self.lock_reason,
            "children": list(self.children),
            "spans": [span.to_json() for span in self.spans],
            "hash": self.hash,
            "depth": self.depth,
            "order": self.order,
            "changed": self.changed,
            "start": self.start,
            "count": self.count,
            "requestMessageIds": list(self.request_message_ids),
            "positionId": self.position_id,
            "positionDecision": self.position_decision,
            "originalRole": self.original_role,
            "messageRoles": list(self.message_roles),
            "layoutGroup": self.layout_group,
            "slotId": self.slot_id,
        }
        optional: dict[str, Json] = {
            "slotOwner": self.slot_owner,
            "slotOwnerRuleId": self.slot_owner_rule_id,
            "resourceAnchor": None if self.resource_anchor is None else dict(self.resource_anchor),
            "adjustedForTools": self.adjusted_for_tools or None,
            "nativePlacement": self.native_placement,
            "nativeDelivery": self.native_delivery,
            "nativeRequestedDepth": self.native_requested_depth,
            "authoredRole": self.authored_role,
            "positionOverride": self.position_override or None,
            "inputMessageIds": None if self.input_message_ids is None else list(self.input_message_ids),
        }
        return value | {key: member for key, member in optional.items() if member is not None}


MARK_BYTES = 8


def node_mark(node_id: str, content: str) -> bytes:
    """Eight bytes that stand for a node with this content."""
    return hashlib.sha256(f"{node_id}\n{content}".encode(errors="surrogatepass")).digest()[:MARK_BYTES]


def node_marks(nodes: Iterable[tuple[str, str]]) -> bytes:
    """The marks of nodes, one after the other."""
    return b"".join(node_mark(node_id, content) for node_id, content in nodes)


def read_marks(marks: bytes) -> frozenset[bytes]:
    """Marks as a set."""
    return frozenset(marks[index : index + MARK_BYTES] for index in range(0, len(marks), MARK_BYTES))


def finish_node(draft: Draft, start: int, messages: Sequence[Message], previous: frozenset[bytes] | None) -> Node:
    """The result's node of a draft whose messages stand at ``start``.

    Args:
        draft: the placed draft.
        start: index of its first message in the request.
        messages: its messages as they go out.
        previous: node marks of the last request of the session, None when there was none.
    """
    block = draft.entry.block
    return Node(
        id=draft.id,
        rule_id=draft.rule.id,
        module=draft.module,
        name=draft.name,
        role=draft.role,
        text=draft.text,
        source=source_json(draft.entry),
        stability=block.stability or draft.entry.job.registration.definition.stability,
        lifetime=draft.lifetime,
        recorded=draft.is_native,
        lock_reason=draft.lock_reason,
        children=tuple(draft.children),
        spans=draft.spans,
        hash=draft.hash,
        depth=draft.depth,
        order=block.order,
        changed=previous is not None and node_mark(draft.id, draft.hash) not in previous,
        start=start,
        count=len(messages),
        request_message_ids=tuple(str(message["id"]) for message in messages),
        position_id=draft.entry.position.id,
        position_decision=draft.decision,
        original_role=draft.original_role,
        message_roles=tuple(str(message["role"]) for message in messages),
        layout_group=draft.layout_group,
        slot_id=draft.slot_id,
        slot_owner=draft.slot_owner,
        slot_owner_rule_id=draft.slot_owner_rule_id,
        resource_anchor=None if draft.anchor is None else draft.anchor.to_json(),
        adjusted_for_tools=draft.adjusted_for_tools,
        native_placement=draft.native_placement,
        native_delivery=draft.native_delivery,
        native_requested_depth=draft.requested_depth,
        authored_role=draft.authored_role,
        position_override=draft.is_overridden,
        region=draft.region,
        is_runtime=draft.is_runtime,
    )
