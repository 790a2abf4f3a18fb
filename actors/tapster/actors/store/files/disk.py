"""The folder's files as the engine uses them, and the redo journal that makes several changes one."""

import errno
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeAlias, final

import attrs

from tapster.actors.store.codec import pack, unpack

from .atomic import FILE_MODE, AtomicWriter, forget, sync_folder

JOURNAL: Final = "tapster/journal.bin"
Signature: TypeAlias = tuple[int, int, int]
"""Modification time, size and inode: equal means that nobody wrote the file meanwhile."""


@final
@attrs.frozen
class Appended:
    """Bytes to add to a file at an offset; what stands beyond it is a torn write and goes."""

    offset: int
    data: bytes


Change: TypeAlias = bytes | Appended | None
"""A file's new content, an addition, or None for its removal."""


@attrs.frozen
class Disk:
    """Reads and changes the files of one data folder; every change is durable when its call returns."""

    root: Path
    writer: AtomicWriter

    def read(self, path: Path) -> bytes | None:
        """A file's bytes, None when there is no such file.

        Raises:
            OSError: it exists and can't be read.
        """
        try:
            return path.read_bytes()
        except FileNotFoundError:
            return None

    def read_range(self, path: Path, offset: int, length: int) -> bytes:
        """Part of a file.

        Raises:
            OSError: it can't be read.
        """
        with path.open("rb") as file:
            file.seek(offset)
            return file.read(length)

    def signature(self, path: Path) -> Signature | None:
        """What to compare to learn whether a file changed; None when there is none."""
        try:
            found = path.stat()
        except FileNotFoundError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino

    def apply(self, changes: Mapping[Path, Change]) -> None:
        """Make all changes or, after a crash and the next start, none or all.

        Everything that needs room is written before the journal decides, so that a full disk refuses all of it.

        Raises:
            OSError: nothing happened; or the disk failed while files got their names, and the next ``recover``
                completes it.
        """
        if len(changes) <= 1:
            for path, change in changes.items():
                self._apply_one(path, change)
            return
        prepared: dict[Path, Path] = {}
        try:
            for path, change in changes.items():
                self.make_folder(path.parent)
                if isinstance(change, bytes):
                    prepared[path] = self.writer.prepare(path, change)
            self._write_journal(changes)
            self._need_room([change for change in changes.values() if isinstance(change, Appended)])
        except BaseException:
            for temporary in prepared.values():
                forget(temporary)
            with suppress(OSError):
                self._remove_journal()
            raise
        try:
            for path, change in changes.items():
                self._apply_one(path, change, prepared.get(path))
        finally:
            # Those that have their names are gone from here.
            for temporary in prepared.values():
                forget(temporary)
        self._remove_journal()

    def _need_room(self, additions: Sequence[Appended]) -> None:
        if not additions:
            return
        found = os.statvfs(self.root)
        needed = sum(len(change.data) + found.f_frsize for change in additions)
        # A file system that counts no blocks says nothing about its room.
        if found.f_blocks and needed > found.f_bavail * found.f_frsize:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.root))

    def recover(self) -> bool:
        """Complete what a crash interrupted; whether there was anything."""
        journal = self.read(self.root / JOURNAL)
        if journal is None:
            return False
        for name, kind, offset, data in unpack(journal):
            change = Appended(offset, data) if kind == "append" else data
            self._apply_one(self.root / name, change)
        self._remove_journal()
        return True

    def _apply_one(self, path: Path, change: Change, prepared: Path | None = None) -> None:
        self.make_folder(path.parent)
        if prepared is not None:
            prepared.replace(path)
            sync_folder(path.parent)
        elif change is None:
            path.unlink(missing_ok=True)
            sync_folder(path.parent)
        elif isinstance(change, Appended):
            self._append(path, change)
        else:
            self.writer.write(path, change)

    def _append(self, path: Path, change: Appended) -> None:
        is_new = not path.exists()
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, FILE_MODE)
        with open(descriptor, "wb") as file:
            file.truncate(change.offset)
            file.seek(change.offset)
            file.write(change.data)
            file.flush()
            os.fsync(file.fileno())
        if is_new:
            sync_folder(path.parent)

    def make_folder(self, folder: Path) -> None:
        """Make a folder and those above it, mode 0700."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def _write_journal(self, changes: Mapping[Path, Change]) -> None:
        # Relative, so that a folder may move; a file of the other folder of the contract is reached by "..".
        entries: Sequence[tuple[str, str, int, bytes | None]] = [
            (os.path.relpath(path, self.root), "append", change.offset, change.data)
            if isinstance(change, Appended)
            else (os.path.relpath(path, self.root), "write", 0, change)
            for path, change in changes.items()
        ]
        self.make_folder((self.root / JOURNAL).parent)
        self.writer.write(self.root / JOURNAL, pack(entries))

    def _remove_journal(self) -> None:
        (self.root / JOURNAL).unlink()
        sync_folder((self.root / JOURNAL).parent)
