"""Copies all state from one engine into another: import of a contract folder, export to one, change of engine."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, final

import attrs

from .errors import ReadFailed
from .interface import Engine, Keyed, Refused, Tables, Write
from .retention import Retention
from .values import RESOURCE_KINDS, SessionKey
from .writes import AppendEvents, CreateSession, PutDocument, PutResource, PutTrace

BATCH: Final = 256
EVENTS: Final = 1_000


@final
@attrs.frozen
class Transfer:
    """What was copied, and what the target refused or the source couldn't read (one sentence each)."""

    writes: int
    problems: tuple[str, ...]


def copy_state(source: Engine, target: Engine, now: int) -> Transfer:
    """Copy everything; what the target has under the same names is replaced, session logs it has are kept.

    Blocking; the source isn't changed. Earlier resource revisions that only a trace names stay behind.

    Raises:
        CommitFailed: the target's disk failed; run it again.
    """
    problems: list[str] = []
    count = 0
    with source.read() as tables:
        batch: list[Write[Any]] = []
        for write in _everything(tables, now, problems):
            batch.append(write)
            if len(batch) == BATCH:
                count += _commit(target, batch, now, problems)
                batch = []
        count += _commit(target, batch, now, problems)
    return Transfer(count, tuple(problems))


def _commit(target: Engine, batch: Sequence[Write[Any]], now: int, problems: list[str]) -> int:
    outcomes = target.commit([Keyed(write) for write in batch], now) if batch else []
    refused = [outcome.error.message for outcome in outcomes if isinstance(outcome, Refused)]
    problems += refused
    return len(outcomes) - len(refused)


def _everything(tables: Tables, now: int, problems: list[str]) -> Iterator[Write[Any]]:
    yield from _resources(tables, problems)
    for collection in tables.documents.collections():
        try:
            for document in tables.documents.items(collection, None):
                yield PutDocument(document.key, document.value, document.updated_at)
        except ReadFailed as error:
            problems.append(error.message)
    for head in reversed(tables.sessions.heads()):
        yield CreateSession(head.key, head.header, head.created_at)
        for first in range(0, head.next_seq, EVENTS):
            yield AppendEvents(head.key, first, tables.sessions.read(head.key, first, EVENTS), head.updated_at)
    yield from _traces(tables, problems)


def _resources(tables: Tables, problems: list[str]) -> Iterator[Write[Any]]:
    for kind in RESOURCE_KINDS:
        for head in tables.resources.heads(kind):
            try:
                stored = tables.resources.get(kind, head.id)
            except ReadFailed as error:
                problems.append(error.message)
                continue
            if stored is not None:
                original, cover = tables.resources.original(kind, head.id), tables.resources.cover(kind, head.id)
                yield PutResource(kind, head.id, stored.document, head.updated_at, original, cover)


def _traces(tables: Tables, problems: list[str]) -> Iterator[Write[Any]]:
    """Records by the time they were made, so that the target's retention drops the oldest first."""
    try:
        order = sorted(
            (Retention.recorded_at(record), key.host, key.session, place, str(record["id"]))
            for key in tables.traces.sessions()
            for place, record in enumerate(tables.traces.of_session(key))
        )
    except ReadFailed as error:
        problems.append(error.message)
        return
    for _, host, session, _, record_id in order:
        key = SessionKey(host, session)
        yield PutTrace(key, tables.traces.get(key, record_id))
