"""The advanced filter: a copy of the request's messages without what the policy keeps out.

Source: spec/history_policy §3.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import attrs

from tapster.engine.assembly.errors import AssemblyRefused
from tapster.engine.assembly.messages import Message, blocks_of, is_tool_result, kind_of, source_of
from tapster.engine.ecma import Json, is_number, is_safe_integer, sha256_json

from .fragments import FragmentRange, cut, find_fragments, merge_ranges
from .policy import DEFAULT_POLICY, HistoryPolicy

KNOWN_KINDS = frozenset({"user", "model", "tool", "system-prompt"})
_MESSAGE_EVENTS = frozenset({"user/message", "assistant/message", "system/message", "developer/message", "tool/result"})
Action = Literal["keep", "edit", "exclude"]


@attrs.frozen
class ReasoningSafety:
    """What the host's configuration says about leaving reasoning out; never a client's input."""

    can_omit: object = False
    contract: object = None
    tools_present: bool = False


@attrs.frozen
class Warned:
    """Something kept although the policy asked otherwise, or a voided fragment rule."""

    code: str
    message_id: str
    seq: int | None

    def to_json(self) -> dict[str, Json]:
        return {"code": self.code, "messageId": self.message_id, "seq": self.seq}


@attrs.frozen
class Decision:
    """What happened to one message."""

    message_id: str
    seq: int | None
    source_kind: str
    role: str
    before_hash: str
    action: Action
    blocks: tuple[dict[str, Json], ...]
    reasons: tuple[str, ...]
    after_hash: str | None
    original: Message
    effective: Message | None

    def to_json(self) -> dict[str, Json]:
        """The decision as evidence: without any message body."""
        return {
            "messageId": self.message_id,
            "seq": self.seq,
            "sourceKind": self.source_kind,
            "role": self.role,
            "beforeHash": self.before_hash,
            "action": self.action,
            "blocks": list(self.blocks),
            "reasons": list(self.reasons),
            "afterHash": self.after_hash,
        }

    def preview_json(self) -> dict[str, Json]:
        """The decision with both bodies, for the preview alone."""
        return {**self.to_json(), "original": self.original, "effective": self.effective}


@attrs.frozen
class Filtered:
    """The filtered messages and the evidence of it."""

    messages: tuple[Message, ...]
    decisions: tuple[Decision, ...]
    warnings: tuple[Warned, ...]
    policy: HistoryPolicy
    current_step_seq: float | None
    can_omit_reasoning: bool
    contract: str | None
    before_hash: str
    after_hash: str

    @property
    def audit(self) -> dict[str, Json]:
        return {
            "version": 1,
            "policy": self.policy.to_json(),
            "policyHash": self.policy.hash,
            "applied": self.policy.enabled,
            "scope": "current-native-surface",
            "currentStepSeq": self.current_step_seq,
            "reasoningSafety": {"canOmit": self.can_omit_reasoning, "contract": self.contract},
            "beforeHash": self.before_hash,
            "afterHash": self.after_hash,
            "decisions": [decision.to_json() for decision in self.decisions],
            "warnings": [warning.to_json() for warning in self.warnings],
        }


def event_message(event: Mapping[str, Json]) -> Message | None:
    """The message an event carries, or None for events of other types."""
    if not isinstance(event, Mapping) or not isinstance(event.get("type"), str) or event["type"] not in _MESSAGE_EVENTS:
        return None
    data = event.get("data")
    message = data if event["type"] == "user/message" else data.get("message") if isinstance(data, dict) else None
    return message if isinstance(message, dict) else None


def filter_history(
    messages: Sequence[Message],
    events: Iterable[Mapping[str, Json]],
    policy: HistoryPolicy = DEFAULT_POLICY,
    *,
    current_step_seq: float | None = None,
    reasoning: ReasoningSafety = ReasoningSafety(),
    retain_current_system: bool = False,
) -> Filtered:
    """Apply a policy to a copy of the messages; the inputs stay as they are.

    Args:
        messages: the request's messages.
        events: the session's events; only those of the messages matter.
        policy: the captured policy.
        current_step_seq: seq of the running step's start; None means that all events are old.
        reasoning: the host's word on leaving reasoning out.
        retain_current_system: keep the newest system prompt whatever its selector says.

    Raises:
        AssemblyRefused: ``HISTORY_POLICY_EMPTY`` (409) when nothing would be left.
    """
    known = {str(message.get("id")): seq for seq, message in _indexed(events)}
    can_omit = _can_omit(reasoning, messages)
    current = _current_system(messages) if retain_current_system else None
    run = _Filter(policy, current_step_seq, can_omit, known, current)
    decisions = tuple(run.decide(message) for message in messages)
    kept = tuple(decision.effective for decision in decisions if decision.effective is not None)
    if messages and not kept:
        raise AssemblyRefused(
            "the history policy would leave an empty request", code="HISTORY_POLICY_EMPTY", status=409
        )
    return Filtered(
        messages=kept,
        decisions=decisions,
        warnings=tuple(run.warnings),
        policy=policy,
        current_step_seq=current_step_seq,
        can_omit_reasoning=can_omit,
        contract=reasoning.contract if isinstance(reasoning.contract, str) else None,
        before_hash=sha256_json(list(messages)),
        after_hash=sha256_json(list(kept)),
    )


def _indexed(events: Iterable[Mapping[str, Json]]) -> Iterable[tuple[int, Message]]:
    for event in events:
        message = event_message(event)
        if message is not None and is_safe_integer(event.get("seq")):
            yield event["seq"], message


def _can_omit(safety: ReasoningSafety, messages: Sequence[Message]) -> bool:
    has_contract = isinstance(safety.contract, str) and safety.contract != ""
    has_tools = safety.tools_present or any(is_tool_traffic(message) for message in messages)
    return safety.can_omit is True and has_contract and not has_tools


def is_tool_traffic(message: Message) -> bool:
    """Whether a message is a tool result or opens a tool call."""
    return is_tool_result(message) or has_block(message, "tool-call")


def has_block(message: Message, *types: str) -> bool:
    """Whether a message has a content block of one of the types."""
    return any(block.get("type") in types for block in blocks_of(message))


def _current_system(messages: Sequence[Message]) -> Message | None:
    for message in reversed(messages):
        if message.get("role") == "system" and kind_of(message) == "system-prompt" and blocks_of(message):
            return message
    return None


def is_editable_replay(message: Message) -> bool:
    """Whether a replayed assistant message may have its text edited, and nothing else."""
    source = source_of(message)
    replay = source.get("replayState")
    if message.get("role") != "assistant" or source.get("kind") != "model" or not isinstance(replay, dict):
        return False
    response, blocks = replay.get("response"), replay.get("blocks")
    content = message.get("content")
    if set(replay) != {"response", "blocks"} or not isinstance(response, dict) or not isinstance(blocks, list):
        return False
    is_known_response = (
        set(response) <= {"kind", "version", "model"}
        and response.get("kind") == "deepseek-messages"
        and is_number(response.get("version"))
        and response["version"] == 1
        and isinstance(response.get("model"), str)
        and response["model"] == source.get("model")
    )
    return (
        is_known_response
        and isinstance(content, list)
        and len(blocks) == len(content)
        and all(_fits(replayed, block) for replayed, block in zip(blocks, content, strict=True))
    )


def _fits(replayed: Json, block: Json) -> bool:
    if not isinstance(replayed, dict) or not isinstance(block, dict) or not set(replayed) <= {"type", "signature"}:
        return False
    kind = replayed.get("type")
    has_signature = "signature" in replayed
    signature_fits = not has_signature or (kind == "reasoning" and isinstance(replayed["signature"], str))
    return kind in ("text", "reasoning", "tool-call") and kind == block.get("type") and signature_fits


@attrs.define(eq=False)
class _Filter:
    """One run over the messages of a request."""

    policy: HistoryPolicy
    current_step_seq: float | None
    can_omit: bool
    seqs: Mapping[str, int]
    current_system: Message | None
    warnings: list[Warned] = attrs.field(factory=list)

    def decide(self, message: Message) -> Decision:
        identity = str(message.get("id"))
        seq = self.seqs.get(identity)
        if not self.policy.enabled:
            return self._decision(message, seq, message, (), ())
        if seq is None or (self.current_step_seq is not None and seq >= self.current_step_seq):
            return self._decision(message, seq, message, (), ("CURRENT_OR_ASSEMBLED_CONTENT",))
        if message is self.current_system:
            return self._decision(message, seq, message, (), ("CURRENT_SYSTEM_PROMPT",))
        if self._is_protected(message):
            return self._decision(message, seq, message, (), ("PROTECTED_PROTOCOL_MESSAGE",))
        return self._decide_old(message, seq)

    def _is_protected(self, message: Message) -> bool:
        role, kind = message.get("role"), kind_of(message)
        if role == "system" and (kind != "system-prompt" or self.policy.includes(kind) is not False):
            return True
        if role == "developer" or is_tool_traffic(message):
            return True
        return source_of(message).get("replayState") is not None and not is_editable_replay(message)

    def _decide_old(self, message: Message, seq: int) -> Decision:
        reasons: list[str] = []
        kind = kind_of(message)
        selected = self.policy.includes(kind)
        if kind not in KNOWN_KINDS and selected is None:
            self._warn("UNKNOWN_SOURCE_RETAINED", message, seq, reasons)
            return self._decision(message, seq, message, (), reasons)
        if selected is False:
            if is_editable_replay(message):
                self._warn("SOURCE_REPLAY_RETAINED", message, seq, reasons)
            elif has_block(message, "reasoning") and not self.can_omit:
                self._warn("SOURCE_REQUIRED_REASONING_RETAINED", message, seq, reasons)
            else:
                return self._decision(message, seq, None, (), ("SOURCE_EXCLUDED",))
        content, records = self._filter_blocks(message, seq, reasons)
        if not content and records:
            return self._decision(message, seq, None, records, (*reasons, "EMPTY_AFTER_FILTER"))
        effective = {**message, "content": content} if records else message
        return self._decision(message, seq, effective, records, reasons)

    def _filter_blocks(
        self, message: Message, seq: int, reasons: list[str]
    ) -> tuple[list[Json], tuple[dict[str, Json], ...]]:
        kept: list[Json] = []
        records: list[dict[str, Json]] = []
        is_replay = source_of(message).get("replayState") is not None
        content = message.get("content")
        for index, block in enumerate(content if isinstance(content, list) else ()):
            if not isinstance(block, dict):
                kept.append(block)
                continue
            block_type = block.get("type")
            if not self.policy.content_types.allows(block_type):
                if is_replay:
                    self._warn("REPLAY_BLOCKS_RETAINED", message, seq, reasons)
                elif block_type == "reasoning" and not self.can_omit:
                    self._warn("REASONING_REQUIRED_OR_UNVERIFIED", message, seq, reasons)
                else:
                    records.append({"index": index, "type": block_type, "action": "exclude"})
                    continue
            if block_type == "text" and isinstance(block.get("text"), str) and message.get("role") == "assistant":
                edited, record = self._cut_fragments(message, seq, index, block, reasons)
                if record is not None:
                    records.append(record)
                    if edited["text"] == "" and not is_replay:
                        continue
                block = edited
            kept.append(block)
        return kept, tuple(records)

    def _cut_fragments(
        self, message: Message, seq: int, index: int, block: dict[str, Json], reasons: list[str]
    ) -> tuple[dict[str, Json], dict[str, Json] | None]:
        ranges: list[FragmentRange] = []
        for rule in self.policy.fragments:
            if rule.enabled and rule.source_kind == kind_of(message):
                found = find_fragments(block["text"], rule)
                ranges += found.ranges
                if found.warning is not None:
                    self._warn(found.warning, message, seq, reasons)
        merged = merge_ranges(ranges)
        if not merged:
            return block, None
        edited = {**block, "text": cut(block["text"], merged)}
        return edited, {
            "index": index,
            "type": "text",
            "action": "edit",
            "ranges": [{"start": item.start, "end": item.end, "ruleIds": list(item.rule_ids)} for item in merged],
            "beforeHash": sha256_json(block["text"]),
            "afterHash": sha256_json(edited["text"]),
        }

    def _warn(self, code: str, message: Message, seq: int, reasons: list[str]) -> None:
        if code not in reasons:
            reasons.append(code)
            self.warnings.append(Warned(code, str(message.get("id")), seq))

    def _decision(
        self,
        message: Message,
        seq: int | None,
        effective: Message | None,
        records: Sequence[dict[str, Json]],
        reasons: Sequence[str],
    ) -> Decision:
        action: Action = "exclude" if effective is None else "edit" if records else "keep"
        return Decision(
            message_id=str(message.get("id")),
            seq=seq,
            source_kind=kind_of(message),
            role=str(message.get("role")),
            before_hash=sha256_json(message),
            action=action,
            blocks=tuple(records),
            reasons=tuple(reasons),
            after_hash=None if effective is None else sha256_json(effective),
            original=message,
            effective=effective,
        )
