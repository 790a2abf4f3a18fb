"""Brings a database to the present schema: refuses what it doesn't know, copies before it changes."""

import os
import sqlite3
from pathlib import Path

from tapster.actors.store.errors import BackupFailed, StoreCorrupt, StoreTooNew
from tapster.actors.store.files.atomic import settle

from .connection import Connect
from .schema import APPLICATION_ID, MIGRATIONS


def check_owner(connection: sqlite3.Connection, path: Path, known: int = len(MIGRATIONS)) -> int:
    """The schema version of a Tapster database, 0 for a new file.

    Raises:
        StoreCorrupt: it is another program's database.
        StoreTooNew: a later version of Tapster wrote it.
    """
    application = int(connection.execute("PRAGMA application_id").fetchone()[0])
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    tables = int(connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0])
    if application != APPLICATION_ID and (application or version or tables):
        raise StoreCorrupt(f"{path.name} is a database of another program; nothing was changed: choose another file")
    if version > known:
        raise StoreTooNew(
            f"{path.name} has schema {version}, this version of Tapster knows up to {known}: upgrade Tapster"
        )
    return version


def migrate(connection: sqlite3.Connection, path: Path, migrations: tuple[str, ...] = MIGRATIONS) -> Path | None:
    """Apply what is missing, each step in a transaction; the backup made first, None when none was needed.

    The connection has foreign keys off while it runs, as SQLite asks for when tables are rebuilt.
    """
    version = check_owner(connection, path, len(migrations))
    if version == len(migrations):
        return None
    backup = back_up(connection, path, version) if version else None
    connection.execute("PRAGMA foreign_keys = OFF")
    for number, script in enumerate(migrations[version:], version + 1):
        connection.executescript(
            f"BEGIN IMMEDIATE;\n{script}\n"
            f"PRAGMA application_id = {APPLICATION_ID};\nPRAGMA user_version = {number};\nCOMMIT;"
        )
    connection.execute("PRAGMA foreign_keys = ON")
    return backup


def back_up(connection: sqlite3.Connection, path: Path, version: int) -> Path:
    """A complete copy beside the file, mode 0600; an earlier copy of the same version is replaced."""
    target = path.with_name(f"{path.name}.schema-{version}.bak")
    copy_to(connection, target)
    return target


def copy_to(connection: sqlite3.Connection, target: Path) -> None:
    """``VACUUM INTO`` a file that appears whole or not at all.

    Raises:
        BackupFailed: it can't be written.
    """
    partial = target.with_name(target.name + ".partial")
    try:
        partial.unlink(missing_ok=True)
        partial.touch(mode=0o600)
        # A name is bytes to the system; one that isn't UTF-8 is no text for the driver.
        connection.execute("VACUUM INTO CAST(? AS TEXT)", (os.fsencode(partial),))
        settle(partial, target)
    except (OSError, sqlite3.Error) as error:
        partial.unlink(missing_ok=True)
        if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_CORRUPT:
            raise
        said = error.strerror if isinstance(error, OSError) else None
        raise BackupFailed(f"the copy {target} can't be written: {said or error}") from error


def open_checked(connect: Connect, path: Path) -> sqlite3.Connection:
    """A writing connection to a database that is ours and sound enough to read its schema.

    Raises:
        sqlite3.Error: it can't be opened or is damaged; the file is as it was.
    """
    if path.exists() and path.stat().st_size:
        probe = connect(path, read_only=True)
        try:
            check_owner(probe, path)
        finally:
            probe.close()
    return connect(path, read_only=False)
