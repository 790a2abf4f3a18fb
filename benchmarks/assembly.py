"""``python -m benchmarks.assembly``: what a request costs, and what cancelling one of many costs.

8 sources, 300 blocks, a history of 200 messages with tools, native and core; 1, 10, 100, 1,000 sessions at once, each
assembling one request after another. Then one of 500 assemblies in flight is cancelled, and in the same run a bare trio
task. Times are of this machine: read the ratios.
"""

import argparse
import statistics
import tracemalloc
from collections.abc import Awaitable, Callable, Sequence
from time import perf_counter
from typing import Any

import attrs
import trio
import trio.testing

from tapster.actors.sources import PLACE_DEADLINE_S, FakeSource, Output, Source, Sources, assemble, open_sources
from tapster.engine.assembly import (
    Carried,
    RequestContext,
    Rule,
    freeze_context,
    normalise_preset,
    project_system_snapshots,
    register_host_sources,
)
from tapster.runtime import Threads

SOURCES, BLOCKS, MESSAGES = 8, 300, 200
SESSIONS = (1, 10, 100, 1_000)
WORDS = "the lantern burned low over Weir Street and nobody came to trim it "
HEAD = {"format": "dsh-tavern-request-assembly", "version": 1, "name": "Benchmark"}


class Blocks(Source):
    """A share of the blocks; waits once, as a source that reads something would."""

    plugin_id = "benchmark"

    def __init__(self, number: int) -> None:
        self.id = self.name = f"bench.{number}"  # type: ignore[misc]
        share = range(number, BLOCKS, SOURCES)
        self._blocks = [{"type": "text", "id": f"b{index}", "text": WORDS * 3} for index in share]

    async def resolve(self, context: RequestContext, rule: Rule) -> Output:
        await trio.lowlevel.checkpoint()
        return {"blocks": self._blocks}


def history() -> list[dict[str, Any]]:
    """A conversation with a tool transaction in every ten messages."""
    messages: list[dict[str, Any]] = []
    while len(messages) < MESSAGES:
        index = len(messages)
        if index % 10 == 4:
            call = {"type": "tool-call", "id": f"c{index}", "name": "probe", "arguments": "{}"}
            messages.append(_message(index, "assistant", call))
            messages.append({**_message(index + 1, "tool"), "toolCallId": f"c{index}"})
        else:
            messages.append(_message(index, "user" if index % 2 == 0 else "assistant"))
    return messages[:MESSAGES]


def _message(index: int, role: str, block: dict[str, Any] | None = None) -> dict[str, Any]:
    kinds = {"user": "user", "assistant": "model", "tool": "tool"}
    content = [block or {"type": "text", "text": WORDS * 5}]
    return {"id": f"m{index}", "role": role, "content": content, "source": {"kind": kinds[role]}}


def preset(backend: str) -> dict[str, Any]:
    """A preset that uses every source; the core one inserts two of them at a depth."""
    rules = [{"id": f"s{index}", "kind": f"bench.{index}", "role": "system"} for index in range(SOURCES)]
    if backend == "core":
        rules[6]["depth"], rules[7]["depth"] = 4, 1  # type: ignore[assignment]
    ends = [{"id": kind, "kind": kind} for kind in ("history", "input")]
    return {**HEAD, "backend": backend, "rules": [*rules, *ends]}


@attrs.define
class Stall:
    """The longest time the loop didn't run a task that was ready."""

    worst_s: float = 0.0

    async def watch(self) -> None:
        last = perf_counter()
        while True:
            await trio.sleep(0.001)
            now = perf_counter()
            self.worst_s = max(self.worst_s, now - last - 0.001)
            last = now


async def one(sources: Sources, backend: str, native: list[dict[str, Any]]) -> None:
    """One request, as a session makes it: freeze, resolve, place, and for core project."""

    def freeze() -> RequestContext:
        return freeze_context(normalise_preset(preset(backend)), native, input_ids=[native[-1]["id"]])

    context = await sources.run(freeze, PLACE_DEADLINE_S)
    result = await assemble(sources, context, Carried())
    if backend == "core":
        await sources.run(
            lambda: project_system_snapshots(result, native, system_prompt_update="in-history"), PLACE_DEADLINE_S
        )


