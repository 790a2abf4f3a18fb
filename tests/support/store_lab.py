"""Stores that fail on demand and processes that die at a chosen byte, for the store's fault and crash tests.

Nothing here is reachable from the product: faults come in by the seams that the engines have for embedding programs
(how a connection is opened, how a folder's files are read), kills by a child process of the test.
"""

import errno
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, NoReturn, cast

import attrs
import msgspec

from tapster.actors.store import Engine, FilesEngine, Keyed, SqliteEngine
from tapster.actors.store.files.atomic import AtomicWriter
from tapster.actors.store.files.disk import Disk
from tapster.actors.store.interface import Outcome
from tapster.actors.store.sqlite import connect

Point = Literal["before_first_byte", "half_written", "all_written", "synced"]
SQLITE_CODES = {
    errno.EIO: (sqlite3.SQLITE_IOERR_READ, "SQLITE_IOERR_READ"),
    errno.ENOSPC: (sqlite3.SQLITE_FULL, "SQLITE_FULL"),
    errno.EROFS: (sqlite3.SQLITE_READONLY, "SQLITE_READONLY"),
    errno.EACCES: (sqlite3.SQLITE_CANTOPEN, "SQLITE_CANTOPEN"),
}


def sqlite_error(number: int) -> sqlite3.OperationalError:
    """What SQLite raises when the system answers with an errno."""
    code, name = SQLITE_CODES.get(number, (sqlite3.SQLITE_IOERR, "SQLITE_IOERR"))
    error = sqlite3.OperationalError(os.strerror(number))
    error.sqlite_errorcode = code
    error.sqlite_errorname = name
    return error


class Faults:
    """What fails now: reads of documents by name, and the writer's statements by their first word."""

    def __init__(self) -> None:
        self.reads: dict[str, int] = {}
        self.statements: dict[str, int] = {}
        self.commits = 0

    def connect(self, path: Path, *, read_only: bool) -> sqlite3.Connection:
        """As the product's ``connect``, with these faults."""
        wrapped: Any = FaultyConnection(connect(path, read_only=read_only), self, read_only)
        return cast(sqlite3.Connection, wrapped)

    def disk(self, root: Path, writer: AtomicWriter) -> Disk:
        """As the product's ``Disk``, with these faults."""
        return FaultyDisk(root, writer, self)


class FaultyConnection:
    """A connection that raises what the faults say, and otherwise does the real thing."""

    def __init__(self, real: sqlite3.Connection, faults: Faults, read_only: bool) -> None:
        self._real = real
        self._faults = faults
        self._read_only = read_only

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> sqlite3.Cursor:
        if self._read_only and sql.startswith("SELECT body"):
            for name, number in self._faults.reads.items():
                if name in parameters:
                    raise sqlite_error(number)
        word = sql.split(maxsplit=1)[0]
        if not self._read_only:
            self._faults.commits += word == "COMMIT"
            if word in self._faults.statements:
                raise sqlite_error(self._faults.statements[word])
        return self._real.execute(sql, parameters)


@attrs.frozen
class FaultyDisk(Disk):
    """A folder whose reads or writes fail as the faults say."""

    faults: Faults

    def read(self, path: Path) -> bytes | None:
        if path.stem in self.faults.reads and path.exists():
            number = self.faults.reads[path.stem]
            raise OSError(number, os.strerror(number), str(path))
        return Disk.read(self, path)

    def apply(self, changes: Any) -> None:
        number = self.faults.statements.get("COMMIT")
        if number is not None:
            raise OSError(number, os.strerror(number), str(self.root))
        Disk.apply(self, changes)


def open_lab_engine(name: str, folder: Path, faults: Faults | None = None) -> Engine:
    """A durable engine by name, with faults."""
    faults = faults or Faults()
    if name == "files":
        return FilesEngine(folder, disk=faults.disk)
    return SqliteEngine(folder / "tapster.db", connect=faults.connect)


class DyingEngine:
    """An engine whose process is killed at a point of its next commit."""

    def __init__(self, open_real: Callable[[], Engine], measure: Callable[[Sequence[Keyed], int], int], point: Point):
        self._real = open_real()
        self._measure = measure
        self._point = point

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def commit(self, batch: Sequence[Keyed], now: int) -> list[Outcome]:
        if self._point == "before_first_byte":
            die()
        if self._point == "half_written":
            limit_file_size(self._measure(batch, now))
        elif self._point == "all_written":
            os.fsync = die_at_sync  # type: ignore[assignment]
        self._real.commit(batch, now)
        die()


def die() -> NoReturn:
    """The process ends here and now, as by ``kill -9``."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("the process is dead")


def die_at_sync(descriptor: Any) -> None:
    """Stands in for ``os.fsync``: everything is written, nothing is synced."""
    die()


def limit_file_size(size_bytes: int) -> None:
    """The kernel ends the process, without a chance to clean up, at the first byte of any file beyond this size.

    Only after ``die_at_file_limit``.
    """
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, resource.RLIM_INFINITY))


def die_at_file_limit() -> None:
    """From now on going over the file-size limit is deadly, where Python makes it an error; for the main thread."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)


def dying_engine(name: str, folder: Path, point: Point) -> Engine:
    """The engine that a doomed child writes with."""

    def unsynced(path: Path, *, read_only: bool) -> sqlite3.Connection:
        # SQLite has no step between its last write and its sync that Python could stop at; without syncs, the return
        # of COMMIT is that moment: all bytes are with the system and none was forced to disk.
        connection = connect(path, read_only=read_only)
        if point == "all_written":
            connection.execute("PRAGMA synchronous = OFF")
        return connection

    def open_real() -> Engine:
        if name == "files":
            return FilesEngine(folder)
        return SqliteEngine(folder / "tapster.db", connect=unsynced)

    def half(batch: Sequence[Keyed], now: int) -> int:
        before, after = rehearse(name, folder, batch, now)
        return before + (after - before) // 2

    engine: Any = DyingEngine(open_real, half, point)
    return cast(Engine, engine)


def rehearse(name: str, folder: Path, batch: Sequence[Keyed], now: int) -> tuple[int, int]:
    """Size of the file that a batch's bytes go to, before and after it, found out on a copy of the folder."""
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place) / "copy"
        shutil.copytree(folder, copy)
        wal = copy / "tapster.db-wal"
        engine = FilesEngine(copy) if name == "files" else SqliteEngine(copy / "tapster.db")
        known = {path: path.stat().st_mtime_ns for path in copy.rglob("*.json")}
        before = wal.stat().st_size if wal.exists() else 0
        engine.commit(batch, now)
        if name != "files":
            after = wal.stat().st_size
        else:
            changed = [path for path in copy.rglob("*.json") if known.get(path) != path.stat().st_mtime_ns]
            before, after = 0, max(path.stat().st_size for path in changed)
        engine.close()
        return before, after


def write_in_doomed_child(engine: str, folder: Path, document: str, value: Any, base: Any, point: Point) -> bool:
    """Write a document in a process that dies at the point; whether it died there."""
    order = msgspec.msgpack.encode([engine, str(folder), document, value, base, point])
    child = subprocess.run(
        [sys.executable, "-m", "tests.support.store_child"], input=order, check=False, stdout=subprocess.PIPE
    )
    return child.returncode in (-signal.SIGKILL, -signal.SIGXFSZ) and child.stdout == b""
