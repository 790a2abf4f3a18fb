"""``python -m benchmarks.runtime_stall``: how long the loop of a running server stalls while large books are at work.

A task sleeps one millisecond again and again and measures how late it wakes. First nobody asks anything; then a book of
10,000 entries is compiled and twenty sessions scan it, asked over HTTP by another process. Both in one run: read the
worst stall beside that of the idle part, and beside the same requests with a small book. The last part has such a book
imported, shown, edited and exported. Run it on a machine that has nothing else to do: who waits for a processor is
late, too.
"""

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import httpx2
import trio

from benchmarks.activation import TEXT_UNITS, made_key, made_text
from tapster.actors.providers import ScriptedProvider
from tapster.actors.store import StoreConfig
from tapster.actors.tapster import Tapster, TapsterConfig, open_tapster
from tapster.api.app import AppOptions, create_app
from tapster.api.backing import Backing
from tapster.api.serving import open_server, server_config
from tapster.runtime import full_collections_when_quiet, responsive_process

OWN = "/tapster/api/v1/sessions"
IMPORT = "/tapster/api/v1/import"
BOOKS = "/pmp-dsh-tavern/api/v1/world-books"
LIBRARY = "library"
PAUSE_S = 0.001
SMALL = 10
"""Entries of the control: the same requests without a large book."""
BOUND_MS = 20.0
BOUND_RATIO = 3.0


@attrs.define(eq=False)
class Lateness:
    """How late a task woke, in milliseconds, for one part of a run."""

    name: str
    values: list[float] = attrs.field(factory=list)

    async def watch(self) -> None:
        """Measure until cancelled."""
        while True:
            due = time.perf_counter() + PAUSE_S
            await trio.sleep(PAUSE_S)
            self.values.append((time.perf_counter() - due) * 1000)

    @property
    def worst(self) -> float:
        return max(self.values)

    def row(self) -> str:
        ordered = sorted(self.values)
        shares = (0.5, 0.99, 0.999)
        cells = [f"{ordered[min(int(len(ordered) * share), len(ordered) - 1)]:9.2f}" for share in shares]
        return f"{self.name:34}{len(ordered):9,}{''.join(cells)}{self.worst:9.2f}"


@asynccontextmanager
async def measured(lateness: Lateness) -> AsyncIterator[None]:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lateness.watch)
        yield
        nursery.cancel_scope.cancel()


def large_book(entries: int) -> tuple[list[list[str]], bytes]:
    """The keys of each entry, and the file."""
    rng = random.Random(5)
    keys = [[made_key(rng) for _ in range(3)] for _ in range(entries)]
    raw: dict[str, Any] = {
        str(uid): {"uid": uid, "key": each, "content": f"lore {uid}"} for uid, each in enumerate(keys)
    }
    return keys, json.dumps({"name": "Large", "entries": raw}).encode()


async def fill(tapster: Tapster, entries: int, sessions: int, mode: str) -> tuple[str, list[str]]:
    """A book in the library and sessions that have it bound; its id, and names that occur in it."""
    keys, book = large_book(entries)
    stored = await tapster.library.world_books.import_file(book, "large.json")
    for number in range(sessions):
        handle = await tapster.create_session(f"s{number}", mode="tavern" if mode == "tavern" else "sillytavern")
        await tapster.select(handle.id, {"worldBookIds": [stored["id"]]})
        await tapster.activation_settings(handle.id, {"scan": {"depth": 100}})
    return stored["id"], [key for each in keys for key in each]


async def load(url: str, sessions: int, rounds: int, kind: str) -> None:
    """The client: every session says something long, or previews it, some times over; all at once."""
    text = made_text(random.Random(7), TEXT_UNITS, ["nobody"])
    async with httpx2.AsyncClient(base_url=url, trust_env=False, timeout=300, headers={"Origin": url}) as client:

        async def one(number: int) -> None:
            path = f"{OWN}/s{number}/{'preview' if kind == 'preview' else 'messages'}"
            body = {"draft": text} if kind == "preview" else {"text": text, "mode": "followup"}
            (await client.post(path, json=body)).raise_for_status()

        for _ in range(rounds):
            async with trio.open_nursery() as nursery:
                for number in range(sessions):
                    nursery.start_soon(one, number)
            # Only the server knows when the turns are over, and this is another process.
            while any(  # noqa: ASYNC110 - see above
                item["status"] == "running" for item in (await client.get(OWN)).json()["sessions"]
            ):
                await trio.sleep(0.1)


