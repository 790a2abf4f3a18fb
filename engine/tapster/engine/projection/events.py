"""The host's session log as values: its header, its events and how an event touches the model's surface.

Readable are the log formats 0 to 4; written is format 4. ``data`` stays opaque JSON: the host owns its shape.

Source: spec/dsh_host §5, §11.
"""

from collections.abc import Mapping
from typing import Final, TypeAlias

import attrs

from tapster.engine.ecma import Json, is_safe_integer
from tapster.engine.errors import FormatError

LOG_FORMAT: Final = 4
"""The format this version writes."""
READABLE_FORMATS: Final = range(5)

USER_MESSAGE: Final = "user/message"
ASSISTANT_MESSAGE: Final = "assistant/message"
ASSISTANT_ATTEMPT: Final = "assistant/attempt"
SYSTEM_MESSAGE: Final = "system/message"
TOOL_CALL: Final = "tool/call"
TOOL_RESULT: Final = "tool/result"
TURN_START: Final = "turn/start"
TURN_END: Final = "turn/end"
STEP_START: Final = "step/start"
STEP_END: Final = "step/end"
REQUEST_HEADER: Final = "request/header"
REQUEST_CONTEXT: Final = "request/context"
END_SEED: Final = "session/end-seed"
LLM_RETRY: Final = "llm/retry"
LLM_RETRY_STARTED: Final = "llm/retry-started"
INBOX_SPLICED: Final = "agent/inbox/spliced"

KNOWN_TYPES: Final = frozenset(
    {
        USER_MESSAGE, ASSISTANT_MESSAGE, ASSISTANT_ATTEMPT, "assistant/chunk", SYSTEM_MESSAGE, "developer/message",
        TOOL_CALL, TOOL_RESULT, TURN_START, TURN_END, STEP_START, STEP_END, REQUEST_HEADER, REQUEST_CONTEXT,
        "request/assembly", END_SEED, "session/title", LLM_RETRY, LLM_RETRY_STARTED, INBOX_SPLICED,
        "permission/preset", "sandbox/mode", "approval/policy", "todo/write", "goal/change", "plan/mode",
        "subagent/descriptor", "feedback/record", "agent-preset/selected",
    }
)  # fmt: skip
KNOWN_FAMILIES: Final = ("compaction/", "command/", "tool-workflow/", "hook/")


@attrs.frozen
class SurfaceAppend:
    """The event's message joins the end of the surface."""

    def to_json(self) -> Json:
        """The member ``surfaceOp``."""
        return "append"


@attrs.frozen
class SurfaceReplace:
    """The event's message takes the place of the nodes from ``start_seq`` to ``end_seq``, both included."""

    start_seq: int
    end_seq: int

    def to_json(self) -> Json:
        """The member ``surfaceOp`` in the form of format 4."""
        return {"op": "replace", "startSeq": self.start_seq, "endSeq": self.end_seq}


SurfaceOp: TypeAlias = SurfaceAppend | SurfaceReplace
APPEND: Final = SurfaceAppend()


@attrs.frozen
class Event:
    """One event of a session log; ``seq`` counts from 0 without gaps, ``time_ms`` since the epoch."""

    type: str
    seq: int
    time_ms: int
    data: Json
    surface_op: SurfaceOp | None = None
    source_event_seqs: tuple[int, ...] | None = None
    ignorable: bool = False

    def to_json(self) -> Json:
        """The event as a line of the log."""
        value: Json = {"type": self.type, "seq": self.seq, "time": self.time_ms, "data": self.data}
        if self.ignorable:
            value["ignorable"] = True
        if self.source_event_seqs is not None:
            value["sourceEventSeqs"] = list(self.source_event_seqs)
        if self.surface_op is not None:
            value["surfaceOp"] = self.surface_op.to_json()
        return value

    @classmethod
    def from_json(cls, value: Json) -> "Event":
        """An event of any readable format.

        Raises:
            FormatError: slug ``bad-event``, ``bad-surface-op`` or ``unknown-event``.
        """
        _require(isinstance(value, dict), "bad-event", "an event isn't an object")
        kind, seq, time = value.get("type"), value.get("seq"), value.get("time")
        _require(isinstance(kind, str) and is_seq(seq), "bad-event", f"event {kind!r} has no usable type or seq")
        _require(is_safe_integer(time), "bad-event", f"event {seq} has no usable time")
        ignorable = value.get("ignorable") is True
        _require(ignorable or is_known(kind), "unknown-event", f"event {seq} has the unknown type {kind!r}")
        sources = value.get("sourceEventSeqs")
        _require(
            sources is None or (isinstance(sources, list) and all(map(is_seq, sources))),
            "bad-event",
            f"event {seq} names sources that aren't seqs",
        )
        return cls(
            kind,
            int(seq),
            int(time),
            value.get("data"),
            _surface_op(value.get("surfaceOp"), seq),
            None if sources is None else tuple(map(int, sources)),
            ignorable,
        )


