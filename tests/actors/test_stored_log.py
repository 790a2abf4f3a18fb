"""Session logs in a real database: atomic beginnings, repeats passed over, gaps and divergence refused."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import pytest

from tapster.actors.hosts.port import SessionExists, SessionNotFound
from tapster.actors.hosts.stored_log import StoredSessionLog
from tapster.actors.store import LogDiverged, LogGap, StoreConfig, open_store
from tapster.engine.projection import Event, SessionHeader
from tests.support.hosts import TrioClock

HEADER = SessionHeader("s", 1000)


def events(*texts: str, first: int = 0) -> list[Event]:
    return [Event("turn/start", first + index, 5, {"text": text}) for index, text in enumerate(texts)]


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
