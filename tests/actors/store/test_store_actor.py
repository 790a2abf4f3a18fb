"""The store actor: group commit, acknowledgement, cancellation, pressure, faults and recovery."""

import errno
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from tapster.actors.store import (
    CommitFailed,
    DocumentConflict,
    DocumentKey,
    Engine,
    Keyed,
    MemoryEngine,
    PutDocument,
    SessionKey,
    Store,
    StoreConfig,
    open_store,
)
from tapster.actors.store.handle import QUEUED_WRITES
from tapster.actors.store.interface import Outcome
from tapster.runtime import Overloaded, simulated_threads
from tests.support.hosts import TrioClock
from tests.support.store_lab import Faults, open_lab_engine

CHAT = DocumentKey("chats", "chat-1")
S1 = SessionKey("embedded", "s1")


class GatedEngine:
    """A real engine whose commits wait for the test, and that notes its batches."""

    def __init__(self, real: Engine) -> None:
        self.real = real
        self.gate = threading.Event()
        self.batches: list[list[str]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def commit(self, batch: Sequence[Keyed], now: int) -> list[Outcome]:
        self.batches.append([keyed.write.key.name for keyed in batch])  # type: ignore[attr-defined]
        assert self.gate.wait(5), "the test opens the gate"
        return self.real.commit(batch, now)


@asynccontextmanager
async def gated() -> AsyncIterator[tuple[Store, GatedEngine]]:
    engine = GatedEngine(MemoryEngine())
    given: Any = engine
    async with open_store(StoreConfig(Path("unused"), "memory"), clock=TrioClock(), engine=lambda: given) as store:
        try:
            yield store, engine
        finally:
            engine.gate.set()


async def started(engine: GatedEngine) -> None:
    """Wait until the first batch is in the engine's hands."""
    with trio.fail_after(12):
        while not engine.batches:
            await trio.lowlevel.checkpoint()


async def put(store: Store, name: str, done: list[str] | None = None, **more: Any) -> None:
    await store.put_document(DocumentKey("chats", name), {"n": name}, **more)
    if done is not None:
        done.append(name)


async def test_what_waits_is_one_batch_in_order_and_acknowledged_after_it() -> None:
    done: list[str] = []
    async with gated() as (store, engine), trio.open_nursery() as nursery:
        nursery.start_soon(put, store, "first", done)
        await started(engine)
        for name in "abc":
            nursery.start_soon(put, store, name, done)
            await wait_all_tasks_blocked()
        assert done == []
        assert store.statistics().queued == 3
        engine.gate.set()
    assert engine.batches == [["first"], ["a", "b", "c"]]
    assert done[0] == "first"
    assert sorted(done[1:]) == ["a", "b", "c"]
    assert (store.statistics().commits, store.statistics().writes, store.statistics().largest_batch) == (2, 4, 3)


async def test_a_queued_write_can_be_taken_back() -> None:
    async with gated() as (store, engine), trio.open_nursery() as nursery:
        nursery.start_soon(put, store, "first")
        await started(engine)
        with trio.CancelScope() as scope:
            nursery.start_soon(put, store, "second")
            await wait_all_tasks_blocked()
            scope.cancel()
            await put(store, "never")
        assert scope.cancelled_caught
        engine.gate.set()
        await store.drain()
        assert await store.document(DocumentKey("chats", "never")) is None
    assert ["never"] not in engine.batches


async def test_a_write_in_a_batch_is_waited_for_and_published_before_its_asker_leaves() -> None:
    published: list[str] = []
    async with gated() as (store, engine), trio.open_nursery() as nursery:
        scope = trio.CancelScope()

        async def leaving() -> None:
            with scope:
                await store.write(PutDocument(CHAT, {"n": 1}, 1), applied=lambda doc: published.append(doc.revision))
            published.append("left")

        nursery.start_soon(leaving)
        await started(engine)
        scope.cancel()
        await wait_all_tasks_blocked()
        assert published == []
        engine.gate.set()
    assert scope.cancelled_caught
    assert published[-1] == "left"
    assert len(published) == 2


async def test_a_bad_write_fails_alone(tmp_path: Path) -> None:
    async with open_store(StoreConfig(tmp_path), clock=TrioClock()) as store:
        await store.put_document(CHAT, {"n": 1})
        async with trio.open_nursery() as nursery:
            for name in "abc":
                nursery.start_soon(put, store, name)
            with pytest.raises(DocumentConflict):
                await store.put_document(CHAT, {"n": 2}, base=None)
        assert len(await store.documents("chats")) == 4


async def test_a_full_queue_is_overloaded_at_a_border_and_waited_for_between_actors() -> None:
    async with gated() as (store, engine), trio.open_nursery() as nursery:
        for number in range(QUEUED_WRITES):
            nursery.start_soon(put, store, str(number))
        await started(engine)
        await wait_all_tasks_blocked()
        with pytest.raises(Overloaded):
            await store.offer(PutDocument(CHAT, {}, 1))
        nursery.start_soon(put, store, "waits")
        await wait_all_tasks_blocked()
        assert sum(map(len, engine.batches)) + store.statistics().queued == QUEUED_WRITES
        engine.gate.set()
    assert store.statistics().writes == QUEUED_WRITES + 1


@pytest.mark.parametrize("engine_name", ["sqlite", "files"])
@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EROFS])
async def test_a_failed_commit_fails_its_batch_and_the_next_one_works(
    tmp_path: Path, engine_name: Any, number: int
) -> None:
    faults = Faults()
    config = StoreConfig(tmp_path, engine_name)
    opened = open_store(config, clock=TrioClock(), engine=lambda: open_lab_engine(engine_name, tmp_path, faults))
    async with opened as store:
        await store.put_document(CHAT, {"n": 1})
        await store.create_session(S1, {})
        await store.append_events(S1, 0, [{"type": "a", "seq": 0}])
        faults.statements["COMMIT"] = number
        for write in (store.put_document(CHAT, {"n": 2}), store.append_events(S1, 1, [{"type": "b", "seq": 1}])):
            with pytest.raises(CommitFailed):
                await write
        found = await store.document(CHAT)
        assert found is not None
        assert found.value == {"n": 1}
        assert await store.events(S1) == ({"type": "a", "seq": 0},)
        faults.statements.clear()
        await store.append_events(S1, 1, [{"type": "c", "seq": 1}])
        await store.put_document(CHAT, {"n": 3}, base=found.revision)
        assert await store.check() == ()
        assert store.statistics().failures == 2
    async with open_store(config, clock=TrioClock()) as store:
        assert [event["type"] for event in await store.events(S1)] == ["a", "c"]


