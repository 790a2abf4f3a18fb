"""Messages, previews and records as the page's templates want them."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from tapster.engine.ecma import Json, is_number
from tapster.engine.projection import Event, PendingInput, derive_messages, open_turn, replay
from tapster.engine.trace import message_text

SHOWN_ENTRIES: Final = 500
"""World-book entries that a preview lists."""


def transcript(events: Sequence[Event], own_events: Sequence[Event], *, limit: int | None = None) -> dict[str, Json]:
    """A conversation: what was said, what waits to be taken up, and how the last turn ended.

    Args:
        events: the whole history.
        own_events: the part that isn't inherited from another session.
        limit: how many of the newest messages are wanted, None for all.
    """
    # Read from the events: the agent calls itself idle only a moment after its turn's last event.
    is_running = open_turn(events) is not None
    messages = [each for each in messages_of(derive_messages(events)) if not each["is_machinery"]]
    shown = messages if limit is None else messages[-limit:]
    pending = replay(PendingInput(), (event.to_json() for event in own_events))
    return {
        "next": len(events),
        "messages": shown,
        "earlier": len(messages) - len(shown),
        "queued": [item.text for queue in (pending.next_step, pending.next_turn) for item in queue.items],
        "isRunning": is_running,
        "end": None if is_running else last_end(events),
    }


def messages_of(messages: Iterable[Json]) -> list[dict[str, Json]]:
    """Messages with their speaker and text; what neither a person nor a model said is marked as machinery."""
    shown = []
    for message in messages:
        source = message.get("source")
        kind = source.get("kind") if isinstance(source, Mapping) else None
        is_machinery = message["role"] == "system" or kind not in (None, "user", "model")
        shown.append({"role": message["role"], "text": message_text(message), "is_machinery": is_machinery})
    return shown


def last_end(events: Sequence[Event]) -> dict[str, Json] | None:
    """How the last turn ended, None when it ended well or none was."""
    end = next((event for event in reversed(events) if event.type == "turn/end"), None)
    if end is None or end.data["reason"]["kind"] == "completed":
        return None
    reason = end.data["reason"]
    error = reason.get("error") or {}
    return {"kind": reason["kind"], "message": error.get("message"), "code": error.get("code")}


def preview_view(preview: Mapping[str, Json]) -> dict[str, Json]:
    """A preview with its sections named for people; of many entries the first, those that are in before the others."""
    sections = [labelled(part) for part in preview["sections"]]
    entries = ordered(preview["entries"])
    shown = entries[:SHOWN_ENTRIES]
    return {**preview, "sections": sections, "entries": shown, "entriesLeft": len(entries) - len(shown)}


def trace_view(record: Mapping[str, Json]) -> dict[str, Json]:
    """A record: its verified texts, the decisions of its audit, and how it left; older ones lack much of it."""
    audit = member(record, "audit")
    delivery = member(record, "delivery")
    return {
        "id": record["id"],
        "status": record["status"],
        "contentStatus": record.get("contentStatus"),
        "turn": record.get("turn"),
        "step": record.get("step"),
        "attempt": record.get("attempt"),
        "time": time_text(record.get("recordedAt")),
        "model": delivery.get("model"),
        "sections": [labelled(part) for part in records(record, "sections")],
        "contexts": [labelled(part) for part in records(record, "contexts")],
        "books": [book_view(book) for book in records(audit, "worldBooks")],
        "parameters": member(member(audit, "assembly"), "callConfig"),
        "diagnostics": records(audit, "diagnostics"),
        "failure": member(record, "failure"),
        "referenceError": record.get("referenceError"),
    }


def book_view(book: Mapping[str, Json]) -> dict[str, Json]:
    """A book's decisions and what they cost."""
    return {
        "name": member(book, "resource").get("name"),
        "budget": member(book, "budget"),
        "decisions": ordered(records(book, "decisions")),
    }


def member(value: Mapping[str, Json], name: str) -> Mapping[str, Json]:
    """A member that is an object, an empty one for anything else."""
    found = value.get(name)
    return found if isinstance(found, Mapping) else {}


def records(value: Mapping[str, Json], name: str) -> list[Mapping[str, Json]]:
    """The objects in a member that is a list."""
    found = value.get(name)
    return [item for item in found if isinstance(item, Mapping)] if isinstance(found, list | tuple) else []


def ordered(decisions: Iterable[Json]) -> list[Json]:
    """Decisions with the entries that are in before those that are out."""
    return sorted(decisions, key=lambda item: item.get("decision") != "included")


def labelled(part: Mapping[str, Json]) -> dict[str, Json]:
    """A section with where its text came from: ``origins`` are pairs of a kind and a place in it, each once."""
    found = {(str(source.get("kind")), origin_place(source)): None for source in records(part, "sources")}
    return {**part, "origins": list(found)}


def origin_place(source: Mapping[str, Json]) -> str:
    """The place in a resource that a text came from."""
    return str(
        source.get("identifier") or source.get("entryName") or source.get("entryId") or source.get("field") or ""
    )


def time_text(moment: Json) -> str:
    """A moment in UTC, to the second."""
    if not is_number(moment):
        return ""
    try:
        return datetime.fromtimestamp(moment / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):  # a file may say anything
        return str(moment)
