"""The standard plan: hide and restore whole consumed plug-in messages on the durable surface.

Pure: it says what to append; the host appends. Every hide can be undone, because its marker holds the message.
Source: spec/history_policy §5, §6.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import attrs

from tapster.engine.assembly.errors import AssemblyRefused, InvalidAssembly
from tapster.engine.assembly.messages import Message, kind_of, source_of
from tapster.engine.ecma import Json, is_safe_integer, sha256_json

from .filter import Warned, event_message, has_block
from .policy import HistoryPolicy

OWNER = "dsh-prompt-assembler/history-policy"
_KNOWN_KINDS = frozenset(
    {"user", "model", "system-prompt", "tool", "runtime-context", "dsh-prompt-assembler", "ptc-mode"}
)
_PROTECTED_KINDS = frozenset({"user", "model", "system-prompt"})
Event = Mapping[str, Json]
Action = Literal["keep", "restore", "exclude"]


@attrs.frozen
class Operation:
    """One event to append: it replaces exactly ``target_seq`` on the surface."""

    action: Literal["hide", "restore"]
    target_seq: int
    original_seq: int
    message: Message

    @property
    def source_event_seqs(self) -> list[int]:
        return list(dict.fromkeys((self.target_seq, self.original_seq)))

    def event(self, policy: HistoryPolicy, revision: int) -> dict[str, Json]:
        """The event body, surface operation and origins to append."""
        surface = {"surfaceOp": {"op": "replace", "startSeq": self.target_seq, "endSeq": self.target_seq}}
        origin = {"sourceEventSeqs": self.source_event_seqs}
        if self.action == "restore":
            return {"type": "user/message", "data": dict(self.message), **surface, **origin}
        data: dict[str, Json] = {
            "message": {
                # A developer message: an empty system one would be taken over by system routing.
                "id": f"{self.message.get('id')}:hidden",
                "role": "developer",
                "content": [],
                "source": {"kind": OWNER},
            },
            "historyPolicy": {
                "owner": OWNER,
                "version": 1,
                "action": "hide",
                "targetSeq": self.target_seq,
                "originalSeq": self.original_seq,
                "message": dict(self.message),
                "messageHash": sha256_json(self.message),
                "revision": revision,
                "policy": policy.to_json(),
                "policyHash": policy.hash,
            },
        }
        return {"type": "developer/message", "data": data, **surface, **origin}


@attrs.frozen
class Row:
    """What the plan does with one message of the surface."""

    message_id: str
    seq: int
    original_seq: int | None
    source_kind: str
    role: str
    action: Action
    reasons: tuple[str, ...]
    original: Message
    effective: Message | None
    before_hash: str | None
    after_hash: str | None

    def to_json(self) -> dict[str, Json]:
        """The row as evidence: without any message body."""
        return {
            "messageId": self.message_id,
            "seq": self.seq,
            "originalSeq": self.original_seq,
            "sourceKind": self.source_kind,
            "role": self.role,
            "action": self.action,
            "blocks": [],
            "reasons": list(self.reasons),
            "beforeHash": self.before_hash,
            "afterHash": self.after_hash,
        }

    def preview_json(self) -> dict[str, Json]:
        """The row with both bodies, for the preview alone."""
        return {**self.to_json(), "original": self.original, "effective": self.effective}


@attrs.frozen
class StandardPlan:
    """Everything one step does to the history, decided before anything is written."""

    messages: tuple[Message, ...]
    operations: tuple[Operation, ...]
    rows: tuple[Row, ...]
    warnings: tuple[Warned, ...]
    reconcile_system: bool
    cutoff_seq: int
    policy: HistoryPolicy
    revision: int

    @property
    def audit(self) -> dict[str, Json]:
        originals = [row.original for row in self.rows if row.before_hash is not None]
        return {
            "version": 1,
            "policy": self.policy.to_json(),
            "policyHash": self.policy.hash,
            "applied": self.policy.enabled,
            "scope": "current-native-surface",
            "currentStepSeq": None,
            "reasoningSafety": {"canOmit": False, "contract": None},
            "beforeHash": sha256_json(originals),
            "afterHash": sha256_json(list(self.messages)),
            "decisions": [row.to_json() for row in self.rows],
            "warnings": [warning.to_json() for warning in self.warnings],
            "mode": "standard",
            "revision": self.revision,
            "cutoffSeq": self.cutoff_seq,
        }


@attrs.frozen
class HideMarker:
    """A verified placeholder of ours."""

    target_seq: int
    original_seq: int
    message: Message
    message_hash: str


def replaced_range(event: Event) -> tuple[int, int] | None:
    """The surface seqs an event replaces, first and last; None when it doesn't replace."""
    operation = event.get("surfaceOp")
    if not isinstance(operation, dict) or operation.get("op") != "replace":
        return None
    start: Json = operation.get("startSeq", operation.get("start"))
    end: Json = operation.get("endSeq", operation.get("end"))
    return (int(start), int(end)) if is_safe_integer(start) and is_safe_integer(end) else None


