"""The database file: permissions, one writer, foreign and damaged files, migrations with a backup, restore."""

import errno
import os
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tapster.actors.store import (
    AppendEvents,
    CreateSession,
    DocumentKey,
    FilesEngine,
    Keyed,
    PutDocument,
    PutResource,
    PutTrace,
    Retention,
    SessionKey,
    SqliteEngine,
    StoreCorrupt,
    StoreLocked,
    StoreTooNew,
    Write,
)
from tapster.actors.store.sqlite.connection import connect
from tapster.actors.store.sqlite.migrations import migrate
from tapster.actors.store.sqlite.schema import APPLICATION_ID, MIGRATIONS
from tapster.actors.store.sqlite.tables import SqliteTables
from tests.actors.store.conftest import open_named

CHAT = DocumentKey("chats", "chat-1")


def write(path: Path, value: object) -> None:
    engine = SqliteEngine(path)
    engine.commit([Keyed(PutDocument(CHAT, value, 1))], 1)
    engine.close()


@pytest.mark.parametrize("name", ["sqlite", "files"])
def test_every_file_is_for_its_owner_alone(tmp_path: Path, name: str) -> None:
    engine = open_named(name, tmp_path / "data")
    engine.commit([Keyed(PutDocument(CHAT, {"n": 1}, 1))], 1)
    with engine.read():
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "data").rglob("*")}
    assert {mode for file, mode in modes.items() if "." in file} == {0o600}
    assert modes.get("chats", 0o700) == 0o700
    engine.close()


