"""How commands find the server of a data folder: a small file that lives, and is locked, as long as the server does."""

import fcntl
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final, final

import attrs
import trio

from tapster.runtime import LogSink

NAME: Final = "server.json"
RETRY_S: Final = 5.0
MAX_BYTES: Final = 4096


@asynccontextmanager
async def announced(data_dir: Path, url: str, log: LogSink) -> AsyncIterator[None]:
    """Say where the server of a data folder listens, for the length of a block.

    A disk that has no room keeps nobody from serving: it is tried again until it has.
    """
    announcement = _Announcement(data_dir / NAME, url)
    async with trio.open_nursery() as nursery:
        error = announcement.write()
        if error is not None:
            log("warning", "server.not-announced", path=str(data_dir / NAME), reason=error.strerror or str(error))
            nursery.start_soon(_announce_later, announcement)
        try:
            yield
        finally:
            nursery.cancel_scope.cancel()
            announcement.withdraw()


async def _announce_later(announcement: "_Announcement") -> None:
    await trio.sleep(RETRY_S)
    while announcement.write() is not None:  # noqa: ASYNC110 - a disk has room in its own time
        await trio.sleep(RETRY_S)


@final
@attrs.define(eq=False)
class _Announcement:
    """The file and the lock on it, which ends with the process however that ends."""

    path: Path
    url: str
    _descriptor: int | None = None

    def write(self) -> OSError | None:
        partial = self.path.with_name(f"{NAME}.{os.getpid()}.partial")
        said = json.dumps({"url": self.url, "pid": os.getpid()}) + "\n"
        try:
            descriptor = os.open(partial, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        except OSError as error:
            return error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with open(descriptor, "w", encoding="utf-8", closefd=False) as file:
                file.write(said)
            # Locked and whole before it has its name: nobody finds it in between.
            partial.replace(self.path)
        except OSError as error:
            os.close(descriptor)
            with suppress(OSError):
                partial.unlink()
            return error
        self._descriptor = descriptor
        return None

    def withdraw(self) -> None:
        if self._descriptor is not None:
            with suppress(OSError):
                self.path.unlink()
            os.close(self._descriptor)
            self._descriptor = None


def find_server(data_dir: Path) -> str | None:
    """The address of the server that has the folder open, None when none runs.

    A file that a killed server left isn't locked; a process number in it could be another's by now.
    """
    try:
        with (data_dir / NAME).open("rb") as file:
            return str(json.loads(file.read(MAX_BYTES))["url"]) if _is_locked(file.fileno()) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _is_locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False
