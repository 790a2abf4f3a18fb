"""Opens the store: engine by configuration, the actor that writes, the pool that reads."""

from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final, Literal, TypeAlias, final

import attrs

from tapster.engine.policy import SelectionLimits
from tapster.runtime import ActorGone, Clock, LogSink, Restart, Threads, bounded_shield, open_supervisor, silent

from .actor import COMMIT_GRACE_S, MAX_BATCH, StoreActor, StorePools
from .files import FilesEngine
from .folders import usable_folder
from .handle import Store
from .interface import Engine
from .memory import MemoryEngine
from .retention import Retention
from .sqlite import SqliteEngine
from .values import HOME_HOST

EngineName: TypeAlias = Literal["sqlite", "files", "memory"]
DATABASE_NAME: Final = "tapster.db"
RESTART: Final = Restart(intensity=3, period_s=60.0)
"""Of the writing actor; beyond it the process ends (design §4 rule 7)."""
READERS: Final = 4
"""Reading threads and connections: more would only wait for the same disk and the same interpreter."""


@final
@attrs.frozen
class StoreConfig:
    """Where and how state is kept.

    Attributes:
        directory: the data folder; made when it isn't there.
        retention: of traces; the contract's by default.
        selection_limits: capacity of selections; None = the contract's on ``files``, none on the others.
        home_host: the host whose sessions the contract's own files hold (``files`` only).
        assembler_directory: where ``assembly-presets.json`` is; None = the data folder (``files`` only).
        max_batch: writes that share a commit at most; 1 = each has one of its own, to compare with.
    """

    directory: Path
    engine: EngineName = "sqlite"
    retention: Retention = attrs.Factory(Retention)
    selection_limits: SelectionLimits | None = None
    home_host: str = HOME_HOST
    assembler_directory: Path | None = None
    max_batch: int = MAX_BATCH

    @property
    def limits(self) -> SelectionLimits | None:
        """The capacity in force."""
        if self.selection_limits is None and self.engine == "files":
            return SelectionLimits()
        return self.selection_limits


def open_engine(config: StoreConfig) -> Engine:
    """The engine that a configuration names; blocking.

    Raises:
        StoreUnusable: there is no way to have a folder at that path, or to read and write in it.
        StoreLocked: another process has the data.
        StoreCorrupt, StoreTooNew: the data can't be used and is left as it was.
    """
    if config.engine == "memory":
        return MemoryEngine(config.retention)
    with usable_folder(config.directory):
        config.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if config.engine == "files":
            return FilesEngine(
                config.directory,
                retention=config.retention,
                home_host=config.home_host,
                assembler=config.assembler_directory,
            )
        return SqliteEngine(config.directory / DATABASE_NAME, retention=config.retention)


@asynccontextmanager
async def open_store(
    config: StoreConfig,
    *,
    clock: Clock,
    engine: Callable[[], Engine] | None = None,
    log: LogSink | None = None,
) -> AsyncIterator[Store]:
    """A store for the length of a block; what was acknowledged is on disk when it ends.

    Args:
        engine: opens another engine than the configured one (an embedding program's, a test's).
        log: takes what went wrong with the disk, without any content.

    Raises:
        StoreUnusable, StoreLocked, StoreCorrupt, StoreTooNew: the data can't be used.
        RestartLimit: the actor behind it crashed too often.
    """
    threads = Threads("store.open", 1)
    opened = await threads.run(engine or (lambda: open_engine(config)))
    try:
        lives, pools = deque[StoreActor](maxlen=1), StorePools()

        def live() -> StoreActor:
            counted = lives[-1].reading() if lives else None
            lives.append(StoreActor(opened, pools, clock, log or silent, counted, config.max_batch))
            return lives[-1]

        async with open_supervisor(log or silent) as supervisor:
            child = await supervisor.start("store", live, RESTART)
            readers = Threads("store.read", READERS)
            store = Store(child, lambda: lives[-1].reading(), opened, readers, clock, config.limits)
            try:
                yield store
            finally:
                with bounded_shield(COMMIT_GRACE_S), suppress(ActorGone):
                    await store.drain()  # noqa: ASYNC102 - bounded_shield is a shield with a deadline
    finally:
        with bounded_shield(COMMIT_GRACE_S):
            await threads.run(opened.close)  # noqa: ASYNC102 - bounded_shield is a shield with a deadline
