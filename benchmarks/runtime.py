"""What kernel, sessions and store cost: asks, spawns, cancellation, a house full of sessions, durable writes.

Run: ``python -m benchmarks.runtime``; ``benchmarks.store`` has the durable writes alone.
"""

import argparse
import gc
import math
import time
import tracemalloc
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import attrs
import trio

from benchmarks.store import WRITERS
from benchmarks.store import table as durable_writes
from tapster.actors.providers import ScriptedProvider
from tapster.actors.store import StoreConfig
from tapster.actors.tapster import TapsterConfig, open_tapster
from tapster.runtime import Actor, Request, open_actor


@attrs.frozen
class Row:
    """One measurement, in microseconds unless its name says otherwise."""

    name: str
    p50: float
    p99: float
    count: int


@attrs.frozen
class Echo:
    value: int


@attrs.frozen
class Work:
    value: int


class Answering(Actor):
    """Answers at once, or from a task of its own."""

    name = "answering"

    def receive(self, request: Request) -> None:
        if isinstance(request.body, Work):
            self.start(request, self.work)
        else:
            request.settle(request.body.value)

    async def work(self) -> int:
        await trio.lowlevel.checkpoint()
        return 1


def row(name: str, seconds: Sequence[float]) -> Row:
    """The quantiles of a measurement."""
    ordered = sorted(seconds)
    at = [ordered[min(len(ordered) - 1, math.ceil(len(ordered) * share) - 1)] for share in (0.5, 0.99)]
    return Row(name, at[0] * 1e6, at[1] * 1e6, len(ordered))


async def timed(times: int, deed: Callable[[], Awaitable[object]]) -> list[float]:
    """Seconds of each of so many deeds, after a tenth as many for warming up."""
    taken = []
    for number in range(times + times // 10):
        started = time.perf_counter()
        await deed()
        if number >= times // 10:
            taken.append(time.perf_counter() - started)
    return taken


async def nothing() -> None:
    await trio.lowlevel.checkpoint()


async def spawn() -> None:
    """A task from start to end in a nursery of its own."""
    async with trio.open_nursery() as nursery:  # noqa: ASYNC112 - the nursery is what is measured
        nursery.start_soon(nothing)


async def nested(depth: int, parked: trio.Event) -> None:
    """A parked task below so many nurseries."""
    if depth == 0:
        parked.set()
        await trio.sleep_forever()
    async with trio.open_nursery() as nursery:  # noqa: ASYNC112 - the nursery is what is measured
        nursery.start_soon(nested, depth - 1, parked)


async def cancel_nested() -> float:
    """Seconds from a cancellation until a task ten nurseries below has unwound."""
    async with trio.open_nursery() as nursery:
        parked = trio.Event()
        nursery.start_soon(nested, 10, parked)
        await parked.wait()
        started = time.perf_counter()
        nursery.cancel_scope.cancel()
    return time.perf_counter() - started


async def kernel(times: int) -> list[Row]:
    """Asks, spawns and cancellation."""
    async with open_actor(Answering()) as ref:
        rows = [
            row("ask, answered at once", await timed(times, lambda: ref.ask(Echo(1)))),
            row("ask, answered by a task", await timed(times, lambda: ref.ask(Work(1)))),
        ]
        rows.append(row("an actor, opened and closed", await timed(times // 10, open_one)))
    rows.append(row("a task, spawned and ended", await timed(times, spawn)))
    rows.append(row("cancel through 10 nurseries", [await cancel_nested() for _ in range(times // 10)]))
    return rows


async def open_one() -> None:
    async with open_actor(Answering()):
        pass


async def house(count: int, max_live: int, previews: int) -> tuple[list[Row], str]:
    """So many sessions opened, then previews of random ones and asks of a live one beside them."""
    config = TapsterConfig(StoreConfig(Path("nowhere"), "memory"), max_live_sessions=max_live, idle_s=None)
    async with open_tapster(config, provider=ScriptedProvider()) as tapster:
        gc.collect()
        tracemalloc.start()
        before, _ = tracemalloc.get_traced_memory()
        sample = min(count, max_live, 200)
        for number in range(sample):
            await tapster.create_session(f"w-{number}")
        gc.collect()
        awake = (tracemalloc.get_traced_memory()[0] - before) / sample / 1024
        tracemalloc.stop()
        opened = []
        for number in range(count - sample):
            started = time.perf_counter()
            await tapster.create_session(f"s-{number}")
            opened.append(time.perf_counter() - started)
        handle = await tapster.open_session("w-0")
        asks = await timed(min(previews, 500), handle.flush)
        looks = []
        for number in range(previews):
            started = time.perf_counter()
            await tapster.preview(f"s-{number * 37 % (count - sample)}")
            looks.append(time.perf_counter() - started)
        rows = [
            row(f"{count:,} sessions: open one more", opened),
            row(f"{count:,} sessions: ask one", asks),
            row(f"{count:,} sessions: preview of any", looks),
        ]
        live = len(tapster.host.live)
        return rows, f"{count:,} sessions: {live:,} awake (of at most {max_live:,}), {awake:.1f} KiB each when new"


async def main(times: int, sizes: Sequence[int]) -> None:
    """Measure everything and print a table."""
    rows, notes = await kernel(times), []
    for size in sizes:
        found, note = await house(size, 2048, 300)
        rows += found
        notes.append(note)
    print("| measured | p50 µs | p99 µs | times |\n| --- | ---: | ---: | ---: |")
    for each in rows:
        print(f"| {each.name} | {each.p50:,.0f} | {each.p99:,.0f} | {each.count:,} |")
    print("\n" + "\n".join(notes))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=5000)
    parser.add_argument("--sessions", type=int, nargs="*", default=[1000, 10_000])
    parser.add_argument("--seconds", type=float, default=2.0, help="length of each run of durable writes")
    given = parser.parse_args()
    trio.run(main, given.times, given.sessions)
    print()
    for line in durable_writes(WRITERS, given.seconds):
        print(line, flush=True)
