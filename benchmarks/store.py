"""Durable writes per second of the store: group commit at 1, 8, 32 and 64 writers, against one commit a write.

All run on the same disk in the same process, in turns, so that a slow moment meets all. "One commit a write" is the
store with batches of one, for the same writers; "bare" is the engine without actor, thread and writers: a loop that
commits each write by itself. What group commit gives depends on what a sync costs, so that is measured too.
Run: ``python -m benchmarks.store``.
"""

import argparse
import itertools
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import attrs
import trio

from tapster.actors.store import (
    MAX_BATCH,
    AppendEvents,
    CreateSession,
    Keyed,
    SessionKey,
    SqliteEngine,
    StoreConfig,
    open_store,
)
from tapster.actors.system import SystemClock
from tapster.engine.ecma import Json
from tapster.runtime import responsive_process

WRITERS = (1, 8, 32, 64)
T = TypeVar("T")
SIZES = {"2 KiB": 2_048, "20 KiB": 20_480}


@attrs.frozen
class Reading:
    """What one run gave: writes a second, and milliseconds until a write was acknowledged."""

    per_second: float
    p50_ms: float
    p99_ms: float

    @classmethod
    def of(cls, seconds: float, waits: Sequence[float]) -> "Reading":
        """From the length of a run and the wait of each write, in seconds."""
        cuts = statistics.quantiles(waits, n=100)
        return cls(len(waits) / seconds, cuts[49] * 1000, cuts[98] * 1000)


def event(size: int, seq: int) -> Json:
    """An event of about that many bytes."""
    return {"type": "note", "seq": seq, "data": os.urandom(size // 2).hex()}


def bare_writes(folder: Path, size: int, seconds: float) -> Reading:
    """The engine alone, each write in a transaction with an fsync of its own."""
    engine = SqliteEngine(folder / "single.db")
    key = SessionKey("bench", "s")
    engine.commit([Keyed(CreateSession(key, {}, 1))], 1)
    events = [event(size, 0)["data"] for _ in range(64)]
    waits = []
    start = time.perf_counter()
    for seq in itertools.count():
        before = time.perf_counter()
        if before - start > seconds:
            break
        value = {"type": "note", "seq": seq, "data": events[seq % 64]}
        engine.commit([Keyed(AppendEvents(key, seq, [value], 1))], 1)
        waits.append(time.perf_counter() - before)
    took = time.perf_counter() - start
    engine.close()
    return Reading.of(took, waits)


async def store_writes(
    folder: Path, size: int, writers: int, seconds: float, max_batch: int = MAX_BATCH
) -> tuple[Reading, float]:
    """The store with its actor, and the mean number of writes in a batch."""
    waits: list[float] = []
    async with open_store(StoreConfig(folder / "group", max_batch=max_batch), clock=SystemClock()) as store:
        keys = [SessionKey("bench", f"s{number}") for number in range(writers)]
        for key in keys:
            await store.create_session(key, {})
        # Made before the clock starts, as for the single writer; from then on random bytes would count as writing.
        datas = [event(size, 0)["data"] for _ in range(64)]
        begun = store.statistics()
        start = time.perf_counter()

        async def write_on(key: SessionKey) -> None:
            for seq in itertools.count():
                before = time.perf_counter()
                if before - start > seconds:
                    return
                await store.append_events(key, seq, [{"type": "note", "seq": seq, "data": datas[seq % 64]}])
                waits.append(time.perf_counter() - before)

        async with trio.open_nursery() as nursery:
            for key in keys:
                nursery.start_soon(write_on, key)
        took = time.perf_counter() - start
        ended = store.statistics()
    return Reading.of(took, waits), (ended.writes - begun.writes) / (ended.commits - begun.commits)


def sync_us() -> float:
    """Median microseconds until the disk says that 8 KiB are on it."""
    waits = []
    with tempfile.TemporaryFile(dir=Path.cwd()) as file:
        for number in range(500):
            os.pwrite(file.fileno(), os.urandom(8192), number % 100 * 8192)
            before = time.perf_counter()
            os.fdatasync(file.fileno())
            waits.append(time.perf_counter() - before)
    return statistics.median(waits) * 1e6


def in_new_folder(run: Callable[[Path], T]) -> T:
    """A run on an empty folder."""
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as place:
        return run(Path(place))


def compare(size: int, writers: int, seconds: float) -> str:
    """A row of the table. Both runs have the settings that the server gives its process."""
    with responsive_process():
        bare = in_new_folder(lambda folder: bare_writes(folder, size, seconds))
        single, _ = in_new_folder(lambda folder: trio.run(store_writes, folder, size, writers, seconds, 1))
        group, batch = in_new_folder(lambda folder: trio.run(store_writes, folder, size, writers, seconds))
    rates = f"{bare.per_second:,.0f} | {single.per_second:,.0f} | {group.per_second:,.0f}"
    times = f"{group.per_second / single.per_second:.1f} | {group.per_second / bare.per_second:.1f}"
    return f"{rates} | {times} | {batch:.1f} | {group.p50_ms:.2f} | {group.p99_ms:.2f}"


def table(writers: Sequence[int], seconds: float) -> Iterator[str]:
    """The lines of the table, each as soon as it is measured."""
    yield f"A sync of 8 KiB takes {sync_us():,.0f} µs here."
    yield ""
    names = ("bare /s", "one commit a write /s", "group commit /s", "times", "times bare", "batch", "p50 ms", "p99 ms")
    yield f"| record | writers | {' | '.join(names)} |"
    yield f"| --- | ---: | {' | '.join('---:' for _ in names)} |"
    for name, size in SIZES.items():
        for count in writers:
            yield f"| {name} | {count} | {compare(size, count, seconds)} |"


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0, help="length of each run")
    parser.add_argument("--writers", type=int, nargs="*", default=WRITERS)
    given = parser.parse_args()
    for line in table(given.writers, given.seconds):
        print(line, flush=True)


if __name__ == "__main__":
    main()
