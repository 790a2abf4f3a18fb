"""Whole files, written so that a crash leaves either the old content or the new one."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import attrs

FILE_MODE = 0o600


@attrs.frozen
class AtomicWriter:
    """Writes files of one process.

    Attributes:
        pid: this process, so that a left-over temporary names its maker.
        token: gives a new random word for each temporary name.
    """

    pid: int
    token: Callable[[], str]

    def write(self, target: Path, data: bytes) -> None:
        """Replace a file's content, durable when this returns.

        Raises:
            OSError: the old content stands, and the temporary is gone.
        """
        temporary = self.prepare(target, data)
        try:
            temporary.replace(target)
        except BaseException:
            forget(temporary)
            raise
        sync_folder(target.parent)

    def prepare(self, target: Path, data: bytes) -> Path:
        """A durable temporary file with a target's next content; giving it the target's name needs no room.

        Raises:
            OSError: the temporary is gone.
        """
        temporary = target.with_name(f"{target.name}.{self.pid}.{self.token()}.tmp")
        try:
            _write_new(temporary, data)
        except BaseException:
            forget(temporary)
            raise
        return temporary


def forget(temporary: Path) -> None:
    """Remove a temporary file that isn't wanted any more, if it can be."""
    with suppress(OSError):
        temporary.unlink()


def _write_new(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, FILE_MODE)
    with open(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Make the folder's entries durable, a rename included."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_if_present(path: Path, limit_bytes: int) -> bytes | None:
    """A file's bytes, at most one more than ``limit_bytes``; None when there is no such file."""
    try:
        with path.open("rb") as file:
            return file.read(limit_bytes + 1)
    except FileNotFoundError:
        return None


def settle(partial: Path, target: Path) -> None:
    """Give a finished file its name, durable when this returns.

    Raises:
        OSError: the target is as it was.
    """
    descriptor = os.open(partial, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    partial.replace(target)
    sync_folder(target.parent)
