"""Copies all state from one engine into another: import of a contract folder, export to one, change of engine."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from heapq import merge
from operator import itemgetter
from typing import Any, Final, final

import attrs

from tapster.engine.ecma import Json

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
    """What was copied, and what the target refused or the source couldn't read (one sentence each).

    Attributes:
        counts: writes by what they were: a kind of resource, a collection, ``sessions``, ``traces``.
    """

    writes: int
    problems: tuple[str, ...]
    counts: Mapping[str, int] = attrs.Factory(dict)


def copy_state(source: Engine, target: Engine, now: int) -> Transfer:
    """Copy everything; what the target has under the same names is replaced, session logs it has are kept.

    Blocking; the source isn't changed. Earlier resource revisions that only a trace names stay behind.

    Raises:
        CommitFailed: the target's disk failed; run it again.
    """
    problems: list[str] = []
    counts: Counter[str] = Counter()
    with source.read() as tables:
        batch: list[Write[Any]] = []
        for write in _everything(tables, now, problems):
            batch.append(write)
            if len(batch) == BATCH:
                counts += _commit(target, batch, now, problems)
                batch = []
        counts += _commit(target, batch, now, problems)
    return Transfer(counts.total(), tuple(problems), dict(counts))


def _commit(target: Engine, batch: Sequence[Write[Any]], now: int, problems: list[str]) -> Counter[str]:
    outcomes = target.commit([Keyed(write) for write in batch], now) if batch else []
    problems += [outcome.error.message for outcome in outcomes if isinstance(outcome, Refused)]
    done = zip(batch, outcomes, strict=True) if batch else ()
    return Counter(_subject(write) for write, outcome in done if not isinstance(outcome, Refused))


def _subject(write: Write[Any]) -> str:
    match write:
        case PutResource(kind=kind):
            return kind
        case PutDocument(key=key):
            return key.collection
        case PutTrace():
            return "traces"
        case CreateSession():
            return "sessions"
        case _:
            return "event batches"


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
    """Each host's records in write order, those of several hosts by time: retention drops the oldest write first."""
    try:
        hosts = sorted({key.host for key in tables.traces.sessions()})
        for _, key, record in merge(*(_timed(tables, host) for host in hosts), key=itemgetter(0)):
            yield PutTrace(key, record)
    except ReadFailed as error:
        problems.append(error.message)


def _timed(tables: Tables, host: str) -> Iterator[tuple[int, SessionKey, Json]]:
    """A host's records with a time that never goes back: of their making, or of one written before them."""
    latest = 0
    for key, record in tables.traces.in_order(host):
        latest = max(latest, Retention.recorded_at(record))
        yield latest, key, record
