"""What a trace needs to know of a host session: its header, its events and its surface.

Source: spec/trace §1, §6; spec/dsh_host.
"""

from collections.abc import Iterator, Mapping, Sequence

import attrs

from tapster.engine.ecma import Json, is_safe_integer

SUPPORTED_VERSIONS = frozenset({0, 1, 2, 3, 4})
FIRST_SYSTEM_MESSAGE_VERSION = 3
"""From this log format on the system text is a ``system/message``, before it the request header held it."""

SYSTEM_PROMPT_PLUGIN = "@deepseek-ai/dsh-system-prompt"


@attrs.frozen
class SessionView:
    """A host session at one moment.

    Attributes:
        seq: seq of the next event, so the last written one is ``seq - 1``.
        surface: seqs of the events that make up the model-visible messages, in order.
    """

    session_id: str
    version: Json
    created_at: Json
    seq: Json
    events: Sequence[Json] = ()
    surface: Sequence[int] = ()

    @property
    def is_usable(self) -> bool:
        """Whether references into this session can be recorded."""
        return (
            is_safe_integer(self.seq) and self.seq >= 1 and is_supported(self.version) and self.created_at is not None
        )

    @property
    def log_cut_seq(self) -> int | None:
        """The highest seq that exists, or None when there is none."""
        return int(self.seq) - 1 if is_safe_integer(self.seq) and self.seq >= 1 else None

    def surface_events(self) -> Iterator[Json]:
        """The surface's events in order."""
        by_seq = {event.get("seq"): event for event in self.events if isinstance(event, Mapping)}
        return (by_seq[seq] for seq in self.surface if seq in by_seq)


def is_supported(version: Json) -> bool:
    """Whether a log format version is one whose events Tapster can read."""
    return is_safe_integer(version) and version in SUPPORTED_VERSIONS


def member(value: Json, *path: str) -> Json:
    """The value under nested object keys, or None when any of them is missing."""
    for key in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value


def event_message(event: Json) -> Json:
    """The message an event carries, whether wrapped or as the event's data itself."""
    data = member(event, "data")
    wrapped = member(data, "message")
    return wrapped if isinstance(wrapped, Mapping) else data


def is_context_snapshot(message: Json) -> bool:
    """Whether a user message is the host's snapshot of its runtime contexts."""
    source = member(message, "source")
    if member(source, "form") != "snapshot":
        return False
    kind = member(source, "kind")
    return kind == "runtime-context" or bool(kind == "plugin" and member(source, "plugin") == SYSTEM_PROMPT_PLUGIN)


def is_same_message(recorded: Json, sent: Json, recorded_hash: str, sent_hash: str) -> bool:
    """Whether a logged and a sent message are one: same content, and same id where the sent one has an id."""
    sent_id = member(sent, "id")
    return recorded_hash == sent_hash and (sent_id is None or bool(sent_id == member(recorded, "id")))
