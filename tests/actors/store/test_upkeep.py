"""What the store does beside writes: the WAL moved into the file, traces beyond retention dropped, failures told."""

import errno
from pathlib import Path
from typing import Any

import pytest
import trio

from tapster.actors.store import (
    CommitFailed,
    DocumentKey,
    Done,
    Keyed,
    PutDocument,
    PutTrace,
    Retention,
    SessionKey,
    SqliteEngine,
    StoreConfig,
    open_store,
)
from tapster.actors.store.actor import SWEEP_S
from tapster.actors.store.sqlite.wal import WAL_KEPT_BYTES, WAL_SOFT_BYTES
from tapster.engine.trace import RetentionLimits
from tapster.runtime import simulated_threads
from tests.actors.store.conftest import open_named
from tests.support.hosts import TrioClock
from tests.support.store_lab import Faults, open_lab_engine

S1, S2 = SessionKey("embedded", "s1"), SessionKey("embedded", "s2")
PIECE = "x" * 1_000_000


def big(number: int) -> Keyed:
    return Keyed(PutDocument(DocumentKey("chats", f"c{number}"), {"pad": PIECE, "n": number}, 1))


def is_behind(engine: SqliteEngine) -> bool:
    return engine.is_behind


def trace(key: SessionKey, number: int, at: int) -> Keyed:
    return Keyed(PutTrace(key, {"schemaVersion": 4, "id": f"t{number}", "recordedAt": at}))


def test_the_wal_begins_anew_once_it_was_moved_into_the_file(tmp_path: Path) -> None:
    engine = SqliteEngine(tmp_path / "tapster.db")
    wal = tmp_path / "tapster.db-wal"
    for number in range(WAL_SOFT_BYTES // len(PIECE) + 2):
        engine.commit([big(number)], 1)
    assert is_behind(engine)
    engine.catch_up(beside=True)
    engine.commit([big(100)], 1)
    engine.catch_up(beside=False)
    assert not is_behind(engine), "the next look waits for as much again"
    engine.commit([big(101)], 1)
    assert wal.stat().st_size <= WAL_KEPT_BYTES
    assert not is_behind(engine)
    assert engine.check() == ()
    engine.close()


def test_a_long_reader_delays_only_the_beginning_anew(tmp_path: Path) -> None:
    engine = SqliteEngine(tmp_path / "tapster.db")
    engine.commit([big(0)], 1)
    with engine.read() as tables:
        assert tables.documents.get(DocumentKey("chats", "c0")) is not None
        for number in range(1, WAL_SOFT_BYTES // len(PIECE) + 2):
            engine.commit([big(number)], 1)
        assert is_behind(engine)
        engine.catch_up(beside=True)
        engine.catch_up(beside=False)
        assert not is_behind(engine)
        assert tables.documents.get(DocumentKey("chats", "c1")) is None
    engine.close()


async def test_a_burst_is_caught_up_beside_its_commits(tmp_path: Path) -> None:
    async with open_store(StoreConfig(tmp_path), clock=TrioClock()) as store:
        for number in range(2 * WAL_SOFT_BYTES // len(PIECE)):
            await store.put_document(DocumentKey("chats", f"c{number}"), {"pad": PIECE})
        with trio.fail_after(10):
            while not store.statistics().catch_ups:  # noqa: ASYNC110 - the other side is a thread
                await trio.sleep(0.01)
    assert not (tmp_path / "tapster.db-wal").exists()


@pytest.mark.parametrize("name", ["sqlite", "memory"])
def test_a_sweep_drops_what_new_bounds_no_longer_keep(tmp_path: Path, name: str) -> None:
    engine: Any = open_named(name, tmp_path)
    engine.commit([trace(S1, number, 10 + number) for number in range(600)], 1)
    engine.close()
    bounds = Retention(RetentionLimits(max_records=5), max_age_ms=500, max_per_session=4)
    if name == "memory":
        engine = open_named(name, tmp_path, bounds)
        engine.commit([trace(S1, number, 500 + number) for number in range(4)], 1)
    else:
        engine = open_named(name, tmp_path, bounds)
        engine.commit([trace(S2, 0, 590)], 1)
    engine.tidy(1_090)
    with engine.read() as tables:
        records, _ = tables.traces.size()
        assert records <= 5
        assert len(tables.traces.of_session(S1)) <= 4
    engine.tidy(10_000_000)
    with engine.read() as tables:
        assert tables.traces.size() == ((0, 0) if name == "sqlite" else tables.traces.size())
    engine.close()


async def test_old_traces_go_without_any_write(tmp_path: Path, autojump_clock: object) -> None:
    config = StoreConfig(tmp_path, retention=Retention(max_age_ms=60_000))
    # Virtual time passes while a real thread works, so the threads are simulated, too.
    with simulated_threads(lambda pool: (0.0, 0.0)):
        async with open_store(config, clock=TrioClock()) as store:
            await store.put_trace(S1, {"schemaVersion": 4, "id": "t", "recordedAt": store.now_ms})
            await trio.sleep(10)
            assert (await store.trace_size())[0] == 1
            await trio.sleep(SWEEP_S + 60)
            assert (await store.trace_size())[0] == 0


async def test_a_failing_disk_is_told_and_its_recovery_too(tmp_path: Path) -> None:
    faults, lines = Faults(), list[tuple[str, str, dict[str, object]]]()
    config = StoreConfig(tmp_path)
    engine = SqliteEngine(tmp_path / "tapster.db", connect=faults.connect)

    def log(level: str, event: str, **fields: object) -> None:
        lines.append((level, event, fields))

    async with open_store(config, clock=TrioClock(), engine=lambda: engine, log=log) as store:
        faults.statements["COMMIT"] = errno.ENOSPC
        with pytest.raises(CommitFailed):
            await store.put_document(DocumentKey("chats", "secret"), {"text": "secret"})
        assert store.statistics().problem == "STORE_COMMIT_FAILED"
        faults.statements.clear()
        await store.put_document(DocumentKey("chats", "c"), {})
        assert store.statistics().problem is None
        assert await store.document(DocumentKey("chats", "secret")) is None
    assert [(level, event) for level, event, _ in lines] == [
        ("error", "store.commit-failed"),
        ("info", "store.recovered"),
    ]
    assert "secret" not in str(lines)


def test_upkeep_that_failed_halfway_fails_no_write(tmp_path: Path) -> None:
    faults = Faults()
    engine = open_lab_engine("sqlite", tmp_path / "data", faults)
    for statement in ("COMMIT", "DELETE", "PRAGMA"):
        faults.statements = {statement: errno.EIO}
        with pytest.raises(CommitFailed):
            engine.tidy(1)
        faults.statements = {}
        [done] = engine.commit([Keyed(PutDocument(DocumentKey("chats", statement), {}, 1))], 1)
        assert isinstance(done, Done)
    engine.close()