async def keep_book(url: str, entries: int, rounds: int) -> None:
    """The client of the library's part: a book imported, shown, edited and exported, some times over."""
    _, book = large_book(entries)
    async with httpx2.AsyncClient(base_url=url, trust_env=False, timeout=300, headers={"Origin": url}) as client:
        for _ in range(rounds):
            answer = await client.post(IMPORT, params={"filename": "large.json"}, content=book)
            answer.raise_for_status()
            path = f"{BOOKS}/{answer.json()['resources'][0]['id']}"
            for method, target, body in (
                ("GET", path, None),
                ("PATCH", path, {"description": "edited"}),
                ("GET", f"{path}/json", None),
            ):
                (await client.request(method, target, json=body)).raise_for_status()


async def served(options: argparse.Namespace, mode: str, kind: str, entries: int) -> list[Lateness]:
    """One server: idle, then at work."""
    idle, busy = Lateness("idle"), Lateness(f"{mode}, {kind}, {entries:,} entries")
    with tempfile.TemporaryDirectory(prefix="tapster-stall-") as folder, responsive_process():
        config = TapsterConfig(StoreConfig(Path(folder)))
        async with open_tapster(config, provider=ScriptedProvider()) as tapster:
            await fill(tapster, entries, options.sessions, mode)
            app = create_app(Backing(tapster), AppOptions())
            async with open_server(app, server_config("127.0.0.1", 0)) as server, full_collections_when_quiet():
                async with measured(idle):
                    await trio.sleep(options.seconds)
                async with measured(busy):
                    command = [sys.executable, "-m", "benchmarks.runtime_stall", "--client", server.urls[0]]
                    counts = ["--sessions", str(options.sessions), "--rounds", str(options.rounds)]
                    sizes = ["--kind", kind, "--entries", str(entries)]
                    await trio.run_process([*command, *counts, *sizes], check=True)
    return [idle, busy]


async def measure(options: argparse.Namespace) -> bool:
    print(f"{options.sessions} sessions, {TEXT_UNITS // 1024} KiB of text a request; lateness in ms")
    print(f"{'':34}{'wakes':>9}{'median':>9}{'99 %':>9}{'99.9 %':>9}{'worst':>9}")
    holds = True
    for mode in options.modes:
        for kind in options.kinds:
            _, control = await served(options, mode, kind, SMALL)
            idle, busy = await served(options, mode, kind, options.entries)
            print("\n".join(each.row() for each in (idle, control, busy)))
            bound = max(BOUND_MS, BOUND_RATIO * idle.worst)
            holds = holds and busy.worst <= bound
            verdict = "holds" if busy.worst <= bound else "OVER"
            print(f"  worst stall {busy.worst:.1f} ms, allowed {bound:.1f} ms: {verdict}")
    for entries in (SMALL, options.entries):
        print((await served(options, "tavern", LIBRARY, entries))[1].row())
    return holds


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.runtime_stall", description=__doc__)
    parser.add_argument("--entries", type=int, default=10_000)
    parser.add_argument("--sessions", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=2, help="requests of each session")
    parser.add_argument("--seconds", type=float, default=5, help="how long the idle part lasts")
    parser.add_argument("--modes", nargs="*", default=["sillytavern", "tavern"])
    parser.add_argument("--kinds", nargs="*", default=["turn", "preview"], help="turn or preview")
    parser.add_argument("--client", help=argparse.SUPPRESS)
    parser.add_argument("--kind", default="turn", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.client and options.kind == LIBRARY:
        trio.run(keep_book, options.client, options.entries, options.rounds)
        return
    if options.client:
        trio.run(load, options.client, options.sessions, options.rounds, options.kind)
        return
    sys.exit(0 if trio.run(measure, options) else 1)


if __name__ == "__main__":
    main()
