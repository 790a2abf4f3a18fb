"""The schema-4 record of one prepared model step.

Source: spec/trace §5.
"""

import re
from collections.abc import Mapping
from typing import Literal, TypeAlias

import attrs

from tapster.engine.ecma import Json

from .render import RecordedAssembly
from .sections import SECTION_CONTRIBUTORS

SCHEMA_VERSION = 4
BODY_STORAGE = "official-session"
CAPTURE_STAGE = "tavern-waterfall-return"
SESSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,199}")

Status: TypeAlias = Literal[
    "assembled",
    "superseded-unconfirmed",
    "request-observed",
    "request-failed-before-observation",
    "assembly-or-preparation-failed",
    "request-unconfirmed",
    "unloaded-unconfirmed",
]
ContentStatus: TypeAlias = Literal["reference-only", "assembly-unavailable", "omitted-size-limit"]


def is_session_id(value: Json) -> bool:
    """Whether a value can name a session in a record or a path."""
    return isinstance(value, str) and SESSION_ID.fullmatch(value) is not None


@attrs.frozen
class SessionRef:
    """Which session, in which log format, up to which event."""

    session_id: str
    format_version: int
    created_at: Json
    log_cut_seq: int

    def to_json(self) -> dict[str, Json]:
        """The reference under its contract names."""
        return {
            "sessionId": self.session_id,
            "sessionFormatVersion": self.format_version,
            "sessionCreatedAt": self.created_at,
            "logCutSeq": self.log_cut_seq,
        }


@attrs.frozen
class SystemMessageRef:
    """A sent system text, found in the host's own history; ids and message hash are None before log format 3."""

    kind: Literal["system-message", "request-header-system"]
    event_seq: int
    event_type: str
    text_hash: str
    message_id: str | None = None
    message_hash: str | None = None

    def to_json(self) -> dict[str, Json]:
        """The reference under its contract names."""
        value: dict[str, Json] = {"kind": self.kind, "eventSeq": self.event_seq, "eventType": self.event_type}
        if self.message_id is not None:
            value |= {"messageId": self.message_id, "messageHash": self.message_hash}
        return {**value, "textHash": self.text_hash}


@attrs.frozen
class ContextRef:
    """A context section inside the host's snapshot message."""

    event_seq: int
    message_id: str
    message_hash: str
    text_hash: str
    section_index: int
    section_name: str

    def to_json(self) -> dict[str, Json]:
        """The reference under its contract names."""
        return {
            "kind": "context-section",
            "eventSeq": self.event_seq,
            "eventType": "user/message",
            "messageId": self.message_id,
            "messageHash": self.message_hash,
            "textHash": self.text_hash,
            "sourceSectionIndex": self.section_index,
            "sourceSectionName": self.section_name,
        }


@attrs.frozen
class Delivery:
    """What left at ``llm/stream``, and whether the recorded assembly is in it."""

    log_cut_seq: int | None
    session_version: int | None
    system_hashes: tuple[str, ...]
    system_message_index: int | None
    provider: Json
    model: Json
    tool_names: tuple[str, ...]
    is_history_verified: bool

    def to_json(self) -> dict[str, Json]:
        """The check under its contract names."""
        return {
            "stage": "llm/stream",
            "logCutSeq": self.log_cut_seq,
            "sessionVersion": self.session_version,
            "systemHashes": list(self.system_hashes),
            "assemblyVerified": self.system_message_index is not None,
            "systemMessageIndex": self.system_message_index,
            "provider": self.provider,
            "model": self.model,
            "toolNames": list(self.tool_names),
            "historyVerified": self.is_history_verified,
        }


@attrs.frozen
class FailureRef:
    """The host event that says why a step failed."""

    event_seq: int
    event_type: str
    event_hash: str
    session: SessionRef

    def to_json(self) -> dict[str, Json]:
        """The reference under its contract names."""
        return {
            "eventSeq": self.event_seq,
            "eventType": self.event_type,
            "eventHash": self.event_hash,
            "sessionRef": self.session.to_json(),
        }


@attrs.frozen
class TraceRecord:
    """One capture: what was assembled for a step and what is known of its way to the model.

    Attributes:
        is_minimal: true for a record of a failure before any assembly; it has no parts.
        assembly: the recorded parts, None when the assembly was unavailable.
        extras: additive members of later contract versions (``parameters``, ``requestAssemblyRef`` …).
    """

    id: str
    session_id: str
    turn: int
    step: int
    attempt: int
    recorded_at: int
    status: Status
    is_minimal: bool = False
    selection: Mapping[str, Json] = attrs.Factory(dict)
    audit: Mapping[str, Json] = attrs.Factory(dict)
    assembly: RecordedAssembly | None = None
    system_refs: tuple[SystemMessageRef | None, ...] | None = None
    context_refs: Mapping[int, ContextRef] = attrs.Factory(dict)
    delivery: Delivery | None = None
    session: SessionRef | None = None
    failure: FailureRef | None = None
    extras: Mapping[str, Json] = attrs.Factory(dict)

    @property
    def content_status(self) -> ContentStatus:
        """Whether the record has parts to refer from."""
        return "assembly-unavailable" if self.assembly is None else "reference-only"

    def to_json(self) -> dict[str, Json]:
        """The record as the contract's file and API hold it."""
        value: dict[str, Json] = {
            "schemaVersion": SCHEMA_VERSION,
            "id": self.id,
            "sessionId": self.session_id,
            "turn": self.turn,
            "step": self.step,
            "attempt": self.attempt,
            "recordedAt": self.recorded_at,
            "status": self.status,
            "contentStatus": self.content_status,
            "bodyStorage": BODY_STORAGE,
            "sourceTextStored": False,
        }
        if not self.is_minimal:
            value |= {"sourceMapping": SECTION_CONTRIBUTORS, "captureStage": CAPTURE_STAGE}
        value |= {"entersModelHistory": False, "audit": dict(self.audit), "selection": dict(self.selection)}
        value |= self._parts_json()
        if self.delivery is not None:
            value["delivery"] = self.delivery.to_json()
        if self.session is not None:
            value["sessionRef"] = self.session.to_json()
        if self.system_refs is not None:
            value["systemMessageRefs"] = [ref and ref.to_json() for ref in self.system_refs]
        if self.failure is not None:
            value |= {"failureRef": self.failure.to_json(), "failureStatus": "reference-only"}
        return {**value, **self.extras}

    def _parts_json(self) -> dict[str, Json]:
        if self.is_minimal:
            return {}
        if self.assembly is None:
            return {"sections": [], "contexts": []}
        return {
            "assemblyHash": self.assembly.assembly_hash,
            "sections": [self._section_json(section) for section in self.assembly.sections],
            "contexts": [
                {**context, "reference": self.context_refs[index].to_json()}
                if index in self.context_refs
                else dict(context)
                for index, context in enumerate(self.assembly.contexts)
            ],
        }

    def _section_json(self, section: Mapping[str, Json]) -> dict[str, Json]:
        ref = self._assembly_ref()
        if ref is None:
            return dict(section)
        start = section["offsetUtf16"]
        span = {"startUtf16": start, "endUtf16": start + section["utf16Units"]}
        return {**section, "reference": {**ref.to_json(), "range": span}}

    def _assembly_ref(self) -> SystemMessageRef | None:
        index = self.delivery.system_message_index if self.delivery else None
        return self.system_refs[index] if index is not None and self.system_refs else None
