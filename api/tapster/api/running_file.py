"""How commands find the server of a data folder: a small file that lives as long as the server does."""

import json
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import trio

from tapster.runtime import LogSink

NAME: Final = "server.json"
RETRY_S: Final = 5.0
ANSWER_S: Final = 1.0


@asynccontextmanager
async def announced(data_dir: Path, url: str, log: LogSink) -> AsyncIterator[None]:
    """Say where the server of a data folder listens, for the length of a block.

    A disk that has no room keeps nobody from serving: it is tried again until it has.
    """
    path = data_dir / NAME
    async with trio.open_nursery() as nursery:
        error = _announce(path, url)
        if error is not None:
            log("warning", "server.not-announced", path=str(path), reason=error.strerror or str(error))
            nursery.start_soon(_announce_later, path, url)
        try:
            yield
        finally:
            nursery.cancel_scope.cancel()
            with suppress(OSError):
                path.unlink()


async def _announce_later(path: Path, url: str) -> None:
    await trio.sleep(RETRY_S)
    while _announce(path, url) is not None:  # noqa: ASYNC110 - a disk has room in its own time
        await trio.sleep(RETRY_S)


def _announce(path: Path, url: str) -> OSError | None:
    try:
        path.write_text(json.dumps({"url": url, "pid": os.getpid()}) + "\n", encoding="utf-8")
        path.chmod(0o600)
    except OSError as error:
        return error
    return None


def find_server(data_dir: Path) -> str | None:
    """The address of the server that has the folder open, None when none runs."""
    try:
        said = json.loads((data_dir / NAME).read_text(encoding="utf-8"))
        url = str(said["url"])
        try:
            os.kill(int(said["pid"]), 0)
        except PermissionError:
            # Another user's server, or something else that has its number since it was killed.
            return url if _answers(url) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return url


def _answers(url: str) -> bool:
    place = urlsplit(url)
    try:
        socket.create_connection((place.hostname, place.port or 80), ANSWER_S).close()
    except OSError:
        return False
    return True
