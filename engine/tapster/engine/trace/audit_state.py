"""How a v1 audit learns what became of its step.

Source: spec/trace §9.
"""

from collections.abc import Mapping
from typing import Literal, TypeAlias

import attrs

from tapster.engine.ecma import Json

from .audit import AuditFacts, begin_audit
from .digest import digest, message_text
from .host import FIRST_SYSTEM_MESSAGE_VERSION, SessionView, event_message, member

AuditStatus: TypeAlias = Literal[
    "awaiting-header",
    "header-observed",
    "header-reused-or-observed",
    "request-not-confirmed",
    "request-error",
    "superseded-unconfirmed",
]
_REPLY_EVENTS = frozenset({"assistant/chunk", "assistant/message"})


@attrs.frozen
class PendingAudit:
    """An audit that still waits for the host's header; the profile text is only held while it waits."""

    record: Mapping[str, Json]
    profile_text: str
    call_config: Mapping[str, Json]

    @classmethod
    def begin(cls, facts: AuditFacts) -> "PendingAudit":
        """The audit of a step that has just begun."""
        return cls(begin_audit(facts), facts.profile_text, facts.call_config)

    def is_step(self, turn: Json, step: Json) -> bool:
        """Whether the audit belongs to this turn and step."""
        return bool((self.record["turn"], self.record["step"]) == (turn, step))


def ended(pending: PendingAudit, status: AuditStatus, now: int, authority: Json = None) -> dict[str, Json]:
    """The finished audit."""
    value = {**pending.record, "status": status, "updatedAt": now}
    return value if authority is None else {**value, "authority": authority}


def audit_after_event(pending: PendingAudit, event: Json, session: SessionView, now: int) -> dict[str, Json] | None:
    """The audit as a host event finishes it, or None when it goes on waiting."""
    kind, data = member(event, "type"), member(event, "data")
    if kind == "request/header":
        return ended(pending, "header-observed", now, authority(pending, event, session, is_reused=False))
    if kind in _REPLY_EVENTS and pending.is_step(member(data, "turn"), member(data, "step")):
        header = _last_header(session)
        known = authority(pending, header, session, is_reused=True) if header is not None else None
        return ended(pending, "header-reused-or-observed", now, known)
    if kind == "turn/end" and member(data, "turn") == pending.record["turn"]:
        return ended(pending, "request-not-confirmed", now)
    return None


def authority(pending: PendingAudit, header_event: Json, session: SessionView, *, is_reused: bool) -> dict[str, Json]:
    """What the host's header says of the request, by fingerprints only."""
    header = member(header_event, "data", "header")
    config = member(header, "config")
    in_message = isinstance(session.version, int) and session.version >= FIRST_SYSTEM_MESSAGE_VERSION
    system = _system_text(session) if in_message else member(header, "system")
    return {
        "kind": "dsh-request-header",
        "headerEventSeq": member(header_event, "seq"),
        "headerReason": member(header_event, "data", "reason"),
        "headerReused": is_reused,
        "headerFingerprint": digest(header),
        "systemFingerprint": digest(system) if isinstance(system, str) else None,
        "systemSource": "system/message" if in_message else "request/header",
        "configFingerprint": digest(config),
        "tavernProfilePresent": _is_present(pending.profile_text, system),
        "tavernCallConfigApplied": all(member(config, key) == value for key, value in pending.call_config.items()),
    }


def _is_present(profile: str, system: Json) -> bool | None:
    if not profile:
        return None
    return isinstance(system, str) and profile in system


def _last_header(session: SessionView) -> Json:
    return next((event for event in reversed(session.events) if member(event, "type") == "request/header"), None)


def _system_text(session: SessionView) -> str | None:
    texts = [
        message_text(event_message(event))
        for event in session.surface_events()
        if member(event, "type") == "system/message"
    ]
    return "\n\n".join(texts) if texts else None
