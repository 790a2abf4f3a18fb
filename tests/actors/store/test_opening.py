"""A data folder that can't be opened, or opened again: a declared error that says what would help, never another."""

import errno
import fcntl
import os
import sqlite3
from pathlib import Path

import pytest

from tapster.actors.store import CommitFailed, DocumentKey, StoreConfig, StoreUnusable, open_engine, open_store
from tapster.actors.store.lock import WriterLock
from tapster.actors.store.sqlite import SqliteEngine
from tests.support.hosts import TrioClock
from tests.support.store_lab import Faults

ENGINES = ("sqlite", "files")


def config(name: str, folder: Path) -> StoreConfig:
    return StoreConfig(folder, "sqlite" if name == "sqlite" else "files")


def refuse(number: int) -> OSError:
    return OSError(number, os.strerror(number))


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EIO, errno.EINVAL])
def test_a_file_system_without_locks_is_not_called_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, number: int
) -> None:
    def flock(descriptor: int, operation: int) -> None:
        raise refuse(number)

    monkeypatch.setattr(fcntl, "flock", flock)
    before = len(os.listdir("/dev/fd"))
    with pytest.raises(StoreUnusable, match=r"lock: it can't be locked .* choose another folder"):
        open_engine(config(name, tmp_path))
    assert len(os.listdir("/dev/fd")) == before


def test_a_full_disk_keeps_nobody_from_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def pwrite(descriptor: int, data: bytes, offset: int) -> int:
        raise refuse(errno.ENOSPC)

    monkeypatch.setattr(os, "pwrite", pwrite)
    WriterLock(tmp_path / "lock").release()


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.ENOSPC, "free some space"),
        (errno.EDQUOT, "free some space"),
        (errno.EROFS, "let this user read and write"),
        (errno.EACCES, "let this user read and write"),
        (errno.EIO, "choose another folder"),
    ],
)
@pytest.mark.parametrize("name", ENGINES)
def test_what_would_help_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, number: int, remedy: str
) -> None:
    def make(path: Path, mode: int = 0, parents: bool = False, exist_ok: bool = False) -> None:
        raise OSError(number, os.strerror(number), str(path))

    monkeypatch.setattr(Path, "mkdir", make)
    with pytest.raises(StoreUnusable, match=remedy) as caught:
        open_engine(config(name, tmp_path / "data"))
    assert str(tmp_path / "data") in caught.value.message
    assert caught.value.details == {"errno": number}


async def test_a_database_that_cannot_be_opened_again_fails_the_write_and_not_the_store(tmp_path: Path) -> None:
    faults, is_shut = Faults(), False

    def connect(path: Path, *, read_only: bool) -> sqlite3.Connection:
        if is_shut and not read_only:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), str(path))
        return faults.connect(path, read_only=read_only)

    engine = SqliteEngine(tmp_path / "tapster.db", connect=connect)
    async with open_store(StoreConfig(tmp_path), clock=TrioClock(), engine=lambda: engine) as store:
        key = DocumentKey("chats", "c")
        faults.statements["COMMIT"] = errno.EIO
        with pytest.raises(CommitFailed):
            await store.put_document(key, {"n": 1})
        faults.statements.clear()
        is_shut = True
        for _ in range(2):
            with pytest.raises(CommitFailed, match="Too many open files"):
                await store.put_document(key, {"n": 2})
        is_shut = False
        await store.put_document(key, {"n": 3})
        found = await store.document(key)
        assert found is not None
        assert found.value == {"n": 3}
