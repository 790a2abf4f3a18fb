"""The SQLite engine: one file, one writing connection, a small pool of reading ones."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final, Literal, final

from tapster.actors.store.errors import CommitFailed, StoreCorrupt, unstorable
from tapster.actors.store.interface import Done, EngineInfo, Keyed, Outcome, Refused, Tables
from tapster.actors.store.lock import WriterLock
from tapster.actors.store.retention import Retention
from tapster.actors.store.values import Warned
from tapster.actors.store.writes import SweepTraces
from tapster.engine.errors import TapsterError

from .connection import Connect, connect, translated
from .migrations import copy_to, migrate, open_checked
from .tables import SqliteTables
from .wal import WalGauge

KEPT_KEYS: Final = 65_536
"""Idempotency keys remembered; a caller repeats a write within seconds, not after this many others."""
SWEPT_ROWS: Final = 256
"""Trace records dropped in one transaction of the background retention."""
CHECKED_BYTES: Final = 64 * 1024 * 1024
"""A database up to this size is checked whole at the start; a larger one on demand, so that a start stays quick."""
PASSES: Final = 3
"""Times that the WAL is moved beside the commits before the rest is moved between two of them."""
_REFUSALS: Final = (TapsterError, UnicodeEncodeError, OverflowError)
"""What ends one write and not its batch."""


@final
class SqliteEngine:
    """Opens (and makes) the database; the writer is used by one thread at a time."""

    def __init__(self, path: Path, *, retention: Retention | None = None, connect: Connect = connect) -> None:
        """Take the writer's lock, check the file, bring its schema up to date.

        Raises:
            StoreLocked: another process has it.
            StoreUnusable: it can't be opened.
            StoreCorrupt, StoreTooNew: it can't be used; it is left as it was.
        """
        self._path = path
        self._connect = connect
        self._retention = retention or Retention()
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = WriterLock(path.with_name(path.name + ".lock"))
        self._readers: SimpleQueue[sqlite3.Connection] = SimpleQueue()
        self._is_closed = False
        self._checkpointer: sqlite3.Connection | None = None
        self._wal = WalGauge(path)
        self._is_behind = False
        try:
            self._writer: sqlite3.Connection | None = self._open_writer("opening")
            try:
                self._anchor = self._open_anchor()
            except BaseException:
                self._discard_writer()
                raise
        except BaseException:
            self._lock.release()
            raise

    @property
    def info(self) -> EngineInfo:
        """Engine, file and durability."""
        return EngineInfo("sqlite", str(self._path), "WAL, synchronous=FULL")

    @property
    def warnings(self) -> tuple[Warned, ...]:
        """None: a damaged database is refused, never opened in part."""
        return ()

    def commit(self, batch: Sequence[Keyed], now: int) -> list[Outcome]:
        """Apply the batch in one transaction with one fsync; a write that is refused is undone alone."""
        if self._writer is None:
            self._writer = self._open_writer("opening again")
        try:
            with translated(self._path, "writing"):
                outcomes = self._transact(self._writer, batch, now)
        except BaseException:
            # What the connection holds is unknown now: the next batch opens it afresh and finds what is durable.
            self._discard_writer()
            raise
        self._is_behind = self._wal.is_past_mark()
        return outcomes

    @contextmanager
    def read(self) -> Iterator[Tables]:
        """A snapshot on a reading connection of its own."""
        connection = self._borrow()
        try:
            with translated(self._path, "reading"):
                connection.execute("BEGIN")
                yield SqliteTables(connection, self._retention)
                connection.execute("COMMIT")
        except (UnicodeEncodeError, OverflowError) as error:
            connection.close()
            raise unstorable(error) from error
        except BaseException:
            connection.close()
            raise
        if self._is_closed:
            connection.close()
        else:
            self._readers.put(connection)

    def tidy(self, now: int) -> None:
        """Drop traces beyond retention, forget old idempotency keys, and move the WAL into the file."""
        if self._writer is None:
            return
        try:
            with translated(self._path, "tidying"):
                while self._transact(self._writer, [Keyed(SweepTraces(now, SWEPT_ROWS))], now) == [Done(SWEPT_ROWS)]:
                    pass
                self._writer.execute(
                    "DELETE FROM applied WHERE key IN (SELECT key FROM applied ORDER BY at DESC LIMIT -1 OFFSET ?)",
                    (KEPT_KEYS,),
                )
                self._writer.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        except BaseException:
            # A transaction may be open still, and would fail the next batch.
            self._discard_writer()
            raise

    @property
    def is_behind(self) -> bool:
        """Whether the WAL has grown enough to be moved into the file."""
        return self._is_behind

    def catch_up(self, *, beside: bool) -> None:
        """Move the WAL into the file: most of it beside the commits, then what they added meanwhile.

        Only when all of it is moved between two commits does the next one begin the WAL anew.
        """
        with translated(self._path, "checkpointing"):
            if beside:
                if self._checkpointer is None:
                    self._checkpointer = self._connect(self._path, read_only=False)
                # Each time moves what was added during the one before, so that little is left for between two commits.
                for _ in range(PASSES):
                    self._checkpointer.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            elif self._writer is not None:
                self._writer.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
                self._wal.move_mark()
                self._is_behind = False

    def check(self) -> tuple[str, ...]:
        """``PRAGMA integrity_check`` and the foreign keys."""
        with translated(self._path, "checking"):
            connection = self._connect(self._path, read_only=True)
            try:
                found = [str(row[0]) for row in connection.execute("PRAGMA integrity_check")]
                broken = [
                    f"{row[0]} row {row[1]} names a missing {row[2]}"
                    for row in connection.execute("PRAGMA foreign_key_check")
                ]
            finally:
                connection.close()
        return (*(line for line in found if line != "ok"), *broken)

    def backup(self, target: str) -> None:
        """``VACUUM INTO`` a new file, mode 0600."""
        with translated(self._path, "backing up"):
            connection = self._connect(self._path, read_only=True)
            try:
                copy_to(connection, Path(target))
            finally:
                connection.close()

    def close(self) -> None:
        """Close every connection, which moves the WAL into the file, and release the lock."""
        self._is_closed = True
        while True:
            try:
                self._readers.get_nowait().close()
            except Empty:
                break
        self._anchor.close()
        if self._checkpointer is not None:
            self._checkpointer.close()
        self._discard_writer()
        self._lock.release()

    def _transact(self, writer: sqlite3.Connection, batch: Sequence[Keyed], now: int) -> list[Outcome]:
        tables = SqliteTables(writer, self._retention)
        writer.execute("BEGIN IMMEDIATE")
        try:
            outcomes: list[Outcome] = [Done(_answer(writer, tables, keyed, now)) for keyed in batch]
        except _REFUSALS:
            # Rare, so savepoints are paid for only now: every page that a write touches is copied for its own.
            writer.execute("ROLLBACK")
            writer.execute("BEGIN IMMEDIATE")
            outcomes = [_apply_alone(writer, tables, keyed, now) for keyed in batch]
        writer.execute("COMMIT")
        return outcomes

    def _open_anchor(self) -> sqlite3.Connection:
        """A reading connection that outlives the writer, so that a failed batch never comes back.

        While it has the WAL's index open, a new writer goes on behind the last durable commit. Without it the new
        writer would rebuild the index from the WAL file, where the frames of a commit whose sync failed may stand.
        """
        with translated(self._path, "opening"):
            anchor = self._connect(self._path, read_only=True)
            anchor.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        return anchor

    def _open_writer(self, doing: Literal["opening", "opening again"]) -> sqlite3.Connection:
        with translated(self._path, doing):
            writer = open_checked(self._connect, self._path)
            try:
                migrate(writer, self._path)
                is_checked = doing == "opening" and self._path.stat().st_size <= CHECKED_BYTES
                problem = writer.execute("PRAGMA quick_check(1)").fetchone()[0] if is_checked else "ok"
            except BaseException:
                writer.close()
                raise
        if problem != "ok":
            writer.close()
            raise StoreCorrupt(
                f"{self._path.name} is damaged ({problem}); nothing was changed: restore a backup or move it away"
            )
        return writer

    def _discard_writer(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            try:
                writer.close()
            except sqlite3.Error as error:
                raise CommitFailed(f"closing {self._path.name} failed: {error}") from error

    def _borrow(self) -> sqlite3.Connection:
        try:
            return self._readers.get_nowait()
        except Empty:
            with translated(self._path, "reading"):
                return self._connect(self._path, read_only=True)


def _apply_alone(writer: sqlite3.Connection, tables: Tables, keyed: Keyed, now: int) -> Outcome:
    writer.execute("SAVEPOINT one")
    try:
        value = _answer(writer, tables, keyed, now)
    except _REFUSALS as error:
        writer.execute("ROLLBACK TO one")
        writer.execute("RELEASE one")
        return Refused(error if isinstance(error, TapsterError) else unstorable(error))
    writer.execute("RELEASE one")
    return Done(value)


def _answer(writer: sqlite3.Connection, tables: Tables, keyed: Keyed, now: int) -> Any:
    if keyed.key is not None and not _first_time(writer, keyed.key, now):
        return keyed.write.repeat(tables)
    return keyed.write.apply(tables)


def _first_time(writer: sqlite3.Connection, key: str, now: int) -> bool:
    return writer.execute("INSERT OR IGNORE INTO applied (key, at) VALUES (?, ?)", (key, now)).rowcount > 0
