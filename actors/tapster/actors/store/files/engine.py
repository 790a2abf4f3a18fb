"""The ``files`` engine: the contract's own JSON files, for a drop-in replacement over an existing data folder.

A batch is staged in memory and brought to disk once, so a file that many writes of a batch change is written once. A
change of several files goes through a redo journal: after a crash it is there whole or not at all.

Source: design §5, spec/resources §1.
"""

import os
import secrets
import tarfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, final

from tapster.actors.store.codec import iso_ms
from tapster.actors.store.errors import BackupFailed, CommitFailed, ReadFailed
from tapster.actors.store.interface import Done, EngineInfo, Keyed, Outcome, Refused, Tables
from tapster.actors.store.lock import WriterLock
from tapster.actors.store.retention import Retention
from tapster.actors.store.values import HOME_HOST, Warned
from tapster.engine.ecma import is_record, utf8
from tapster.engine.errors import TapsterError
from tapster.engine.policy import SelectionLimits, document_json, read_selections

from .atomic import FILE_MODE, AtomicWriter, settle
from .disk import Disk
from .documents import FileDocuments
from .layout import CHATS, SETTINGS, Layout
from .resources import FileResources
from .selections import FILE_NAME as SELECTIONS_FILE
from .sessions import FileSessionLogs
from .staging import Staging, read_failed
from .trace_table import FileTraces

KEPT_KEYS: Final = 4_096
NOT_COPIED: Final = frozenset({".tapster.lock", "tapster.db.lock", "server.json"})
"""Files of the running process, no data."""


@final
class FilesTables:
    """The ``Tables`` of a data folder."""

    def __init__(self, staging: Staging, layout: Layout, retention: Retention) -> None:
        self.documents = FileDocuments(staging, layout)
        self.resources = FileResources(staging, layout)
        self.sessions = FileSessionLogs(staging, layout)
        self.traces = FileTraces(staging, layout, self.resources, retention)


