"""The pages of records: what was sent, verified against the history, and why."""

from typing import final

import attrs
from quart import Response

from tapster.actors.tapster import Tapster
from tapster.api.backing import Backing
from tapster.api.contract.v3 import answer_v3
from tapster.engine.ecma import Json

from .shell import Shell, segment
from .shown import time_text, trace_view


@final
@attrs.frozen
class TracePages:
    """Views over a session's records, as API v3 gives them."""

    shell: Shell
    tapster: Tapster
    backing: Backing

    async def traces(self, session_id: str) -> Response:
        """The records of a session's requests, newest first."""
        records = (await self._read(f"/sessions/{segment(session_id)}/assemblies"))["records"]
        if not records:
            await self.tapster.host.session(session_id).header()
        newest = list(reversed(records))
        return await self.shell.page(
            "traces.html", session_id=session_id, records=newest, time_text=time_text, tab="sessions"
        )

    async def trace(self, session_id: str, record_id: str) -> Response:
        """One record, its bodies verified against the history."""
        body = await self._read(f"/sessions/{segment(session_id)}/assemblies/{segment(record_id)}")
        view = trace_view(body["record"])
        return await self.shell.page("trace.html", session_id=session_id, trace=view, tab="sessions")

    async def _read(self, path: str) -> Json:
        return (await answer_v3(self.backing, "GET", path)).body
