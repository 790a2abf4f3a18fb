"""Messages and records as the page's templates want them."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from tapster.engine.ecma import Json, is_number
from tapster.engine.trace import message_text


def messages_of(messages: Iterable[Json]) -> list[dict[str, Json]]:
    """The transcript: people's and models' words, each with its speaker; machinery is marked as such."""
    shown: list[dict[str, Json]] = []
    for message in messages:
        source = message.get("source") or {}
        kind = source.get("kind") if isinstance(source, Mapping) else None
        role = message["role"]
        is_machinery = role == "system" or kind not in (None, "user", "model")
        shown.append(
            {"id": message.get("id"), "role": role, "text": message_text(message), "is_machinery": is_machinery}
        )
    return shown


def trace_view(record: Mapping[str, Json]) -> dict[str, Json]:
    """A record: its verified texts, the decisions of its audit, and how it left."""
    audit = record.get("audit") or {}
    delivery = record.get("delivery") or {}
    return {
        "id": record["id"],
        "status": record["status"],
        "contentStatus": record.get("contentStatus"),
        "turn": record.get("turn"),
        "step": record.get("step"),
        "attempt": record.get("attempt"),
        "time": time_text(record.get("recordedAt")),
        "model": delivery.get("model"),
        "provider": delivery.get("provider"),
        "historyVerified": delivery.get("historyVerified") is True,
        "sections": record.get("sections") or [],
        "contexts": record.get("contexts") or [],
        "books": audit.get("worldBooks") or [],
        "parameters": (audit.get("assembly") or {}).get("callConfig") or {},
        "diagnostics": audit.get("diagnostics") or [],
        "failure": record.get("failure"),
        "referenceError": record.get("referenceError"),
    }


def time_text(epoch_ms: Json) -> str:
    """A moment in UTC, to the second."""
    if not is_number(epoch_ms):
        return ""
    return datetime.fromtimestamp(epoch_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
