"""A soak of the whole server over real HTTP: does it grow?

300 sessions (by default) speak, preview, cancel and stream for half an hour, some of their readers stop reading, and
old sessions give way to new ones, as months of use would have it. A minute's reading gives the server's resident
memory, tasks and file descriptors; the slope of the memory after minute 10 is what must be flat.

Run: ``python -m benchmarks.soak --minutes 30``. The server is a process of its own; the model is the offline stand-in.
"""

import argparse
import math
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import attrs
import httpx2
import trio

from tapster.actors.testing import open_model_server
from tapster.api.running_file import find_server

SAMPLE: Final = Path(__file__).parent.parent / "api/tapster/api/sample"
TURNS_PER_SESSION: Final = 4
"""Then the client begins another session, so that the history in memory has a steady size."""
THINK_S: Final = 15.0
SETTLED_MIN: Final = 10.0
MEMORY_MIB: Final = 1.0
"""What the memory may grow in 10 minutes."""
IDLE_S: Final = 20.0
ROOT: Final = "/tapster/api/v1"


@attrs.frozen
class Row:
    """One reading of the server process."""

    minute: float
    rss_mib: float
    tasks: int
    live: int
    fds: int
    stall_ms: float
    done: int
    refused: int


@attrs.define
class Load:
    """What the clients did, and the server they do it to."""

    client: httpx2.AsyncClient
    random: random.Random
    counts: Counter[str] = attrs.field(factory=Counter)
    names: int = 0

    def new_name(self) -> str:
        """The id of the next session."""
        self.names += 1
        return f"soak-{self.names}"


async def ask(load: Load, kind: str, method: str, path: str, body: Any = None) -> Any:
    """One request; what came of it is counted."""
    try:
        response = await load.client.request(method, ROOT + path, json=body)
    except httpx2.RemoteProtocolError:
        # The server closed a kept connection in the moment it was used again, as HTTP/1.1 allows.
        load.counts["connection lost"] += 1
        return None
    load.counts[kind if response.status_code < 400 else f"{response.status_code}"] += 1
    return response.json() if response.status_code < 400 else None


async def person(load: Load, bindings: Any, start_after: float) -> None:
    """Somebody who talks in one session after the other."""
    await trio.sleep(start_after)
    turns_left = load.random.randint(1, TURNS_PER_SESSION)
    while True:
        name = load.new_name()
        await ask(load, "sessions", "POST", "/sessions", {"id": name})
        if load.random.random() < 0.7:
            await bind(load, name, bindings)
        while turns_left > 0:
            turns_left -= await deed(load, name)
            await trio.sleep(load.random.expovariate(1 / THINK_S))
        turns_left = TURNS_PER_SESSION


async def bind(load: Load, name: str, bindings: Any) -> None:
    """Bind the sample's preset, card and book."""
    for path, member, of in (
        ("select", "id", "presetId"),
        ("character-selection", "characterCardId", "characterCardId"),
        ("world-book-selection", "worldBookIds", "worldBookIds"),
    ):
        body = {"sessionId": name, member: bindings[of]}
        response = await load.client.post(f"/pmp-dsh-tavern/api/v1/{path}", json=body)
        load.counts["bindings" if response.status_code < 400 else f"{response.status_code}"] += 1


async def deed(load: Load, name: str) -> int:
    """One thing that a person does; how many turns it took."""
    chance = load.random.random()
    path = f"/sessions/{name}"
    if chance < 0.45:
        await ask(load, "messages", "POST", f"{path}/messages", {"text": load.random.choice(LINES)})
        return 1
    if chance < 0.6:
        await ask(load, "messages", "POST", f"{path}/messages", {"text": load.random.choice(LINES)})
        await trio.sleep(load.random.random() * 0.2)
        await ask(load, "cancels", "POST", f"{path}/cancel", {})
        return 1
    if chance < 0.85:
        await ask(load, "previews", "POST", f"{path}/preview", {"draft": load.random.choice(LINES)})
    elif chance < 0.92:
        with trio.move_on_after(load.random.random() * 0.02):
            await ask(load, "previews", "POST", f"{path}/preview", {"draft": load.random.choice(LINES)})
        load.counts["left"] += 1
    else:
        await ask(load, "reads", "GET", path)
    return 0