async def load(sources: Sources, backend: str, sessions: int, requests: int) -> dict[str, float]:
    """Requests per second and latencies with so many sessions at once."""
    latencies: list[float] = []
    native = history()
    stall = Stall()

    async def session(count: int) -> None:
        for _ in range(count):
            started = perf_counter()
            await one(sources, backend, native)
            latencies.append(perf_counter() - started)

    each = max(1, requests // sessions)
    async with trio.open_nursery() as outer:
        outer.start_soon(stall.watch)
        started = perf_counter()
        async with trio.open_nursery() as nursery:
            for _ in range(sessions):
                nursery.start_soon(session, each)
        took = perf_counter() - started
        outer.cancel_scope.cancel()
    latencies.sort()
    return {
        "requests/s": len(latencies) / took,
        "p50 ms": 1_000 * statistics.median(latencies),
        "p99 ms": 1_000 * latencies[int(0.99 * (len(latencies) - 1))],
        "stall ms": 1_000 * stall.worst_s,
    }


async def cancel_cost(flights: int, rounds: int) -> dict[str, tuple[float, float]]:
    """Median and 99th percentile of seconds from a cancel to its end, for assemblies and for tasks that only sleep.

    Both are measured in turn in one loop, with ``flights`` assemblies in flight all the time.
    """
    async with open_sources() as sources:
        for index in range(SOURCES):
            sources.add(FakeSource(f"bench.{index}", hang=True, deadline_s=3_600))
        register_host_sources(sources.registry)
        context = freeze_context(normalise_preset(preset("core")), history())

        async def assembly() -> None:
            await assemble(sources, context)

        took: dict[str, list[float]] = {"assembly": [], "bare": []}
        async with trio.open_nursery() as nursery:
            for _ in range(flights - 1):
                nursery.start_soon(assembly)
            for _ in range(rounds):
                took["assembly"].append(await _cancel_one(nursery, assembly))
                took["bare"].append(await _cancel_one(nursery, trio.sleep_forever))
            nursery.cancel_scope.cancel()
    return {name: (statistics.median(times), sorted(times)[int(0.99 * (rounds - 1))]) for name, times in took.items()}


async def _cancel_one(nursery: trio.Nursery, work: Callable[[], Awaitable[None]]) -> float:
    scope, ended = trio.CancelScope(), trio.Event()

    async def run() -> None:
        with scope:
            await work()
        ended.set()

    nursery.start_soon(run)
    await trio.testing.wait_all_tasks_blocked()
    started = perf_counter()
    scope.cancel()
    await ended.wait()
    return perf_counter() - started


async def idle_memory(sources: Sources, lifetime: str, sessions: int = 100) -> float:
    """KiB that a session keeps between two requests: node marks, and the snapshots of one source if it has any."""
    native = history()
    asked = preset("core")
    asked["rules"][0]["lifetime"] = lifetime
    context = freeze_context(normalise_preset(asked), native, input_ids=[native[-1]["id"]])
    kept: list[Carried] = []
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(sessions):
        result = await assemble(sources, context)
        kept.append(Carried(result.snapshots, result.marks()))
        del result
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return (after - before) / len(kept) / 1024


async def main(requests: int, sessions: Sequence[int], threads: int) -> None:
    """Print every figure."""
    async with open_sources(Threads("engine", threads)) as sources:
        register_host_sources(sources.registry)
        for index in range(SOURCES):
            sources.add(Blocks(index))
        for backend in ("native", "core"):
            for count in sessions:
                figures = await load(sources, backend, count, max(requests, count))
                shown = "  ".join(f"{name} {value:9.2f}" for name, value in figures.items())
                print(f"{backend:6} {count:5} sessions  {shown}")
        plain, retained = await idle_memory(sources, "request"), await idle_memory(sources, "snapshot")
        print(f"idle session {plain:.1f} KiB, with {BLOCKS // SOURCES} snapshots {retained:.1f} KiB; 0 tasks")
    costs = await cancel_cost(500, 200)
    for index, name in enumerate(("p50", "p99")):
        assembly, bare = costs["assembly"][index], costs["bare"][index]
        print(f"cancel 1 of 500 {name}: {1e6 * assembly:.0f} us, bare {1e6 * bare:.0f} us, {assembly / bare:.1f} x")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--sessions", type=int, nargs="*", default=list(SESSIONS))
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    trio.run(main, given.requests, given.sessions, given.threads)