@pytest.mark.parametrize("name", ["sqlite", "files"])
def test_a_second_process_is_refused(tmp_path: Path, name: str) -> None:
    code = (
        "import sys; from pathlib import Path; from tests.actors.store.conftest import open_named\n"
        "try: open_named(sys.argv[1], Path(sys.argv[2]))\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    engine = open_named(name, tmp_path)
    run = [sys.executable, "-c", code, name, str(tmp_path)]
    refused = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    assert refused.startswith("StoreLocked")
    assert "is locked by process" in refused
    with pytest.raises(StoreLocked):
        open_named(name, tmp_path)
    engine.close()
    assert subprocess.run(run, capture_output=True, text=True, check=True).stdout == ""


@pytest.mark.parametrize("damage", ["text", "half", "page"])
def test_a_damaged_file_is_refused_named_and_left_alone(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "tapster.db"
    write(path, {"pad": "x" * 100_000})
    good = path.read_bytes()
    bad = {
        "text": b"this is not a database" * 100,
        "half": good[: len(good) // 2 // 4096 * 4096],
        "page": good[:4096] + b"\xff" * 8192 + good[12288:],
    }[damage]
    path.write_bytes(bad)
    with pytest.raises(StoreCorrupt, match=r"tapster\.db"):
        SqliteEngine(path)
    assert path.read_bytes() == bad
    path.write_bytes(good)
    SqliteEngine(path).close()


def test_another_programs_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tapster.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE mine (x)")
    other.close()
    with pytest.raises(StoreCorrupt, match="another program"):
        SqliteEngine(path)


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tapster.db"
    write(path, {})
    with sqlite3.connect(path) as newer:
        newer.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    newer.close()
    with pytest.raises(StoreTooNew, match="upgrade"):
        SqliteEngine(path)


def test_a_migration_makes_a_backup_first_and_is_one_step(tmp_path: Path) -> None:
    path = tmp_path / "tapster.db"
    write(path, {"n": 1})
    later = (*MIGRATIONS, "CREATE TABLE more (x); INSERT INTO more VALUES (1);")
    connection = connect(path, read_only=False)
    backup = migrate(connection, path, later)
    assert backup is not None
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    assert connection.execute("PRAGMA user_version").fetchone()[0] == len(later)
    with pytest.raises(sqlite3.OperationalError):
        migrate(connection, path, (*later, "CREATE TABLE third (x); CREATE TABLE more (x);"))
    connection.execute("ROLLBACK")
    assert connection.execute("PRAGMA user_version").fetchone()[0] == len(later)
    assert connection.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'third'").fetchone()[0] == 0
    connection.close()
    backup.replace(path)
    for name in ("tapster.db-wal", "tapster.db-shm"):
        (tmp_path / name).unlink(missing_ok=True)
    engine = SqliteEngine(path)
    with engine.read() as tables:
        assert tables.documents.get(CHAT) is not None
    engine.close()


def test_a_file_of_version_1_is_brought_up_to_date_with_a_copy_kept(tmp_path: Path) -> None:
    path = tmp_path / "tapster.db"
    first = connect(path, read_only=False)
    assert migrate(first, path, MIGRATIONS[:1]) is None
    tables = SqliteTables(first, Retention())
    key = SessionKey("embedded", "s")
    writes: list[Write[Any]] = [
        PutDocument(CHAT, {"n": 1}, 1),
        PutResource("preset", "p", {"name": "P"}, 1, b"original"),
        CreateSession(key, {"id": "s"}, 1),
        AppendEvents(key, 0, [{"type": "a", "seq": 0}], 1),
        PutTrace(key, {"schemaVersion": 4, "id": "t", "recordedAt": 5}),
    ]
    for each in writes:
        each.apply(tables)
    first.close()
    old = path.read_bytes()
    engine = SqliteEngine(path)
    with engine.read() as now:
        assert now.documents.get(CHAT) is not None
        assert now.resources.original("preset", "p") == b"original"
        assert now.sessions.read(key) == ({"type": "a", "seq": 0},)
        assert now.traces.get(key, "t") is not None
    assert engine.check() == ()
    engine.close()
    with closing(sqlite3.connect(path)) as after:
        assert after.execute("PRAGMA user_version").fetchone()[0] == len(MIGRATIONS)
        assert after.execute("SELECT 1 FROM sqlite_schema WHERE name = 'traces_by_age'").fetchone() is not None
    kept = tmp_path / "tapster.db.schema-1.bak"
    with closing(sqlite3.connect(kept)) as before:
        assert before.execute("PRAGMA user_version").fetchone()[0] == 1
        assert before.execute("SELECT count(*) FROM traces").fetchone()[0] == 1
    SqliteEngine(path).close()
    path.write_bytes(old)
    SqliteEngine(path).close()


def test_a_file_that_another_program_locks_is_waited_for_and_then_named(tmp_path: Path) -> None:
    path = tmp_path / "tapster.db"

    def impatient(path: Path, *, read_only: bool) -> sqlite3.Connection:
        connection = connect(path, read_only=read_only)
        connection.execute("PRAGMA busy_timeout = 20").fetchone()
        return connection

    engine = SqliteEngine(path, connect=impatient)
    engine.commit([Keyed(PutDocument(CHAT, {"n": 1}, 1))], 1)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        for _ in range(2):
            with pytest.raises(StoreLocked, match="another process"):
                engine.commit([Keyed(PutDocument(CHAT, {"n": 2}, 1))], 1)
        with engine.read() as tables:
            found = tables.documents.get(CHAT)
        assert found is not None
        assert found.value == {"n": 1}
        other.execute("ROLLBACK")
    engine.commit([Keyed(PutDocument(CHAT, {"n": 3}, 1))], 1)
    assert engine.check() == ()
    engine.close()


def test_the_settings_of_the_writer(tmp_path: Path) -> None:
    write(tmp_path / "tapster.db", {})
    connection = connect(tmp_path / "tapster.db", read_only=False)
    wanted = {"journal_mode": "wal", "synchronous": 2, "application_id": APPLICATION_ID, "foreign_keys": 1}
    assert {name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in wanted} == wanted
    connection.close()


def test_an_interrupted_change_of_several_files_is_completed(tmp_path: Path) -> None:
    from tapster.actors.store.files.disk import Disk

    class Stopping(Disk):
        def _apply_one(self, path: Path, change: object, prepared: Path | None = None) -> None:
            if path.name == "chat-2.json":
                raise OSError(5, "the machine stops here", str(path))
            Disk._apply_one(self, path, change, prepared)  # type: ignore[arg-type]

    engine = FilesEngine(tmp_path, disk=Stopping)
    batch = [Keyed(PutDocument(DocumentKey("chats", f"chat-{number}"), {"n": number}, 1)) for number in range(4)]
    with pytest.raises(Exception, match="the machine stops here"):
        engine.commit(batch, 1)
    engine.close()
    assert (tmp_path / "chats" / "chat-1.json").exists()
    assert not (tmp_path / "chats" / "chat-3.json").exists()
    engine = FilesEngine(tmp_path)
    with engine.read() as tables:
        assert len(list(tables.documents.items("chats"))) == 4
    engine.close()


def test_a_commit_stands_although_nobody_can_look_at_the_wal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = SqliteEngine(tmp_path / "x.db")
    key = SessionKey("h", "s")
    engine.commit([Keyed(CreateSession(key, {}, 1))], 1)

    def no_descriptor(*_: object) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(os, "open", no_descriptor)
    engine.commit([Keyed(AppendEvents(key, 0, [{"type": "note", "seq": 0, "data": {}}], 1))], 1)
    assert not engine.is_behind
    monkeypatch.undo()
    with engine.read() as tables:
        assert len(tables.sessions.read(key)) == 1
    engine.close()
