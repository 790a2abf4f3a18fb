"""Roleplay mode: its stored state and every transition of it, as pure functions.

Source: spec/loader §2, §12.1.
"""

from collections.abc import Mapping
from typing import Literal, TypeAlias

import attrs

from tapster.engine.ecma import Json, is_record

RpSource: TypeAlias = Literal["command", "character-follow"]
SandboxMode: TypeAlias = Literal["read-only", "workspace-write", "danger-full-access"]
RequestResult: TypeAlias = Literal["noop", "cancelled", "queued", "committed"]

READ_ONLY: SandboxMode = "read-only"
_SOURCES: Mapping[str, RpSource] = {"command": "command", "character-follow": "character-follow"}
_SANDBOXES: Mapping[str, SandboxMode] = {
    "read-only": "read-only",
    "workspace-write": "workspace-write",
    "danger-full-access": "danger-full-access",
}


@attrs.frozen
class RpState:
    """The ``rp`` member of a selection."""

    active: bool = False
    source: RpSource | None = None
    follow_suppressed: bool = False
    sandbox_before: SandboxMode | None = None


@attrs.frozen
class RpIntent:
    """What someone wants RP mode to be."""

    active: bool
    source: RpSource | None = None
    follow_suppressed: bool = False


@attrs.frozen
class RpSession:
    """What a request is decided on: the stored state, a queued intent, and the agent's state."""

    stored: RpState
    pending: RpIntent | None = None
    live: bool = True
    turn_open: bool = False


@attrs.frozen
class RpDecision:
    """The answer to a request; ``commit`` is the intent to commit now."""

    result: RequestResult
    pending: RpIntent | None
    commit: RpIntent | None = None


@attrs.frozen
class RpCommit:
    """The state to store, and the sandbox mode to append to the session, if any."""

    state: RpState
    sandbox: SandboxMode | None = None


def normalize_rp(value: Json) -> RpState:
    """The state a stored value stands for; anything unusable falls back. Source: spec/loader §2."""
    record: dict[str, Json] = value if is_record(value) else {}
    source, sandbox = record.get("source"), record.get("sandboxBefore")
    return RpState(
        active=record.get("active") is True,
        source=_SOURCES.get(source) if isinstance(source, str) else None,
        follow_suppressed=record.get("followSuppressed") is True,
        sandbox_before=_SANDBOXES.get(sandbox) if isinstance(sandbox, str) else None,
    )


def rp_json(state: RpState) -> Json:
    """The state as the selection document holds it."""
    return {
        "active": state.active,
        "source": state.source,
        "followSuppressed": state.follow_suppressed,
        "sandboxBefore": state.sandbox_before,
    }


def intent_of(state: RpState) -> RpIntent:
    """The intent that a stored state fulfils."""
    return RpIntent(state.active, state.source, state.follow_suppressed)


def request_rp(session: RpSession, wanted: RpIntent) -> RpDecision:
    """Decide a request to switch RP mode: no-op, drop the queue, queue or commit.

    Source: spec/loader §12.1.
    """
    stored = intent_of(session.stored)
    if (session.pending or stored) == wanted:
        return RpDecision("noop", session.pending)
    if session.pending is not None and wanted == stored:
        return RpDecision("cancelled", None)
    if session.live and session.turn_open:
        return RpDecision("queued", wanted)
    return RpDecision("committed", None, wanted)


def commit_rp(state: RpState, wanted: RpIntent, sandbox: SandboxMode | None) -> RpCommit:
    """Carry out an intent.

    Args:
        sandbox: the session's present mode, or None when no agent is live (then none is appended or remembered).
    """
    if wanted.active:
        return _switch_on(state, wanted, sandbox)
    after = RpState(active=False, follow_suppressed=wanted.follow_suppressed)
    before = state.sandbox_before
    restore = before if sandbox == READ_ONLY and before not in (None, READ_ONLY) else None
    return RpCommit(after, restore)


def _switch_on(state: RpState, wanted: RpIntent, sandbox: SandboxMode | None) -> RpCommit:
    pinned = sandbox not in (None, READ_ONLY)
    before = sandbox if pinned else state.sandbox_before
    after = RpState(active=True, source=wanted.source, follow_suppressed=False, sandbox_before=before)
    return RpCommit(after, READ_ONLY if pinned else None)


def command_intent(*, on: bool) -> RpIntent:
    """What ``/rp`` (on) and ``/rp off`` ask for."""
    return RpIntent(True, "command") if on else RpIntent(False, None, follow_suppressed=True)


def card_bound_intent(state: RpState, *, previous: str | None, card: str | None, follow: bool) -> RpIntent | None:
    """What binding or unbinding a card asks for, or None. ``follow`` is the setting ``rpFollowCharacter``."""
    if card == previous:
        return None
    if card is None:
        return RpIntent(False)
    return RpIntent(True, "character-follow") if follow and not state.active else None


@attrs.frozen
class SessionStart:
    """What a starting session knows about itself."""

    state: RpState
    card_bound: bool = False
    has_parent: bool = False
    delegated: bool = False
    ancestor_active: bool = False
    follow: bool = True


def start_rp(start: SessionStart, sandbox: SandboxMode) -> RpCommit | None:
    """What the start of a session commits, or None when RP mode stays as it is. Source: spec/loader §12.1."""
    state = start.state
    if start.delegated and start.ancestor_active:
        source = state.source or "character-follow"
        return _switch_on(attrs.evolve(state, sandbox_before=None), RpIntent(True, source), sandbox)
    if state.active:
        again = _switch_on(state, intent_of(state), sandbox)
        if start.has_parent and state.sandbox_before is not None:
            return attrs.evolve(again, state=attrs.evolve(again.state, sandbox_before=state.sandbox_before))
        return again
    if start.card_bound and start.follow and not state.follow_suppressed and not start.delegated:
        return _switch_on(state, RpIntent(True, "character-follow"), sandbox)
    return None


def rp_effective(pending: RpIntent | None, stored: RpState, ancestors: tuple[RpState, ...]) -> bool:
    """Whether RP rules hold: own pending, own stored, or any stored ancestor along ``parentSession``."""
    if pending is not None and pending.active:
        return True
    return stored.active or any(state.active for state in ancestors)
