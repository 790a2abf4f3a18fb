"""Restores a copy that ``Engine.backup`` wrote: checked first, the present data kept aside.

A copy of the ``sqlite`` engine is a database file, one of ``files`` is a tar archive of the folder.
"""

import os
import shutil
import sqlite3
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path, PurePosixPath
from typing import Final, final

import attrs

from .errors import BackupFailed, BackupUnusable, StoreCorrupt, StoreInUse
from .files.atomic import sync_folder
from .lock import WriterLock
from .opening import DATABASE_NAME, StoreConfig
from .sqlite.connection import translated
from .sqlite.migrations import check_owner

LOCKS: Final = (f"{DATABASE_NAME}.lock", ".tapster.lock")
DATABASE_PARTS: Final = ("", "-wal", "-shm")
_SQLITE_MARK: Final = b"SQLite format 3\0"


@final
@attrs.frozen
class Restored:
    """Where the data is now, and where what was there before is kept; None when there was nothing."""

    location: Path
    aside: Path | None


def restore_backup(config: StoreConfig, file: Path, stamp: str, *, force: bool = False) -> Restored:
    """Put a copy in the place of the configured engine's data; blocking.

    Args:
        stamp: marks the name that the present data is kept under.
        force: also when there is data.

    Raises:
        StoreLocked: a process has the data open.
        StoreInUse: there is data, and ``force`` wasn't given.
        BackupFailed: the disk refused it; the data is where it was, or kept aside.
        BackupUnusable: the file isn't a sound copy for this engine; nothing was changed.
        StoreTooNew: a later version of Tapster wrote it; nothing was changed.
    """
    try:
        if not file.is_file():
            raise BackupUnusable(f"there is no file {file}")
        config.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if config.engine == "files":
            return _restore_folder(config.directory, file, stamp, force=force)
        return _restore_database(config.directory / DATABASE_NAME, file, stamp, force=force)
    except OSError as error:
        place = error.filename or config.directory
        raise BackupFailed(f"restoring {file} failed at {place}: {error.strerror or error}") from error


def _restore_database(path: Path, file: Path, stamp: str, *, force: bool) -> Restored:
    with _held(path.with_name(path.name + ".lock")):
        _refuse_data(path.exists(), path, force=force)
        partial = path.with_name(f"{path.name}.restore-{stamp}")
        try:
            _copy_durably(file, partial)
            _check_database(partial, file)
            aside = path.with_name(f"{path.name}.before-{stamp}") if path.exists() else None
            for part in DATABASE_PARTS if aside is not None else ():
                present = path.with_name(path.name + part)
                if aside is not None and present.exists():
                    # The names of its WAL and index follow, so that it opens as it was.
                    present.rename(aside.with_name(aside.name + part))
            partial.replace(path)
        finally:
            for part in DATABASE_PARTS:
                partial.with_name(partial.name + part).unlink(missing_ok=True)
        sync_folder(path.parent)
    return Restored(path, aside)


def _check_database(copy: Path, file: Path) -> None:
    with copy.open("rb") as opened:
        if opened.read(len(_SQLITE_MARK)) != _SQLITE_MARK:
            raise BackupUnusable(f"{file} isn't a copy of the sqlite engine (not a database)")
    try:
        with (
            translated(file, "reading"),
            closing(sqlite3.connect(f"{copy.resolve().as_uri()}?mode=ro", uri=True)) as db,
        ):
            if not check_owner(db, file):
                raise BackupUnusable(f"{file} is a database without Tapster's tables")
            found = [str(row[0]) for row in db.execute("PRAGMA integrity_check(5)")]
    except StoreCorrupt as error:
        raise BackupUnusable(f"{file} can't be restored: {error.message}") from error
    if found != ["ok"]:
        raise BackupUnusable(f"{file} is damaged: {found[0]}")


def _restore_folder(root: Path, file: Path, stamp: str, *, force: bool) -> Restored:
    with _held(root / ".tapster.lock"):
        present = [path for path in root.iterdir() if path.name not in (*LOCKS, "server.json")]
        _refuse_data(bool(present), root, force=force)
        with tempfile.TemporaryDirectory(dir=root.parent, prefix=f"{root.name}.restore-") as place:
            copy = Path(place) / "copy"
            _unpack(file, copy)
            aside = root.with_name(f"{root.name}.before-{stamp}") if present else None
            if aside is not None:
                aside.mkdir(mode=0o700)
                for path in present:
                    path.rename(aside / path.name)
            for path in list(copy.iterdir()):
                path.rename(root / path.name)
        sync_folder(root)
    return Restored(root, aside)


def _unpack(file: Path, target: Path) -> None:
    target.mkdir(mode=0o700)
    try:
        with tarfile.open(file, "r:") as archive:
            for member in archive:
                _unpack_member(archive, member, target)
    except (tarfile.TarError, EOFError) as error:
        raise BackupUnusable(f"{file} isn't a copy of the files engine ({error})") from error
    for path in target.rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)


def _unpack_member(archive: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> None:
    # By hand: the filters of extractall are not in every Python 3.11, and a copy holds only folders and files.
    place = PurePosixPath(member.name)
    content = archive.extractfile(member) if member.isfile() else None
    if place.is_absolute() or ".." in place.parts or (content is None and not member.isdir()):
        raise tarfile.TarError(f"{member.name!r} is not a file or folder inside it")
    folder = target / (place if content is None else place.parent)
    folder.mkdir(parents=True, exist_ok=True)
    if content is not None:
        with content, (target / place).open("wb") as out:
            shutil.copyfileobj(content, out)


@contextmanager
def _held(lock: Path) -> Iterator[None]:
    held = WriterLock(lock)
    try:
        yield
    finally:
        held.release()


def _refuse_data(found: bool, place: Path, *, force: bool) -> None:
    if found and not force:
        raise StoreInUse(f"{place} holds data: use --force to put the copy in its place (the data is kept aside)")


def _copy_durably(source: Path, target: Path) -> None:
    descriptor = os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with open(descriptor, "wb") as new, source.open("rb") as given:
        shutil.copyfileobj(given, new, 1 << 20)
        new.flush()
        os.fsync(new.fileno())
