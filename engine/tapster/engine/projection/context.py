"""The activation context: the bounded text that one request's world books are matched against.

Source: spec/activation §2, §3.5.
"""

from collections.abc import Sequence
from typing import Literal

import attrs

from tapster.engine.ecma import Json, utf16_length

from .messages import JOINER, HistoryMessage, InputMessage, Role, tail
from .pending import PendingInput, end_turn

ContextKind = Literal["durable-plus-pending-input", "durable-history-only"]


@attrs.frozen
class ContextMessage:
    """One message that is scanned; ``source`` says whether the history or the claimed batch has it."""

    id: str | None
    role: Role
    text: str
    source: Literal["durable", "pending"]
    truncated: bool = False

    def to_json(self) -> Json:
        """The message in the contract's field names."""
        return attrs.asdict(self)


@attrs.frozen
class ContextMetadata:
    """Counts about a context; the only part that may enter an audit or a trace."""

    kind: ContextKind
    durable_message_count: int | None
    pending_message_count: int
    included_pending_message_count: int
    duplicate_pending_message_count: int
    scanned_message_count: int | None
    scanned_characters: int
    truncated: bool
    claim_event_seqs: tuple[int, ...]
    invalid_event_count: int
    input_characters: int | None = None

    @classmethod
    def of_plain_text(cls, conversation_text: str) -> "ContextMetadata":
        """The metadata when no context exists and only a text is known."""
        return cls(
            kind="durable-history-only",
            durable_message_count=None,
            pending_message_count=0,
            included_pending_message_count=0,
            duplicate_pending_message_count=0,
            scanned_message_count=None,
            scanned_characters=utf16_length(conversation_text),
            truncated=False,
            claim_event_seqs=(),
            invalid_event_count=0,
        )

    def to_json(self) -> Json:
        """The metadata in the contract's field names; ``inputCharacters`` only where it was measured."""
        value = {
            "kind": self.kind,
            "durableMessageCount": self.durable_message_count,
            "pendingMessageCount": self.pending_message_count,
            "includedPendingMessageCount": self.included_pending_message_count,
            "duplicatePendingMessageCount": self.duplicate_pending_message_count,
            "scannedMessageCount": self.scanned_message_count,
            "scannedCharacters": self.scanned_characters,
            "inputCharacters": self.input_characters,
            "truncated": self.truncated,
            "claimEventSeqs": list(self.claim_event_seqs),
            "invalidEventCount": self.invalid_event_count,
        }
        if self.input_characters is None:
            del value["inputCharacters"]
        return value


@attrs.frozen
class ActivationContext:
    """What adapters match against: messages oldest first, and their texts joined by line feeds."""

    messages: tuple[ContextMessage, ...]
    text: str
    metadata: ContextMetadata

    def to_json(self) -> Json:
        """The context in the contract's field names."""
        return {
            "messages": [message.to_json() for message in self.messages],
            "text": self.text,
            "metadata": self.metadata.to_json(),
        }


def activate(state: PendingInput, history: Sequence[HistoryMessage]) -> tuple[ActivationContext, PendingInput]:
    """The context of one request and the state after it; the claimed batch is used up.

    Args:
        state: the session's pending input.
        history: the host's derived history, oldest first, every role.
    """
    durable, durable_count = _durable_tail(state, history)
    seen = {message.id for message in durable if message.id is not None}
    fresh = [item for item in state.claimed if item.id is None or item.id not in seen]
    combined = [*durable, *(_pending(item) for item in fresh)]
    kept, cut = _bound(combined, state.limits.max_scan_messages, state.limits.max_scan_characters)
    text = JOINER.join(message.text for message in kept)
    metadata = ContextMetadata(
        kind="durable-plus-pending-input",
        durable_message_count=durable_count,
        pending_message_count=len(fresh) + state.claimed_omitted_count,
        included_pending_message_count=sum(message.source == "pending" for message in kept),
        duplicate_pending_message_count=len(state.claimed) - len(fresh),
        scanned_message_count=len(kept),
        scanned_characters=utf16_length(text),
        truncated=_is_truncated(state, combined, cut, durable_count - len(durable)),
        claim_event_seqs=state.claim_event_seqs,
        invalid_event_count=state.invalid_events,
        input_characters=utf16_length(JOINER.join(message.text for message in combined)),
    )
    return ActivationContext(tuple(kept), text, metadata), end_turn(state)


def _durable_tail(state: PendingInput, history: Sequence[HistoryMessage]) -> tuple[list[ContextMessage], int]:
    kept: list[ContextMessage] = []
    count = 0
    for message in reversed(history):
        if message.role not in ("user", "assistant"):
            continue
        count += 1
        if message.text and len(kept) < state.limits.max_scan_messages:
            role: Role = "assistant" if message.role == "assistant" else "user"
            text = tail(message.text, state.limits.max_scan_characters)
            kept.append(ContextMessage(message.id, role, text, "durable", text != message.text))
    kept.reverse()
    return kept, count


def _pending(item: InputMessage) -> ContextMessage:
    return ContextMessage(item.id, item.role, item.text, "pending", item.truncated)


def _bound(messages: list[ContextMessage], max_messages: int, max_characters: int) -> tuple[list[ContextMessage], bool]:
    """The newest messages that fit, and whether any was dropped or cut."""
    window = messages[-max_messages:]
    cut = len(window) < len(messages)
    kept: list[ContextMessage] = []
    room = max_characters
    for message in reversed(window):
        if not message.text:
            continue
        left = room - (1 if kept else 0)
        if left <= 0:
            cut = True
            break
        text = tail(message.text, left)
        shortened = text != message.text
        cut = cut or shortened
        kept.append(attrs.evolve(message, text=text, truncated=message.truncated or shortened))
        room = left - utf16_length(text)
    kept.reverse()
    return kept, cut


def _is_truncated(state: PendingInput, combined: list[ContextMessage], cut: bool, unkept: int) -> bool:
    return cut or unkept > 0 or state.claimed_omitted_count > 0 or any(message.truncated for message in combined)