def read_marker(event: Event) -> HideMarker | None:
    """The hide marker an event is; None when any check of the contract fails."""
    data = event.get("data")
    if event.get("type") != "developer/message" or not isinstance(data, dict):
        return None
    record, placeholder = data.get("historyPolicy"), data.get("message")
    if not isinstance(record, dict) or not isinstance(placeholder, dict):
        return None
    stored: Json = record.get("message")
    target: Json = record.get("targetSeq")
    original: Json = record.get("originalSeq")
    origins = event.get("sourceEventSeqs")
    is_ours = (
        record.get("owner") == OWNER
        and record.get("version") == 1
        and record.get("action") == "hide"
        and placeholder.get("role") == "developer"
        and placeholder.get("content") == []
        and is_safe_integer(target)
        and is_safe_integer(original)
        and replaced_range(event) == (target, target)
        and isinstance(origins, list)
        and target in origins
        and original in origins
        and isinstance(stored, dict)
        and stored.get("role") == "user"
        and sha256_json(stored) == record.get("messageHash")
    )
    if not is_ours:
        return None
    return HideMarker(int(target), int(original), stored, str(record["messageHash"]))


def plan_standard(
    events: Iterable[Event],
    nodes: object,
    messages: Sequence[Message],
    policy: HistoryPolicy,
    *,
    pending: Sequence[Message] = (),
    cutoff_seq: int | None = None,
    revision: int = 0,
) -> StandardPlan:
    """What the standard mode hides and restores before the next step.

    Args:
        events: the session's events, all that the surface names among them.
        nodes: seqs of the current surface, in order.
        messages: the current surface messages.
        policy: the policy captured at the hook's entry.
        pending: messages the step is about to append; they are kept.
        cutoff_seq: only messages up to it are consumed; default the newest ``step/end``.
        revision: the policy's revision, kept in the evidence.

    Raises:
        InvalidAssembly: ``nodes`` is no list of seqs.
        AssemblyRefused: a node has no event (``HISTORY_WINDOW_INCOMPLETE``).
    """
    if not isinstance(nodes, list | tuple) or not all(is_safe_integer(seq) for seq in nodes):
        raise InvalidAssembly("the standard history needs the surface's event seqs", code="HISTORY_NODES_INVALID")
    by_seq = {event["seq"]: event for event in events if is_safe_integer(event.get("seq"))}
    if cutoff_seq is None:
        cutoff_seq = max((seq for seq, event in by_seq.items() if event.get("type") == "step/end"), default=-1)
    surface = {str(message.get("id")): message for message in messages}
    planner = _Planner(policy, cutoff_seq, by_seq)
    rows = [row for seq in nodes if (row := planner.row(int(seq), surface)) is not None]
    kept = tuple(row.effective for row in rows if row.effective is not None)
    return StandardPlan(
        messages=(*kept, *pending),
        operations=tuple(planner.operations),
        rows=tuple(rows),
        warnings=tuple(planner.warnings),
        reconcile_system=policy.enabled and policy.includes("system-prompt") is False,
        cutoff_seq=cutoff_seq,
        policy=policy,
        revision=revision,
    )


