"""Connections to the database file, and what SQLite's errors mean to us."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol

from tapster.actors.store.errors import CommitFailed, ReadFailed, StoreCorrupt, StoreLocked, StoreUnusable
from tapster.engine.errors import StoreError

from .wal import WAL_KEPT_BYTES

BUSY_TIMEOUT_MS: Final = 5_000
CACHE_KIB: Final = 4_096
"""Of each connection, six in all: what they hold grows with the file until it is full, so it counts as memory."""
_CORRUPT: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_WORDS: Final = {
    sqlite3.SQLITE_FULL: "the disk is full: free some space",
    sqlite3.SQLITE_READONLY: "the file or its disk is read-only",
    sqlite3.SQLITE_IOERR: "the disk reports an error",
    sqlite3.SQLITE_BUSY: "another process holds the file",
    sqlite3.SQLITE_CANTOPEN: "the file can't be opened: is this user allowed to read and write it?",
}


class Connect(Protocol):
    """Opens a connection; tests give one that counts, fails or kills at a chosen statement."""

    def __call__(self, path: Path, *, read_only: bool) -> sqlite3.Connection: ...


def connect(path: Path, *, read_only: bool) -> sqlite3.Connection:
    """A connection in autocommit mode with the store's settings; a new file gets mode 0600."""
    if not read_only and not path.exists():
        # Only a file that isn't there: closing any descriptor of an open database drops SQLite's locks on it.
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    uri = f"{path.resolve().as_uri()}?mode={'ro' if read_only else 'rw'}"
    connection = sqlite3.connect(
        uri, uri=True, isolation_level=None, check_same_thread=False, timeout=BUSY_TIMEOUT_MS / 1000
    )
    connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
    connection.execute("PRAGMA foreign_keys = ON")
    if not read_only:
        connection.execute("PRAGMA journal_mode = WAL").fetchone()
        connection.execute("PRAGMA synchronous = FULL")
        # Never inside a commit: the engine does it beside them.
        connection.execute("PRAGMA wal_autocheckpoint = 0").fetchone()
        connection.execute(f"PRAGMA journal_size_limit = {WAL_KEPT_BYTES}").fetchone()
    return connection


def explain(error: sqlite3.Error | OSError, path: Path, doing: str) -> str:
    """One sentence: what failed, on which file, and what to do."""
    if isinstance(error, OSError):
        return f"{doing} {path.name} failed: {error.strerror or error}"
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_IOERR and _is_full(path.parent):
        # What SQLite says when there is no room for the WAL's index.
        code = sqlite3.SQLITE_FULL
    return f"{doing} {path.name} failed: {_WORDS.get(code, str(error))}"


def _is_full(folder: Path) -> bool:
    try:
        return os.statvfs(folder).f_bavail == 0
    except OSError:
        return False


def as_store_error(error: sqlite3.Error | OSError, path: Path, doing: str) -> StoreError:
    """An error of SQLite or of its file as one of ours."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in _CORRUPT:
        return StoreCorrupt(
            f"{path.name} is damaged ({error}); nothing was changed: restore a backup or move the file away"
        )
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreLocked(explain(error, path, doing))
    if doing == "opening":
        return StoreUnusable(f"{explain(error, path, doing)}; the data folder is {path.parent}")
    kind = ReadFailed if doing == "reading" else CommitFailed
    return kind(explain(error, path, doing), details={"reason": getattr(error, "sqlite_errorname", str(error))})


@contextmanager
def translated(path: Path, doing: str) -> Iterator[None]:
    """Raise our errors for SQLite's and the file system's."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise as_store_error(error, path, doing) from error
