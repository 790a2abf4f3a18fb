"""How commands find the server of a data folder: a small file that lives as long as the server does."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

NAME: Final = "server.json"


@contextmanager
def announced(data_dir: Path, url: str) -> Iterator[None]:
    """Say where the server of a data folder listens, for the length of a block."""
    path = data_dir / NAME
    path.write_text(json.dumps({"url": url, "pid": os.getpid()}) + "\n", encoding="utf-8")
    path.chmod(0o600)
    try:
        yield
    finally:
        with suppress(FileNotFoundError):
            path.unlink()


def find_server(data_dir: Path) -> str | None:
    """The address of the server that has the folder open, None when none runs."""
    try:
        said = json.loads((data_dir / NAME).read_text(encoding="utf-8"))
        os.kill(int(said["pid"]), 0)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return str(said["url"])
