"""Where policies are kept and how they are saved: the applied snapshot's own, else one for each legacy session.

Pure state, as the preset store. Source: spec/history_policy §7, §8.
"""

from collections.abc import Mapping
from typing import Literal

import attrs

from tapster.engine import limits
from tapster.engine.assembly.errors import AssemblyRefused, InvalidAssembly
from tapster.engine.assembly.preset import AssemblyPreset
from tapster.engine.assembly.store import PresetStore
from tapster.engine.ecma import Json, is_number, is_record, is_safe_integer, utf16_length
from tapster.engine.errors import StoreError, TapsterError

from .policy import DEFAULT_POLICY, HistoryPolicy, normalise_policy

Mode = Literal["standard", "advanced"]


@attrs.frozen
class StoredPolicy:
    """A policy with the opaque revision that callers echo."""

    revision: int
    policy: HistoryPolicy

    def to_json(self) -> dict[str, Json]:
        return {"revision": self.revision, "policy": self.policy.to_json()}


def snapshot_revision(policy: HistoryPolicy) -> int:
    """The revision of a policy that an applied snapshot carries."""
    return int(policy.hash[:12], 16)


def capabilities(mode: Mode) -> dict[str, Json]:
    """What a mode can do.

    Raises:
        InvalidAssembly: ``HISTORY_MODE_INVALID``.
    """
    if mode not in ("standard", "advanced"):
        raise InvalidAssembly("the history mode is standard or advanced", code="HISTORY_MODE_INVALID")
    is_advanced = mode == "advanced"
    return {
        "mode": mode,
        "sourceCleanup": True,
        "contentFiltering": is_advanced,
        "fragmentFiltering": is_advanced,
    }


@attrs.define(eq=False)
class HistoryPolicies:
    """The policies of all sessions.

    Attributes:
        presets: the preset store, whose applied snapshots carry policies.
        sessions: policies of legacy sessions.
    """

    presets: PresetStore
    sessions: Mapping[str, StoredPolicy] = attrs.field(factory=dict)

    def read(self, session_id: str) -> StoredPolicy:
        """A session's policy; the default, at revision 0, when nothing is stored.

        Raises:
            InvalidAssembly: ``HISTORY_SESSION_INVALID`` (400).
        """
        _check_session(session_id)
        carried = _carried(self.presets.selection(session_id))
        if carried is not None:
            return StoredPolicy(snapshot_revision(carried), carried)
        return self.sessions.get(session_id, StoredPolicy(0, DEFAULT_POLICY))

    def save(self, session_id: str, value: Json, expected_revision: object, mode: Mode) -> StoredPolicy:
        """Save a policy where the session's present one is kept.

        Raises:
            InvalidAssembly: a bad policy or session id (400), or ``HISTORY_ADVANCED_REQUIRED`` (400).
            AssemblyRefused: ``HISTORY_POLICY_CONFLICT`` (409).
        """
        policy = normalise_policy(value)
        present = self.read(session_id)
        if expected_revision != present.revision or isinstance(expected_revision, bool):
            raise AssemblyRefused(
                f"the history policy is at revision {present.revision} by now",
                code="HISTORY_POLICY_CONFLICT",
                status=409,
            )
        stored = present.policy
        is_plain = policy.content_types == stored.content_types and policy.fragments == stored.fragments
        if mode == "standard" and not is_plain:
            raise InvalidAssembly(
                "content types and fragments need the advanced mode", code="HISTORY_ADVANCED_REQUIRED", status=400
            )
        if _carried(self.presets.selection(session_id)) is not None:
            self.presets.update_history_policy(session_id, policy)
            return StoredPolicy(snapshot_revision(policy), policy)
        saved = StoredPolicy(present.revision + 1, policy)
        self.sessions = {**self.sessions, session_id: saved}
        return saved

    def to_json(self) -> dict[str, Json]:
        """The document ``history-policies.json`` holds."""
        return {"version": 1, "sessions": {key: stored.to_json() for key, stored in self.sessions.items()}}


def read_policies(value: Json, presets: PresetStore) -> HistoryPolicies:
    """The policies of a stored document; None is a missing file.

    Raises:
        StoreError: ``HISTORY_STORE_INVALID``.
    """
    if value is None:
        return HistoryPolicies(presets)
    is_one = is_record(value) and is_number(value.get("version")) and value["version"] == 1
    if not is_one or not is_record(value.get("sessions")):
        raise StoreError("the history policy store isn't valid", code="HISTORY_STORE_INVALID")
    return HistoryPolicies(presets, {key: _stored(key, entry) for key, entry in value["sessions"].items()})


def _stored(key: str, value: Json) -> StoredPolicy:
    revision: Json = value.get("revision") if is_record(value) else None
    if not is_safe_integer(revision) or revision < 1:
        raise StoreError(f"the history policy of {key} has no valid revision", code="HISTORY_STORE_INVALID")
    try:
        return StoredPolicy(int(revision), normalise_policy(value.get("policy")))
    except TapsterError as error:
        raise StoreError(f"the history policy of {key} isn't valid", code="HISTORY_STORE_INVALID") from error


def _carried(preset: AssemblyPreset | None) -> HistoryPolicy | None:
    return None if preset is None else preset.history_policy


def _check_session(session_id: object) -> None:
    if (
        not isinstance(session_id, str)
        or session_id == ""
        or utf16_length(session_id) > limits.HISTORY_SESSION_ID_UNITS
    ):
        raise InvalidAssembly("a history policy belongs to a session id", code="HISTORY_SESSION_INVALID", status=400)
