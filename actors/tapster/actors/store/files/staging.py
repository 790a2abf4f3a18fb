"""What a batch will change, seen by the writes after it and by nobody else until it is on disk."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, final

from tapster.actors.store.codec import decode, encode_pretty
from tapster.actors.store.errors import ReadFailed
from tapster.actors.store.undo import UndoLog
from tapster.engine.ecma import Json
from tapster.engine.errors import FormatError

from .disk import Appended, Change, Disk, Signature


@final
class Encoded:
    """A JSON value that will be a file's content; turned into bytes once, at the commit."""

    def __init__(self, value: Json) -> None:
        self.value = value

    def to_bytes(self) -> bytes:
        """The file's bytes."""
        return encode_pretty(self.value)


Staged = Change | Encoded


@final
class Staging:
    """Reads through pending changes to the disk. One lock keeps readers out while a commit replaces files."""

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self.undo = UndoLog()
        self.lock = threading.RLock()
        self._pending: dict[Path, Staged] = {}
        self._parsed: dict[Path, tuple[Signature, Json]] = {}

    def exists(self, path: Path) -> bool:
        """Whether the file is there, or will be."""
        return self._pending[path] is not None if path in self._pending else path.exists()

    def read(self, path: Path) -> bytes | None:
        """A file's bytes, None when there is none.

        Raises:
            ReadFailed: it exists and can't be read.
        """
        if path in self._pending:
            staged = self._pending[path]
            if isinstance(staged, Encoded):
                return staged.to_bytes()
            if not isinstance(staged, Appended):
                return staged
        try:
            found = self.disk.read(path)
        except OSError as error:
            raise read_failed(path, error) from error
        staged = self._pending.get(path)
        return (found or b"")[: staged.offset] + staged.data if isinstance(staged, Appended) else found

    def read_range(self, path: Path, offset: int, length: int) -> bytes:
        """Part of a file.

        Raises:
            ReadFailed: it can't be read.
        """
        if path in self._pending:
            return (self.read(path) or b"")[offset : offset + length]
        try:
            return self.disk.read_range(path, offset, length)
        except OSError as error:
            raise read_failed(path, error) from error

    def load(self, path: Path, *, keep: bool = False) -> Json | None:
        """A file's JSON, None when there is no file. ``keep`` remembers it until the file changes.

        The value is shared: change it by ``store`` of another one.

        Raises:
            ReadFailed: it can't be read or isn't JSON.
        """
        staged = self._pending.get(path)
        if isinstance(staged, Encoded):
            return staged.value
        signature = None if path in self._pending else self.disk.signature(path)
        if signature is not None and path in self._parsed and self._parsed[path][0] == signature:
            return self._parsed[path][1]
        data = self.read(path)
        if data is None:
            return None
        try:
            value = decode(data)
        except FormatError as error:
            raise ReadFailed(
                f"{path.name} is not readable: {error.message}; it was left as it is: repair it or move it away",
                details={"document": path.stem},
            ) from error
        if keep and signature is not None:
            self._parsed[path] = signature, value
        return value

    def store(self, path: Path, value: Json) -> None:
        """Give a file new JSON content."""
        self.undo.set(self._pending, path, Encoded(value))

    def put(self, path: Path, change: bytes | None) -> None:
        """Give a file new bytes, or remove it."""
        self.undo.set(self._pending, path, change)

    def append(self, path: Path, offset: int, data: bytes) -> None:
        """Add to a file."""
        staged = self._pending.get(path)
        if isinstance(staged, Appended):
            offset, data = staged.offset, staged.data + data
        elif isinstance(staged, bytes):
            self.put(path, staged + data)
            return
        change: Any = Appended(offset, data)
        self.undo.set(self._pending, path, change)

    def commit(self) -> None:
        """Bring everything to disk.

        Raises:
            OSError: see ``Disk.apply``; everything staged is forgotten.
        """
        changes = {
            path: staged.to_bytes() if isinstance(staged, Encoded) else staged for path, staged in self._pending.items()
        }
        try:
            with self.lock:
                self.disk.apply(changes)
                self._remember()
        finally:
            self._pending.clear()
            self.undo.forget()

    def discard(self) -> None:
        """Forget everything staged and everything remembered."""
        self.undo.back_to(0)
        self._pending.clear()
        self._parsed.clear()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Keep commits out while one reader looks."""
        with self.lock:
            yield

    def _remember(self) -> None:
        for path, staged in self._pending.items():
            self._parsed.pop(path, None)
            signature = self.disk.signature(path)
            if isinstance(staged, Encoded) and signature is not None:
                self._parsed[path] = signature, staged.value


def read_failed(path: Path, error: OSError) -> ReadFailed:
    """The error of a file that exists and can't be read."""
    return ReadFailed(
        f"{path.name} can't be read: {error.strerror or error}", details={"document": path.stem, "errno": error.errno}
    )
