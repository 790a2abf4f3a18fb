"""Session logs in a real database: atomic beginnings, repeats passed over, gaps and divergence refused."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest

from tapster.actors.hosts.embedded.session import EmbeddedSession
from tapster.actors.hosts.port import MemorySessionLog, Page, SessionExists, SessionLog, SessionNotFound
from tapster.actors.hosts.stored_log import BeginLog, StoredSessionLog
from tapster.actors.providers import Providers
from tapster.actors.store import LogDiverged, LogGap, SessionKey, StoreConfig, Tables, open_store
from tapster.actors.store.opening import EngineName
from tapster.engine.errors import RequestError
from tapster.engine.projection import Event, SessionHeader
from tests.support.hosts import TrioClock

HEADER = SessionHeader("s", 1000)


def events(*texts: str, first: int = 0) -> list[Event]:
    return [Event("turn/start", first + index, 5, {"turn": 1, "text": text}) for index, text in enumerate(texts)]


@asynccontextmanager
async def open_log(directory: Path) -> AsyncIterator[StoredSessionLog]:
    async with open_store(StoreConfig(directory), clock=TrioClock()) as store:
        yield StoredSessionLog(store)


async def test_a_log_comes_back_as_it_was_written(tmp_path: Path) -> None:
    async with open_log(tmp_path) as log:
        await log.create(HEADER, events("钟", "b"))
        await log.append("s", events("c", first=2))
    async with open_log(tmp_path) as log:
        logged = await log.read("s")
        assert logged.header == HEADER
        assert [event.data["text"] for event in logged.events] == ["钟", "b", "c"]
        assert [header.id for header in await log.headers()] == ["s"]


async def test_what_is_stored_already_is_passed_over(tmp_path: Path) -> None:
    async with open_log(tmp_path) as log:
        await log.create(HEADER, events("a"))
        await log.append("s", events("a", "b"))
        await log.append("s", events("a", "b"))
        assert len((await log.read("s")).events) == 2
        with pytest.raises(LogDiverged):
            await log.append("s", events("other", first=1))
        with pytest.raises(LogGap):
            await log.append("s", events("late", first=7))
        assert len((await log.read("s")).events) == 2


async def test_ids_are_taken_once_and_missing_ones_are_named(tmp_path: Path) -> None:
    async with open_log(tmp_path) as log:
        await log.create(HEADER, [])
        with pytest.raises(SessionExists):
            await log.create(attrs.evolve(HEADER, created_at=2), events("x"))
        assert (await log.read("s")).events == ()
        with pytest.raises(SessionNotFound):
            await log.append("none", events("x"))
        with pytest.raises(SessionNotFound):
            await log.read("none")


class CountedTables:
    """Tables that note what a write does to session logs."""

    def __init__(self, real: Tables) -> None:
        self.sessions: Any = CountedLogs(real.sessions)


class CountedLogs:
    def __init__(self, real: Any) -> None:
        self._real = real
        self.appended = 0
        self.copied = 0
        self.read_events = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def append(self, key: SessionKey, first_seq: int, given: Any, *, now: int) -> int:
        self.appended += len(given)
        return int(self._real.append(key, first_seq, given, now=now))

    def copy_events(self, source: SessionKey, target: SessionKey, through_seq: int, *, now: int) -> int:
        self.copied += through_seq + 1
        return int(self._real.copy_events(source, target, through_seq, now=now))

    def read(self, key: SessionKey, since: int = 0, limit: int | None = None) -> Any:
        found = self._real.read(key, since, limit)
        self.read_events += len(found)
        return found


@pytest.mark.parametrize("engine", ["sqlite", "files", "memory"])
async def test_a_fork_copies_its_seed_inside_the_store(tmp_path: Path, engine: EngineName) -> None:
    parent = events(*"abcdef")
    child = attrs.evolve(HEADER, id="child", parent_session="s", seed_length=4, is_seeded=True)
    begun = (*parent[:4], *events("mine", first=4))
    async with open_store(StoreConfig(tmp_path, engine), clock=TrioClock()) as store:
        log = StoredSessionLog(store)
        await log.create(HEADER, parent)
        seen: list[CountedLogs] = []

        class Counting:
            def apply(self, tables: Tables) -> int:
                counted: Any = CountedTables(tables)
                seen.append(counted.sessions)
                return BeginLog(SessionKey("embedded", "child"), child, begun, 5).apply(counted)

            def repeat(self, tables: Tables) -> int:
                raise AssertionError("it has no key")

        assert await store.write(Counting()) == 5
        assert (seen[0].copied, seen[0].appended, seen[0].read_events) == (4, 1, 1)
        assert (await log.read("child")).events == begun
        other = attrs.evolve(child, id="other")
        diverged = tuple(events(*"abcX"))
        await log.create(other, diverged)
        assert (await log.read("other")).events == diverged, "a seed that isn't the parent's is written as given"
        orphan = attrs.evolve(child, id="orphan", parent_session="gone")
        await log.create(orphan, begun)
        assert (await log.read("orphan")).events == begun


@pytest.mark.parametrize("kind", ["memory", "stored"])
async def test_reads_take_only_what_they_need(tmp_path: Path, kind: str) -> None:
    written = events(*"abcdef")
    async with open_log(tmp_path) as stored:
        log: SessionLog = stored if kind == "stored" else MemorySessionLog()
        await log.create(HEADER, written)
        assert (await log.read("s", limit=0)).events == ()
        assert (await log.read("s", 2, 3)).events == tuple(written[2:5])
        assert await log.page("s", None, 2) == Page(tuple(written[4:]), has_more=True)
        assert await log.page("s", 2, 5) == Page(tuple(written[:2]), has_more=False)
        assert await log.page("s", 99, 1) == Page(tuple(written[5:]), has_more=True)
        with pytest.raises(RequestError, match="at least one"):
            await log.page("s", None, 0)
        with pytest.raises(SessionNotFound):
            await log.page("none", None, 1)
        session = EmbeddedSession("s", log, Providers({}), lambda: None)
        assert (await session.inspect(through=2)).events == tuple(written[:3])
        assert (await session.inspect(through=5)).events == tuple(written)
        assert len((await session.inspect(through=6)).events) == 7, "what a resume would close comes after the stored"
        assert (await session.inspect()).events[:6] == tuple(written)
        assert (await session.header()).id == "s"
        forked = attrs.evolve(HEADER, id="fork", parent_session="s", seed_length=4, is_seeded=True)
        await log.create(forked, written)
        child = EmbeddedSession("fork", log, Providers({}), lambda: None)
        assert await child.own_events() == tuple(written[4:])
        assert await child.own_events(5) == tuple(written[5:])
