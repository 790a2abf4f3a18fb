"""Variables of a session over time: one version for each reply that changed them, by event seq.

Pure values: rolling back, swiping and forking give a new history and never lose the old one. Whoever owns the session
stores what is committed, after the reply itself is durable.

Source: spec/text_and_mvu C7, C8; spec/loader §14 "Replies", "Commit", "Baseline", "Fork / swipe".
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import attrs

from tapster.engine.ecma import sha256_text

from .apply import apply_update
from .commands import contains_update
from .errors import MvuError
from .variables import SchemaCheck, normalize_variables

Json: TypeAlias = Any


@attrs.frozen
class Reply:
    """A reply as the session log has it; ``key`` names it for ever (session, message, turn, step, end event)."""

    key: str
    seq: int
    text: str
    interrupted: bool = False
    has_tool_calls: bool = False
    inherited: bool = False


@attrs.frozen
class Version:
    """The variables from one event on. ``failure`` is the code of a reply that changed nothing because it is bad."""

    seq: int
    key: str
    fingerprint: str
    revision: int
    variables: Mapping[str, Json]
    failure: str | None = None
    changed: bool = False


@attrs.frozen
class VariableHistory:
    """All versions, oldest first; the first is the baseline."""

    versions: tuple[Version, ...]

    @property
    def current(self) -> Version:
        return self.versions[-1]

    def at(self, seq: int) -> Version:
        """The version in force at an event: what a swipe or an edit of a later reply starts from.

        Raises:
            MvuError: ``MVU_BASELINE_REQUIRED`` for an event before the baseline.
        """
        for version in reversed(self.versions):
            if version.seq <= seq:
                return version
        raise MvuError("MVU_BASELINE_REQUIRED", f"there are no variables at event {seq}")

    def rolled_back(self, seq: int) -> "VariableHistory":
        """Without what replies after an event changed."""
        base = self.at(seq)
        return VariableHistory(tuple(version for version in self.versions if version.seq <= base.seq))

    def forked(self, seq: int) -> "VariableHistory":
        """The start of a child session: the variables in force at the branch, nothing to replay."""
        return open_history(self.at(seq).variables, seq=seq)

    def with_reply(self, reply: Reply, *, declared: SchemaCheck | None = None) -> "VariableHistory":
        """After a reply. One that is already counted, or that can't change variables, changes nothing.

        Raises:
            MvuError: ``MVU_HISTORY_CHANGED`` when the text of a counted reply is another one now.
        """
        fingerprint = sha256_text(reply.text)
        for version in self.versions:
            if version.key == reply.key:
                if version.fingerprint != fingerprint:
                    raise MvuError("MVU_HISTORY_CHANGED", f"the reply at event {version.seq} is not the counted one")
                return self
        if reply.interrupted or reply.has_tool_calls or reply.inherited or not contains_update(reply.text):
            return self
        before = self.at(reply.seq)
        try:
            after: Mapping[str, Json] = apply_update(before.variables, reply.text, declared=declared)
            failure = None
        except MvuError as error:
            after, failure = before.variables, error.code
        changed = after.get("stat_data") != before.variables.get("stat_data")
        version = Version(
            reply.seq, reply.key, fingerprint, self.current.revision + 1, after, failure=failure, changed=changed
        )
        return VariableHistory((*self.versions, version))


def open_history(variables: Json, *, seq: int = 0) -> VariableHistory:
    """A history that begins with a session's first variables.

    Raises:
        MvuError: as ``normalize_variables``.
    """
    return VariableHistory((Version(seq, "", "", 1, normalize_variables(variables)),))


def counted_reply(replies: Sequence[Reply], *, turn_completed: bool) -> Reply | None:
    """The reply of a turn that may change variables: the last finished one without tool calls."""
    if not turn_completed:
        return None
    usable = (reply for reply in reversed(replies) if not (reply.interrupted or reply.has_tool_calls))
    return next(usable, None)


def replay(history: VariableHistory, replies: Iterable[Reply]) -> VariableHistory:
    """The history after several replies, in order."""
    for reply in replies:
        history = history.with_reply(reply)
    return history
