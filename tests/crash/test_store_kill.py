"""``kill -9`` in the middle of a burst, again and again on the same data: every acknowledged write is there."""

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tapster.actors.store import DocumentKey, Engine, SessionKey
from tests.actors.store.conftest import open_named


def burst(engine: str, folder: Path, round_number: int, seconds: float) -> dict[str, int]:
    """Run a burst, kill it after a while; the last acknowledged seq of each session."""
    run = [sys.executable, "-m", "tests.support.burst_child", engine, str(folder), str(round_number)]
    with subprocess.Popen(run, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        time.sleep(seconds)
        child.kill()
        lines = child.stdout.read().split(b"\n")[:-1]
    return {session: int(seq) for session, seq in (line.decode().split() for line in lines)}


def check(engine: Engine, acknowledged: dict[str, int]) -> None:
    assert engine.check() == ()
    with engine.read() as tables:
        for session, seq in acknowledged.items():
            key = SessionKey("embedded", session)
            events = tables.sessions.read(key)
            assert len(events) >= seq
            assert [event["seq"] for event in events] == list(range(len(events)))
            assert len(events) % 2 == 0, "an append is whole"
            found = tables.documents.get(DocumentKey("chats", f"chat-{session}"))
            assert found is not None
            assert found.value["seq"] >= seq
        records, _ = tables.traces.size()
        assert records <= 256


@pytest.mark.slow
@pytest.mark.parametrize(("engine", "rounds", "longest_s"), [("sqlite", 20, 0.12), ("files", 5, 0.8)])
def test_no_acknowledged_write_is_lost(tmp_path: Path, engine: str, rounds: int, longest_s: float) -> None:
    rng = random.Random(20240501)
    acknowledged: dict[str, int] = {}
    for number in range(rounds):
        acknowledged |= burst(engine, tmp_path, number, rng.uniform(0.01, longest_s))
        opened = open_named(engine, tmp_path)
        check(opened, acknowledged)
        opened.close()
    assert len(acknowledged) > 12
