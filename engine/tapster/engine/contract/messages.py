"""A session's messages as the play view reads them, and the title of a new session.

Source: spec/http §6.1, spec/play §6.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from tapster.engine.ecma import Json, trim, utf16_slice
from tapster.engine.trace.host import event_message, member

PRODUCER_UNITS: Final = 200
FORM_UNITS: Final = 64
SUMMARY_UNITS: Final = 1000
_MESSAGE_EVENTS: Final = frozenset({"user/message", "assistant/message", "steering/message", "system/message"})


def project_messages(messages: Sequence[Json], events: Sequence[Json]) -> list[dict[str, Json]]:
    """The messages with the seq of the event that carries each, and where each comes from."""
    carriers = _carriers(events)
    return [_projected(message, carriers.get(member(message, "id"))) for message in messages]


def messages_of_events(events: Iterable[Json]) -> list[Json]:
    """The messages of a log, for a host that derives none itself."""
    return [
        event_message(event)
        for event in events
        if member(event, "type") in {"user/message", "assistant/message"} and isinstance(event_message(event), Mapping)
    ]


def has_incomplete_turn(events: Sequence[Json]) -> bool:
    """Whether the last turn that began hasn't ended."""
    for event in reversed(events):
        kind = member(event, "type")
        if kind in {"turn/start", "turn/end"}:
            return bool(kind == "turn/start")
    return False


def session_title(character_name: str, now: str) -> str:
    """The title of a session that starts with a card; ``now`` is ISO 8601 in UTC."""
    return f"{trim(character_name)} {now[:10]} {now[11:16]}"


def _carriers(events: Sequence[Json]) -> dict[Json, Json]:
    found: dict[Json, Json] = {}
    for event in events:
        message_id = member(event_message(event), "id")
        if member(event, "type") in _MESSAGE_EVENTS and isinstance(message_id, str):
            found.setdefault(message_id, event)
    return found


def _projected(message: Json, event: Json) -> dict[str, Json]:
    return {
        "id": member(message, "id"),
        "role": member(message, "role"),
        "content": member(message, "content"),
        "seq": member(event, "seq"),
        "origin": _origin(message, member(event, "type")),
    }


def _origin(message: Json, event_type: Json) -> dict[str, Json]:
    role, source = member(message, "role"), member(message, "source")
    if role in {"assistant", "system"}:
        return {"kind": role}
    if event_type == "steering/message":
        return {"kind": "steering"}
    if source is None or member(source, "kind") == "user":
        return {"kind": "user"}
    return {
        "kind": "context",
        "producer": _cut(member(source, "kind"), PRODUCER_UNITS),
        "form": _cut(member(source, "form"), FORM_UNITS),
        "summary": _cut(member(source, "summary"), SUMMARY_UNITS),
    }


def _cut(value: Json, units: int) -> str | None:
    return utf16_slice(value, 0, units) if isinstance(value, str) else None
