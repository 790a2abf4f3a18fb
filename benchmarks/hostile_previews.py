"""``python -m benchmarks.hostile_previews``: what hostile patterns and templates do to another session's previews.

A session previews again and again, first alone, then while twenty sessions with one hostile world-book pattern each, or
ten with an endless template each, are previewed one after another. All in the same run, in a process tuned as
``tapster serve`` tunes its own; read the ratio of the 99th percentiles.
"""

import argparse
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import trio

from tapster.actors.session import Preview
from tapster.actors.session.embedded import embedded_key
from tapster.engine.text.templates import TemplateError
from tapster.runtime import responsive_process
from tests.support.hostile import PATTERNS, TEMPLATES, TEXT
from tests.support.hostile_library import HostileLibrary
from tests.support.strategies import INPUT, RULES, open_stage
from tests.support.tavern import open_tavern_rig

PAUSE_S = 0.002
Ask = Callable[[], Awaitable[None]]
"""A preview of one session."""
LORE = {"id": "worldbook", "kind": "worldbook"}


async def keep_previewing(preview: Ask, times: list[float]) -> None:
    """Preview until cancelled; times in milliseconds."""
    while True:
        started = time.perf_counter()
        await preview()
        times.append((time.perf_counter() - started) * 1000)
        await trio.sleep(PAUSE_S)


def quantile(times: Sequence[float], share: float) -> float:
    return sorted(times)[min(int(len(times) * share), len(times) - 1)]


async def measure(name: str, other: Ask, hostile: Sequence[Ask], seconds: float) -> None:
    """One table: another session alone, then beside the hostile ones."""
    alone: list[float] = []
    beside: list[float] = []
    cpu: list[float] = []
    await other()
    with trio.move_on_after(seconds):
        await keep_previewing(other, alone)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(keep_previewing, other, beside)
        for preview in hostile:
            started = time.process_time()
            await preview()
            cpu.append((time.process_time() - started) * 1000)
        nursery.cancel_scope.cancel()
    print(f"{name:24}{'previews':>10}{'median ms':>11}{'p99 ms':>9}")
    for label, times in (("alone", alone), ("beside hostile", beside)):
        print(f"{label:24}{len(times):10}{quantile(times, 0.5):11.2f}{quantile(times, 0.99):9.2f}")
    print(f"p99 ratio {quantile(beside, 0.99) / quantile(alone, 0.99):.2f}")
    print(f"{len(cpu)} hostile previews: process CPU {max(cpu):.0f} ms at most, the other session's work included")


async def patterns(seconds: float) -> None:
    """World books with a hostile key."""
    async with open_tavern_rig(HostileLibrary()) as tavern:

        async def preview_of(name: str, draft: str) -> Ask:
            session = (await tavern.rig.host.create(name)).session

            async def preview() -> None:
                await tavern.sessions.ask(embedded_key(name), session, Preview(draft))

            return preview

        other = await preview_of("other", "I hear a bell")
        await measure(
            "patterns", other, [await preview_of(f"h{index}", TEXT) for index in range(len(PATTERNS))], seconds
        )


async def templates(seconds: float) -> None:
    """Strategies with an endless template; each preview is refused in words."""
    with TemporaryDirectory(prefix="tapster-hostile-") as folder:
        async with open_stage(Path(folder)) as stage:
            refused: list[str] = []

            async def preview_of(name: str, *rules: dict[str, Any]) -> Ask:
                await stage.begin(name)
                await stage.use("native", *rules, *RULES, INPUT, session_id=name)
                await stage.tapster.open_session(name)

                async def preview() -> None:
                    try:
                        await stage.tapster.preview_request(name, "a bell")
                    except TemplateError as error:
                        refused.append(error.code)

                return preview

            hostile = [
                await preview_of(
                    f"h{index}",
                    {"id": "ejs", "kind": "tavern.text", "inputMode": "text", "role": "system", "text": source},
                )
                for index, source in enumerate(TEMPLATES)
            ]
            await measure("templates", await preview_of("other", LORE), hostile, seconds)
            print(f"{len(refused)} of them refused: {', '.join(sorted(set(refused)))}")


async def run(seconds: float) -> None:
    """Both tables."""
    await patterns(seconds)
    await templates(seconds)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hostile_previews", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3, help="how long the quiet part lasts")
    options = parser.parse_args(arguments)
    with responsive_process():
        trio.run(run, options.seconds)


if __name__ == "__main__":
    main()