@attrs.define(eq=False)
class _Planner:
    policy: HistoryPolicy
    cutoff_seq: int
    events: Mapping[int, Event]
    operations: list[Operation] = attrs.field(factory=list)
    warnings: list[Warned] = attrs.field(factory=list)

    def row(self, seq: int, surface: Mapping[str, Message]) -> Row | None:
        event = self.events.get(seq)
        if event is None:
            raise AssemblyRefused(
                f"the surface names event {seq}, which the event window doesn't hold",
                code="HISTORY_WINDOW_INCOMPLETE",
            )
        marker = read_marker(event)
        message = marker.message if marker is not None else event_message(event)
        if message is None:
            return None
        if marker is None:
            message = surface.get(str(message.get("id")), message)
        original_seq = self._original_seq(seq, event, marker)
        excluded, reasons = self._judge(message, seq, original_seq)
        return self._act(message, seq, original_seq, marker, excluded, reasons)

    def _original_seq(self, seq: int, event: Event, marker: HideMarker | None) -> int | None:
        if marker is not None:
            return marker.original_seq
        replaced = replaced_range(event)
        if replaced is None:
            return seq if event.get("surfaceOp") == "append" else None
        if replaced[0] == replaced[1] and (hidden := self.events.get(replaced[0])) is not None:
            restored = read_marker(hidden)
            message = event_message(event)
            if restored is not None and message is not None and sha256_json(message) == restored.message_hash:
                return restored.original_seq
        return None

    def _judge(self, message: Message, seq: int, original_seq: int | None) -> tuple[bool, tuple[str, ...]]:
        role, kind = message.get("role"), kind_of(message)
        selected = self.policy.includes(kind)
        if not self.policy.enabled:
            return False, ("POLICY_DISABLED",)
        if role == "system" and kind == "system-prompt" and seq <= self.cutoff_seq and selected is False:
            return True, ("SYSTEM_REASSEMBLED",)
        if (
            role != "user"
            or kind in _PROTECTED_KINDS
            or source_of(message).get("replayState") is not None
            or has_block(message, "tool-call", "tool-result", "reasoning")
        ):
            return False, ("PROTECTED_PROTOCOL_MESSAGE",)
        if kind not in _KNOWN_KINDS and selected is None:
            self.warnings.append(Warned("UNKNOWN_SOURCE_RETAINED", str(message.get("id")), seq))
            return False, ("UNKNOWN_SOURCE_RETAINED",)
        if original_seq is None:
            return False, ("NATIVE_REPLACEMENT_RETAINED",)
        if original_seq > self.cutoff_seq:
            return False, ("CURRENT_OR_ASSEMBLED_CONTENT",)
        return (True, ("SOURCE_EXCLUDED",)) if selected is False else (False, ())

    def _act(
        self,
        message: Message,
        seq: int,
        original_seq: int | None,
        marker: HideMarker | None,
        excluded: bool,
        reasons: tuple[str, ...],
    ) -> Row:
        action: Action = "exclude" if excluded else "keep" if marker is None else "restore"
        is_user = message.get("role") == "user"
        if original_seq is not None and is_user and excluded == (marker is None) and action != "keep":
            self.operations.append(Operation("hide" if excluded else "restore", seq, original_seq, message))
        effective = None if excluded else message
        return Row(
            message_id=str(message.get("id")),
            seq=seq,
            original_seq=original_seq,
            source_kind=kind_of(message),
            role=str(message.get("role")),
            action=action,
            reasons=reasons,
            original=message,
            effective=effective,
            before_hash=None if marker is not None else sha256_json(message),
            after_hash=None if effective is None else sha256_json(effective),
        )


def runtime_context_refresh(
    events: Iterable[Event], policy: HistoryPolicy, decision: Sequence[Message], cutoff_seq: int, new_id: str
) -> Message | None:
    """A fresh copy of the newest runtime context, so that the old one may go while its content stays in force.

    Args:
        events: the session's events.
        policy: the captured policy.
        decision: the messages the step is about to append.
        cutoff_seq: only a context up to it is copied.
        new_id: the id of the copy.
    """
    if not policy.enabled or policy.includes("runtime-context") is not False:
        return None
    if any(kind_of(message) == "runtime-context" for message in decision):
        return None
    newest: tuple[int, Message] | None = None
    for event in events:
        message = event_message(event)
        if message is not None and kind_of(message) == "runtime-context":
            newest = (event["seq"], message)
    if newest is None or newest[0] > cutoff_seq:
        return None
    message = newest[1]
    plain = all(isinstance(block, dict) and block.get("type") in ("text", "image") for block in message["content"])
    if message.get("role") != "user" or source_of(message).get("replayState") is not None or not plain:
        return None
    return {"id": new_id, "role": "user", "content": message["content"], "source": message["source"]}


def restore_placeholders(messages: Sequence[Message], events: Iterable[Event]) -> tuple[Message, ...]:
    """A copy of the messages with our placeholders replaced by what they hide (for the advanced preview)."""
    hidden: dict[str, Message] = {}
    for event in events:
        marker = read_marker(event)
        if marker is not None:
            hidden[str(event["data"]["message"].get("id"))] = marker.message
    return tuple(hidden.get(str(message.get("id")), message) for message in messages)
