"""What the running program says of itself: actors, event loop, store, threads, outbox; never any text of a prompt.

Source: design §4 ("introspection"), style §1 "datasette".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import trio

from tapster.actors.admission import AdmissionStatistics
from tapster.actors.store import StoreStatistics
from tapster.actors.traces import OutboxStatistics
from tapster.engine.ecma import Json
from tapster.runtime import ActorReading, LoopReading, ThreadStatistics

if TYPE_CHECKING:
    from .tapster import Tapster


@attrs.frozen
class RuntimeReading:
    """One look at everything that lives.

    Attributes:
        tasks: of the whole process.
        live: sessions awake, of at most ``max_live``.
    """

    phase: str
    uptime_s: float
    tasks: int
    live: int
    max_live: int
    actors: tuple[ActorReading, ...]
    loop: LoopReading
    threads: tuple[ThreadStatistics, ...]
    store: StoreStatistics
    outbox: OutboxStatistics
    admission: AdmissionStatistics

    def to_json(self) -> Json:
        """The reading as the API gives it."""
        return {**attrs.asdict(self, recurse=False), **_nested(self)}


def _nested(reading: RuntimeReading) -> dict[str, Json]:
    return {
        "actors": [attrs.asdict(actor) for actor in reading.actors],
        "loop": attrs.asdict(reading.loop),
        "threads": [attrs.asdict(pool) for pool in reading.threads],
        "store": attrs.asdict(reading.store),
        "outbox": attrs.asdict(reading.outbox),
        "admission": attrs.asdict(reading.admission),
    }


def kind_of(actor: str) -> str:
    """The kind of an actor, from its name: ``session`` of ``session:home/s1``."""
    return actor.partition(":")[0]


def read_runtime(tapster: Tapster) -> RuntimeReading:
    """A reading of an open runtime, made without waiting for anyone."""
    return RuntimeReading(
        phase=tapster.lifecycle.phase.value.value,
        uptime_s=trio.current_time() - tapster.opened_at,
        tasks=trio.lowlevel.current_statistics().tasks_living,
        live=len(tapster.host.live),
        max_live=tapster.config.max_live_sessions,
        actors=tuple(tapster.roster.readings()),
        loop=tapster.meter.reading(),
        threads=tuple(pool.statistics() for pool in tapster.roster.pools),
        store=tapster.store.statistics(),
        outbox=tapster.outbox.statistics(),
        admission=tapster.admission.statistics(),
    )