async def test_a_fault_in_mid_burst_loses_nothing_acknowledged(tmp_path: Path) -> None:
    faults = Faults()
    acknowledged: list[str] = []

    async def writer(store: Store, number: int) -> None:
        for turn in range(10):
            name = f"{number}-{turn}"
            while name not in acknowledged:
                try:
                    await store.put_document(DocumentKey("chats", name), {"n": name})
                    acknowledged.append(name)
                except CommitFailed:
                    await trio.lowlevel.checkpoint()

    async def breaker() -> None:
        for word in ("COMMIT", "INSERT", "RELEASE", "BEGIN", "SAVEPOINT"):
            faults.statements[word] = errno.EIO
            await trio.sleep(0.002)
            faults.statements.clear()
            await trio.sleep(0.002)

    opened = open_store(
        StoreConfig(tmp_path), clock=TrioClock(), engine=lambda: open_lab_engine("sqlite", tmp_path, faults)
    )
    async with opened as store:
        async with trio.open_nursery() as nursery:
            for number in range(8):
                nursery.start_soon(writer, store, number)
            nursery.start_soon(breaker)
        assert store.statistics().failures > 0
    async with open_store(StoreConfig(tmp_path), clock=TrioClock()) as store:
        assert {document.key.name for document in await store.documents("chats")} == set(acknowledged)
        assert len(acknowledged) == 80
        assert await store.check() == ()


async def test_idle_moments_move_the_wal_into_the_file(tmp_path: Path, autojump_clock: trio.testing.MockClock) -> None:
    # Virtual time passes while a real thread works, so the threads are simulated, too.
    with simulated_threads(lambda pool: (0.0, 0.0)):
        async with open_store(StoreConfig(tmp_path), clock=TrioClock()) as store:
            await store.put_document(CHAT, {"pad": "x" * 500_000})
            assert (tmp_path / "tapster.db").stat().st_size < 500_000
            await trio.sleep(60)
            with trio.fail_after(600):
                while (tmp_path / "tapster.db").stat().st_size < 500_000:
                    await trio.sleep(1)


async def test_detail_reads_do_not_grow_with_the_session(tmp_path: Path) -> None:
    async with open_store(StoreConfig(tmp_path), clock=TrioClock()) as store:
        await store.create_session(S1, {})
        events = [{"type": "note", "seq": seq, "data": "x" * 100} for seq in range(20_000)]
        await store.append_events(S1, 0, events)
        steps = await store.read(lambda tables: _steps(tables, lambda: tables.sessions.read(S1, 19_990)))
        early = await store.read(lambda tables: _steps(tables, lambda: tables.sessions.read(S1, 10, 10)))
        latest = await store.read(lambda tables: _steps(tables, lambda: tables.sessions.latest(S1, "note")))
    assert max(steps, early, latest) < 1_000


def _steps(tables: Any, question: Any) -> int:
    """SQLite's own count of virtual machine steps, in tens."""
    taken = 0

    def count() -> int:
        nonlocal taken
        taken += 10
        return 0

    connection = tables.sessions._connection
    connection.set_progress_handler(count, 10)
    question()
    connection.set_progress_handler(None, 10)
    return taken


async def test_writers_that_a_commit_woke_share_the_next_one(tmp_path: Path) -> None:
    async def write_thrice(store: Store, name: str) -> None:
        for _ in range(3):
            await put(store, name)

    async with open_store(StoreConfig(tmp_path), clock=TrioClock()) as store:
        async with trio.open_nursery() as nursery:
            for number in range(40):
                nursery.start_soon(write_thrice, store, str(number))
        assert (store.statistics().writes, store.statistics().commits) == (120, 3)
