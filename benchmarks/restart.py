"""Seconds from the start of a real ``tapster serve`` process until it is ready, over few and many stored sessions.

Each start is a new interpreter on the same data; "ready" is the first 200 of ``/tapster/api/v1/ready``. The data is
written by the store itself, each session with a header, events and a selection. Runs of the empty and the full store
take turns, so that a slow moment meets both. Run: ``python -m benchmarks.restart``.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tapster.actors.store import AppendEvents, CreateSession, Keyed, SessionKey, Write, open_engine
from tapster.actors.store.opening import EngineName, StoreConfig
from tapster.api.running_file import find_server
from tapster.engine.policy import Selection

READY: Final = "/tapster/api/v1/ready"
LONGEST_S: Final = 120.0
BATCH: Final = 200


def fill(folder: Path, engine: EngineName, sessions: int, events: int) -> None:
    """Store sessions as the embedded host does."""
    opened = open_engine(StoreConfig(folder, engine))
    for first in range(0, sessions, BATCH):
        batch: list[Write[object]] = []
        for number in range(first, min(sessions, first + BATCH)):
            key = SessionKey("embedded", f"session-{number}")
            batch.append(CreateSession(key, header(key.session), 1, defaults=Selection(preset_id="p")))
            lines = [{"type": "note", "seq": seq, "time": 1, "data": {"text": "word " * 40}} for seq in range(events)]
            batch.append(AppendEvents(key, 0, lines, 1))
        opened.commit([Keyed(write) for write in batch], 1)
    opened.close()


def header(session: str) -> dict[str, object]:
    """A session's header line."""
    return {"type": "session", "id": session, "version": 1, "timestamp": 1}


def start(folder: Path, engine: EngineName) -> float:
    """Start a server, wait until it is ready, stop it; the seconds until it was ready."""
    (folder / "server.json").unlink(missing_ok=True)
    code = "from tapster.api.cli.main import main; main()"
    run = [sys.executable, "-c", code, "--data-dir", str(folder), "serve", "--port", "0", "--store", engine]
    begun = time.perf_counter()
    with subprocess.Popen(run, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            while not is_ready(folder):
                if process.poll() is not None or time.perf_counter() - begun > LONGEST_S:
                    raise SystemExit(f"the server didn't get ready (exit code {process.returncode})")
                time.sleep(0.005)
            return time.perf_counter() - begun
        finally:
            process.kill()


def is_ready(folder: Path) -> bool:
    """Whether the server of a folder answers that it is ready."""
    url = find_server(folder)
    if url is None:
        return False
    try:
        with urllib.request.urlopen(url + READY, timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table; exit code 1 when a full store starts too slowly."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=10_000)
    parser.add_argument("--events", type=int, default=20, help="events of each session")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--engine", choices=("sqlite", "files"), default="sqlite")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as place:
        empty, full = Path(place) / "empty", Path(place) / "full"
        fill(empty, given.engine, 0, 0)
        fill(full, given.engine, given.sessions, given.events)
        start(empty, given.engine)
        runs = [(start(empty, given.engine), start(full, given.engine)) for _ in range(given.runs)]
    few, many = (statistics.median(times) for times in zip(*runs, strict=True))
    bound = 1.5 * few + 0.5
    print("| sessions | median s | all runs |")
    print("| --- | --- | --- |")
    for count, median, times in zip((0, given.sessions), (few, many), zip(*runs, strict=True), strict=True):
        print(f"| {count:,} | {median:.2f} | {', '.join(f'{each:.2f}' for each in times)} |")
    print(f"bound 1.5 x empty + 0.5 s = {bound:.2f} s: {'holds' if many <= bound else 'MISSED'}")
    sys.exit(0 if many <= bound else 1)


if __name__ == "__main__":
    main()