@final
class FilesEngine:
    """Opens a data folder; the writer is used by one thread at a time, reads wait for its file changes only."""

    def __init__(
        self,
        root: Path,
        *,
        retention: Retention | None = None,
        home_host: str = HOME_HOST,
        disk: Callable[[Path, AtomicWriter], Disk] = Disk,
        read_only: bool = False,
        assembler: Path | None = None,
    ) -> None:
        """Take the writer's lock, complete what a crash interrupted, set aside what can't be read.

        Args:
            assembler: the folder of ``assembly-presets.json``, when it isn't ``root``.
            read_only: change nothing in the folder and take no lock, to import from another program's data.

        Raises:
            StoreLocked: another process has the folder.
        """
        self._root = root
        self._lock: WriterLock | None = None
        if not read_only:
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = WriterLock(root / ".tapster.lock")
        self._warnings: list[Warned] = []
        self._keys: dict[str, None] = {}
        self._disk = disk(root, AtomicWriter(os.getpid(), lambda: secrets.token_hex(8)))
        self._staging = Staging(self._disk)
        self._layout = Layout(root, home_host, assembler)
        self._tables = FilesTables(self._staging, self._layout, retention or Retention())
        try:
            if not read_only:
                self._disk.recover()
                self._set_aside_unreadable()
            self._open_selections()
        except BaseException:
            self.close()
            raise

    @property
    def info(self) -> EngineInfo:
        """Engine, folder and durability."""
        return EngineInfo("files", str(self._root), "temporary file, fsync, rename")

    @property
    def warnings(self) -> tuple[Warned, ...]:
        """What the start went on without."""
        return tuple(self._warnings)

    def commit(self, batch: Sequence[Keyed], now: int) -> list[Outcome]:
        """Stage every write, then bring all changed files to disk."""
        if self._lock is None:
            raise CommitFailed(f"{self._root.name} is open for reading only")
        with self._staging.lock:
            try:
                if self._disk.recover():
                    # Somebody may have read what was half done.
                    self._forget()
                outcomes = [self._apply(keyed) for keyed in batch]
                self._staging.commit()
            except OSError as error:
                self._forget()
                raise CommitFailed(
                    f"writing {error.filename or self._root.name} failed: {error.strerror or error}",
                    details={"errno": error.errno},
                ) from error
            except BaseException:
                self._forget()
                raise
        for key in list(self._keys)[: max(0, len(self._keys) - KEPT_KEYS)]:
            del self._keys[key]
        return outcomes

    @contextmanager
    def read(self) -> Iterator[Tables]:
        """The files between two batches."""
        with self._staging.reading():
            try:
                yield self._tables
            except OSError as error:
                raise read_failed(Path(str(error.filename)), error) from error

    def tidy(self, now: int) -> None:
        """Nothing to do: every file is whole after each commit."""

    @property
    def is_behind(self) -> bool:
        """Never: nothing piles up."""
        return False

    def catch_up(self, *, beside: bool) -> None:
        """Nothing to do."""

    def check(self) -> tuple[str, ...]:
        """The JSON documents that can't be read."""
        found = []
        with self._staging.reading():
            for path in sorted(self._root.rglob("*.json")):
                try:
                    self._staging.load(path)
                except ReadFailed as error:
                    found.append(error.message)
        return tuple(found)

    def backup(self, target: str) -> None:
        """Write the folder's files into a tar archive, mode 0600, between two batches."""
        partial = Path(f"{target}.partial")
        partial.unlink(missing_ok=True)
        try:
            with (
                open(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, FILE_MODE), "wb") as file,
                tarfile.open(fileobj=file, mode="w|") as archive,
                self._staging.reading(),
            ):
                for path in sorted(self._root.rglob("*")):
                    name = path.relative_to(self._root)
                    is_data = path.is_file() and not path.is_symlink() and path != partial
                    if is_data and str(name) not in NOT_COPIED:
                        archive.add(path, str(name), recursive=False)
            settle(partial, Path(target))
        except OSError as error:
            partial.unlink(missing_ok=True)
            raise BackupFailed(f"the copy {target} can't be written: {error.strerror or error}") from error

    def close(self) -> None:
        """Release the lock."""
        if self._lock is not None:
            self._lock.release()

    def _apply(self, keyed: Keyed) -> Outcome:
        mark = self._staging.undo.mark()
        try:
            is_repeat = keyed.key is not None and keyed.key in self._keys
            value = keyed.write.repeat(self._tables) if is_repeat else keyed.write.apply(self._tables)
        except TapsterError as error:
            self._staging.undo.back_to(mark)
            return Refused(error)
        if keyed.key is not None:
            self._staging.undo.set(self._keys, keyed.key, None)
        return Done(value)

    def _forget(self) -> None:
        self._staging.discard()
        self._tables.sessions.forget()
        self._tables.traces.forget()

    def _set_aside_unreadable(self) -> None:
        """Move unreadable settings and chats aside, so that one damaged document doesn't stop the start."""
        keys = [key for collection in (SETTINGS, CHATS) for key in self._layout.documents(collection)]
        paths = [place for key in keys if isinstance(place := self._layout.document(key), Path)]
        for path in paths:
            try:
                if self._staging.read(path) is None or is_record(self._staging.load(path)):
                    continue
                problem = f"{path.name} doesn't hold an object"
            except ReadFailed as error:
                if error.details.get("errno") is not None:
                    self._warn("DOCUMENT_UNREADABLE", path, error.message)
                    continue  # a disk error may pass: a healthy file is never moved because of it
                problem = error.message
            aside = path.with_name(f"{path.name}.unreadable-{secrets.token_hex(4)}")
            path.rename(aside)
            self._warn("DOCUMENT_SET_ASIDE", path, f"{problem}; its bytes are kept as {aside.name}")

    def _open_selections(self) -> None:
        """Read each host's selections; an untidy file is written again, an unusable one stays and answers its error."""
        now = iso_ms(0)
        for _, folder in self._layout.host_folders():
            path = folder / SELECTIONS_FILE
            try:
                opened = read_selections(self._staging.read(path), limits=SelectionLimits(), now=now)
            except TapsterError as error:
                said = f"{path.name} can't be used: {error.message}; it was left as it is: repair it or move it away"
                self._tables.documents.broken[path] = ReadFailed(said, details={"document": path.stem})
                self._warn("DOCUMENT_UNREADABLE", path, said)
                continue
            if opened.rewrite:
                self._staging.store(path, document_json(opened.state))
                if self._lock is not None:
                    self._staging.commit()

    def _warn(self, code: str, path: Path, message: str) -> None:
        self._warnings.append(Warned(code, utf8(path.stem).decode(), message))