@attrs.frozen
class SessionHeader:
    """The first line of a session log.

    Attributes:
        created_at: epoch milliseconds, exactly as the host gives it.
        seed_length: events copied from the parent; own events start at this seq.
        extra: members this version doesn't know, kept.
    """

    id: str
    created_at: int
    version: int = LOG_FORMAT
    cwd: str | None = None
    parent_session: str | None = None
    seed_length: int = 0
    is_seeded: bool = False
    delegation_depth: int = 0
    origin: str | None = None
    extra: Mapping[str, Json] = attrs.field(factory=dict)

    def to_json(self) -> Json:
        """The header line; ``seedLength`` is written beside format 4's ``isSeeded``."""
        value: Json = {"type": "session", "version": self.version, "id": self.id, "createdAt": self.created_at}
        optional = {"cwd": self.cwd, "parentSession": self.parent_session, "origin": self.origin}
        value |= {name: member for name, member in optional.items() if member is not None}
        if self.is_seeded:
            value |= {"isSeeded": True} if self.version >= LOG_FORMAT else {}
            value["seedLength"] = self.seed_length
        return value | {"delegationDepth": self.delegation_depth} | dict(self.extra)

    @classmethod
    def from_json(cls, value: Json) -> "SessionHeader":
        """A header of any readable format.

        Raises:
            FormatError: slug ``bad-header`` or ``unknown-log-format``.
        """
        _require(isinstance(value, dict) and value.get("type") == "session", "bad-header", "line 1 is no header")
        version = value.get("version")
        _require(is_seq(version), "bad-header", "the header has no version")
        _require(version in READABLE_FORMATS, "unknown-log-format", f"log format {version} can't be read")
        _require(isinstance(value.get("id"), str), "bad-header", "the header names no session")
        seed = value.get("seedLength", 0)
        _require(is_seq(seed), "bad-header", "seedLength isn't a count")
        return cls(
            value["id"],
            value.get("createdAt"),
            int(version),
            value.get("cwd"),
            value.get("parentSession"),
            int(seed),
            value.get("isSeeded") is True or seed > 0,
            int(value.get("delegationDepth") or 0),
            value.get("origin"),
            {name: member for name, member in value.items() if name not in _HEADER_MEMBERS},
        )


_HEADER_MEMBERS = frozenset(
    {"type", "version", "id", "createdAt", "cwd", "parentSession", "seedLength", "isSeeded", "delegationDepth",
     "origin"}
)  # fmt: skip


def is_seq(value: Json) -> bool:
    """Whether a JSON value can be an event seq."""
    return is_safe_integer(value) and value >= 0


def is_known(kind: str) -> bool:
    """Whether a reader of this version understands an event type."""
    return kind in KNOWN_TYPES or kind.startswith(KNOWN_FAMILIES)


def event_message(event: Event) -> Json:
    """The message a surface event carries, or None.

    ``user/message`` is the message itself; every other kind holds it under ``message``.
    """
    if not isinstance(event.data, dict):
        return None
    nested = event.data.get("message")
    if isinstance(nested, dict):
        return nested
    return event.data if event.type == USER_MESSAGE else None


def _surface_op(value: Json, seq: Json) -> SurfaceOp | None:
    if value is None:
        return None
    if value == "append" or (isinstance(value, dict) and value.get("op") == "append"):
        return APPEND
    if isinstance(value, dict) and value.get("op") == "replace":
        start: Json = value.get("startSeq", value.get("start"))
        end: Json = value.get("endSeq", value.get("end"))
        if is_seq(start) and is_seq(end):
            return SurfaceReplace(int(start), int(end))
    raise FormatError("bad-surface-op", f"event {seq} has a surfaceOp that is neither append nor replace")


def _require(holds: bool, slug: str, message: str) -> None:
    if not holds:
        raise FormatError(slug, message)
