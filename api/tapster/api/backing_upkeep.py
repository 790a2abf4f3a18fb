"""The data as a whole behind the HTTP layer: how it fares, whether it is sound, a copy of it."""

import tempfile
from pathlib import Path
from typing import BinaryIO, final

import attrs
import trio

from tapster.actors.tapster import Tapster

from .ports import StoreFacts


@final
@attrs.frozen
class UpkeepPort:
    """``ports.StoreUpkeep``."""

    tapster: Tapster

    async def facts(self) -> StoreFacts:
        """Engine, place, and what writes meet now."""
        await trio.lowlevel.checkpoint()
        store = self.tapster.store
        reading = store.statistics()
        return StoreFacts(
            store.info.engine,
            store.info.location,
            store.info.durability,
            reading.problem,
            reading.failures,
            reading.commits,
            reading.writes,
            tuple((warning.code, warning.subject, warning.message) for warning in store.warnings),
        )

    async def check(self) -> tuple[str, ...]:
        """An integrity check, beside all other work."""
        return await self.tapster.store.check()

    async def backup(self) -> BinaryIO:
        """A copy that was written beside the data and has no name any more.

        Raises:
            BackupFailed: there is no room for it.
        """
        folder = self.tapster.config.store.directory
        with tempfile.TemporaryDirectory(dir=folder, prefix="backup-", ignore_cleanup_errors=True) as place:
            copy = Path(place) / "copy"
            await self.tapster.store.backup(str(copy))
            return copy.open("rb")
