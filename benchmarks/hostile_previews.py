"""``python -m benchmarks.hostile_previews``: what one session's hostile book does to another session's previews.

A session previews again and again, first alone, then while twenty sessions with one hostile world-book pattern each are
previewed one after another. Both in the same run, in a process tuned as ``tapster serve`` tunes its own; read the ratio
of the 99th percentiles.
"""

import argparse
import time
from collections.abc import Sequence

import attrs
import trio

from tapster.actors.session import Preview
from tapster.actors.session.embedded import embedded_key
from tapster.runtime import responsive_process
from tests.support.hostile import PATTERNS, TEXT
from tests.support.hostile_library import HostileLibrary
from tests.support.tavern import TavernRig, open_tavern_rig

PAUSE_S = 0.002


@attrs.define(eq=False)
class Bench:
    """Sessions of one rig and the times of their previews in milliseconds."""

    tavern: TavernRig
    hosts: dict[str, object] = attrs.field(factory=dict)

    async def preview(self, name: str, draft: str) -> float:
        started = time.perf_counter()
        await self.tavern.sessions.ask(embedded_key(name), self.hosts[name], Preview(draft))  # type: ignore[arg-type]
        return (time.perf_counter() - started) * 1000

    async def keep_previewing(self, times: list[float]) -> None:
        while True:
            times.append(await self.preview("other", "I hear a bell"))
            await trio.sleep(PAUSE_S)


def quantile(times: Sequence[float], share: float) -> float:
    return sorted(times)[min(int(len(times) * share), len(times) - 1)]


async def measure(seconds: float) -> None:
    alone: list[float] = []
    beside: list[float] = []
    cpu: list[float] = []
    async with open_tavern_rig(HostileLibrary()) as tavern:
        bench = Bench(tavern)
        for name in ("other", *(f"h{index}" for index in range(len(PATTERNS)))):
            bench.hosts[name] = (await tavern.rig.host.create(name)).session
        await bench.preview("other", "warm")
        with trio.move_on_after(seconds):
            await bench.keep_previewing(alone)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(bench.keep_previewing, beside)
            for index in range(len(PATTERNS)):
                started = time.process_time()
                await bench.preview(f"h{index}", TEXT)
                cpu.append((time.process_time() - started) * 1000)
            nursery.cancel_scope.cancel()
    print(f"{'':16}{'previews':>10}{'median ms':>11}{'p99 ms':>9}")
    for label, times in (("alone", alone), ("beside hostile", beside)):
        print(f"{label:16}{len(times):10}{quantile(times, 0.5):11.2f}{quantile(times, 0.99):9.2f}")
    print(f"p99 ratio {quantile(beside, 0.99) / quantile(alone, 0.99):.2f}")
    print(f"{len(cpu)} hostile previews: process CPU {max(cpu):.0f} ms at most, the other session's work included")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hostile_previews", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3, help="how long the quiet part lasts")
    options = parser.parse_args(arguments)
    with responsive_process():
        trio.run(measure, options.seconds)


if __name__ == "__main__":
    main()