LINES: Final = (
    "I ask the keeper about the lamp and the bell under the reef.",
    "钟声响了，我望向灯塔。",
    "We walk down to Greywater harbour and wait for the ferry. " * 8,
    "What does Mira know about the storm?",
)


async def reader(load: Load, port: int, people: int) -> None:
    """A client of live events that reads for a while, then stops reading, then goes."""
    while True:
        await trio.sleep(load.random.random() * 20)
        name = f"soak-{max(1, load.names - load.random.randrange(people))}"
        try:
            stream = await trio.open_tcp_stream("127.0.0.1", port)
        except OSError:
            load.counts["unreachable"] += 1
            continue
        async with stream:
            path = f"{ROOT}/sessions/{name}/events?after=-1"
            await stream.send_all(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
            with trio.move_on_after(load.random.random() * 20):
                while await stream.receive_some(4096):
                    load.counts["pieces"] += 1
            # Now it keeps the connection and doesn't read.
            await trio.sleep(20 + load.random.random() * 40)
            load.counts["slow readers"] += 1


async def read_server(load: Load, pid: int, started: float) -> Row:
    """A reading of the process and of its own account of itself."""
    answer = await load.client.get(ROOT + "/runtime")
    runtime = answer.json()["runtime"]
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return Row(
        (time.monotonic() - started) / 60,
        pages * os.sysconf("SC_PAGE_SIZE") / 2**20,
        runtime["tasks"],
        runtime["live"],
        len(os.listdir(f"/proc/{pid}/fd")),
        runtime["loop"]["recent_s"] * 1000,
        sum(load.counts[kind] for kind in ("messages", "previews", "cancels", "reads", "sessions")),
        sum(count for kind, count in load.counts.items() if kind.isdigit()),
    )


@attrs.frozen
class Trend:
    """Growth per 10 minutes, and the standard error of that: how much of it may be chance."""

    growth: float
    error: float

    @property
    def is_growth(self) -> bool:
        """Whether it is more than chance explains in 19 of 20 soaks."""
        return self.growth > 2 * self.error

    def __str__(self) -> str:
        return f"{self.growth:+.2f} ± {self.error:.2f}"


def trend(rows: Sequence[Row], value: Callable[[Row], float]) -> Trend:
    """Least squares over the readings after the settling time."""
    kept = [row for row in rows if row.minute >= min(SETTLED_MIN, rows[-1].minute / 3)]
    if len(kept) < 3:
        return Trend(0.0, math.inf)
    minutes, values = [row.minute for row in kept], [value(row) for row in kept]
    slope, intercept = statistics.linear_regression(minutes, values)
    left = sum((y - intercept - slope * x) ** 2 for x, y in zip(minutes, values, strict=True)) / (len(kept) - 2)
    spread = (len(kept) - 1) * statistics.variance(minutes)
    return Trend(10 * slope, 10 * math.sqrt(left / spread))


@asynccontextmanager
async def open_process(data_dir: Path, model_url: str) -> AsyncIterator[tuple[subprocess.Popen[bytes], str]]:
    """A server over a data folder, stopped as a person would stop it."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TAPSTER_")}
    environment = {
        **kept,
        "TAPSTER_PROVIDER_URL": model_url,
        "TAPSTER_SESSION_IDLE_S": str(IDLE_S),
        "TAPSTER_MAX_LIVE_SESSIONS": "600",
        "XDG_CONFIG_HOME": str(data_dir),
    }
    command = [sys.executable, "-c", "from tapster.api.cli import main; main()"]
    log = (data_dir / "server.log").open("wb")
    process = subprocess.Popen(  # noqa: ASYNC220 - it starts once, before anything else runs
        [*command, "--data-dir", str(data_dir), "serve", "--port", "0"], env=environment, stdout=log, stderr=log
    )
    try:
        while (url := find_server(data_dir)) is None:
            assert process.poll() is None, (data_dir / "server.log").read_text()
            await trio.sleep(0.05)
        yield process, url
    finally:
        process.send_signal(signal.SIGTERM)
        await trio.to_thread.run_sync(process.wait)  # noqa: ASYNC102 - the server's own last resort bounds it
        log.close()


async def bind_sample(client: httpx2.AsyncClient) -> dict[str, Any]:
    """Import the sample library; what a session selects of it."""
    bindings: dict[str, Any] = {}
    for file in sorted(SAMPLE.glob("*.*")):
        if file.suffix not in (".json", ".png"):
            continue
        answer = await client.post(ROOT + "/import", params={"filename": file.name}, content=file.read_bytes())
        answer.raise_for_status()
        for resource in answer.json()["resources"]:
            match resource["kind"]:
                case "preset":
                    bindings["presetId"] = resource["id"]
                case "character":
                    bindings["characterCardId"] = resource["id"]
                case "user":
                    bindings["userId"] = resource["id"]
                case _:
                    bindings["worldBookIds"] = [resource["id"]]
    return bindings


async def soak(minutes: float, sessions: int, readers: int, seed: int) -> int:
    """Run it and print a line a minute; the exit code says whether anything grew."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        async with (
            open_model_server() as model,
            open_process(Path(folder), model.url) as (process, url),
            httpx2.AsyncClient(
                base_url=url,
                trust_env=False,
                timeout=60,
                headers={"Origin": url},
                limits=httpx2.Limits(max_connections=200, max_keepalive_connections=100, keepalive_expiry=2),
            ) as client,
        ):
            load = Load(client, random.Random(seed))
            bindings = await bind_sample(client)
            started = time.monotonic()
            print("| minute | RSS MiB | tasks | live sessions | fds | longest step ms | requests | refused |")
            print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
            async with trio.open_nursery() as nursery:
                for number in range(sessions):
                    nursery.start_soon(person, load, bindings, number * THINK_S / sessions)
                for _ in range(readers):
                    nursery.start_soon(reader, load, int(url.rpartition(":")[2]), sessions)
                while time.monotonic() - started < minutes * 60:
                    await trio.sleep(min(60, minutes * 6))
                    model.requests.clear()
                    rows.append(await read_server(load, process.pid, started))
                    row = rows[-1]
                    print(
                        f"| {row.minute:.1f} | {row.rss_mib:.1f} | {row.tasks} | {row.live} | {row.fds} "
                        f"| {row.stall_ms:.0f} | {row.done} | {row.refused} |",
                        flush=True,
                    )
                nursery.cancel_scope.cancel()
        code = process.returncode
    return report(rows, load.counts, code)


def report(rows: Sequence[Row], counts: Counter[str], code: int) -> int:
    """Print trends and counts; 0 when nothing grew."""
    memory, tasks = trend(rows, lambda row: row.rss_mib), trend(rows, lambda row: row.tasks)
    fds, live = trend(rows, lambda row: row.fds), trend(rows, lambda row: row.live)
    print(f"\nper 10 minutes after settling: memory {memory} MiB, tasks {tasks} (live sessions {live}), fds {fds}")
    print("counts:", dict(sorted(counts.items())))
    print("exit code of the server:", code)
    return int(memory.growth >= MEMORY_MIB or tasks.is_growth or fds.is_growth or code != 0)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--sessions", type=int, default=300)
    parser.add_argument("--readers", type=int, default=30, help="clients of live events that stop reading")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    sys.exit(trio.run(soak, given.minutes, given.sessions, given.readers, given.seed))


if __name__ == "__main__":
    main()
