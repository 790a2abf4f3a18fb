"""Every engine, for the suites that all of them must pass."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tapster.actors.store import Engine, FilesEngine, MemoryEngine, Retention, SqliteEngine

OpenEngine = Callable[..., Engine]
ENGINES = ("sqlite", "files", "memory")


def open_named(name: str, folder: Path, retention: Retention | None = None) -> Engine:
    """An engine by name over a folder."""
    if name == "memory":
        return MemoryEngine(retention)
    if name == "files":
        return FilesEngine(folder, retention=retention)
    return SqliteEngine(folder / "tapster.db", retention=retention)


@pytest.fixture(params=ENGINES)
def engine_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def engine(engine_name: str, tmp_path: Path) -> Iterator[Engine]:
    opened = open_named(engine_name, tmp_path)
    yield opened
    opened.close()
