"""Rules that every engine applies before it writes."""

from collections.abc import Sequence

from tapster.engine.ecma import Json

from .errors import DocumentConflict, LogGap
from .values import DocumentKey, SessionHead, SessionKey


def conflict(key: DocumentKey, base: str | None, present: str | None) -> DocumentConflict:
    """The error of a write whose base isn't the present revision."""
    seen = "no document" if base is None else f"revision {base[:12]}"
    now = "there is none" if present is None else f"it is {present[:12]}"
    return DocumentConflict(
        f"{key} changed since it was read: the writer saw {seen}, now {now}; read it again",
        details={"document": key.name, "expectedRevision": base, "revision": present},
    )


def event_type(event: Json) -> str:
    """An event's type, "" when it has none."""
    kind = event.get("type") if isinstance(event, dict) else None
    return kind if isinstance(kind, str) else ""


def check_append(key: SessionKey, next_seq: int, first_seq: int, events: Sequence[Json]) -> None:
    """Refuse events that don't continue a log.

    Raises:
        LogGap: with the seq that was expected and the one given.
    """
    if first_seq != next_seq:
        raise _gap(key, next_seq, first_seq)
    for index, event in enumerate(events):
        given = event.get("seq") if isinstance(event, dict) else None
        if given is not None and given != first_seq + index:
            raise _gap(key, first_seq + index, given)


def check_copy(source: SessionKey, source_next: int, target: SessionKey, next_seq: int, through_seq: int) -> None:
    """Refuse to copy what the source doesn't have, or onto events.

    Raises:
        LogGap: with the seq that was expected and the one given.
    """
    if next_seq:
        raise _gap(target, next_seq, 0)
    if not -1 <= through_seq < source_next:
        raise _gap(source, source_next - 1, through_seq)


def last_changed_first(heads: Sequence[SessionHead]) -> tuple[SessionHead, ...]:
    """Heads given in order of creation, the last changed first, of equal ones the youngest."""
    ranked = sorted(enumerate(heads), key=lambda item: (item[1].updated_at, item[0]), reverse=True)
    return tuple(head for _, head in ranked)


def _gap(key: SessionKey, expected: int, given: Json) -> LogGap:
    return LogGap(
        f"the log of session {key} continues at seq {expected}, not at {given!r:.40}",
        details={"session": key.session, "expectedSeq": expected, "seq": given},
    )
