"""The page of the running program: the same reading as ``tapster ps``."""

from typing import final

import attrs
import trio
from quart import Response

from tapster.actors.introspection import read_runtime
from tapster.actors.tapster import Tapster
from tapster.api.runtime_text import COLUMNS, actor_row, summary

from .shell import Shell


@final
@attrs.frozen
class RuntimePages:
    """One look at everything that lives."""

    shell: Shell
    tapster: Tapster

    async def runtime(self) -> Response:
        """Actors, loop, store, threads."""
        await trio.lowlevel.checkpoint()
        reading = read_runtime(self.tapster).to_json()
        rows = [actor_row(actor) for actor in reading["actors"]]
        return await self.shell.page("runtime.html", lines=list(summary(reading)), columns=COLUMNS, rows=rows)
