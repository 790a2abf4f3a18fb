"""Traces of a data folder behind the HTTP layer's port, without the rest of Tapster."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import attrs
import trio

from tapster.actors.contract import AuditReading
from tapster.actors.store.files.atomic import AtomicWriter
from tapster.actors.store.files.traces import TraceFiles
from tapster.api.ports import Tapster
from tapster.engine.trace import History, NoHistory, TraceSources

Json = Any


@attrs.define
class FileTraces:
    """The port over the contract's own files; ``history`` is what the host answers."""

    files: TraceFiles
    host: History = attrs.Factory(NoHistory)

    async def sources(self, session_id: str) -> TraceSources:
        await trio.lowlevel.checkpoint()
        return self.files.sources(session_id)

    async def history(self, record: Mapping[str, Json]) -> History:
        await trio.lowlevel.checkpoint()
        return self.host

    async def storage(self) -> Mapping[str, Json]:
        await trio.lowlevel.checkpoint()
        return self.files.book.limits.to_json()

    async def audits(self, session_id: str) -> AuditReading:
        await trio.lowlevel.checkpoint()
        return AuditReading(self.files.sources(session_id), 0)


@attrs.define
class TracesOnly:
    """A Tapster of which only the traces are open."""

    traces: FileTraces
    is_draining: bool = False


def open_traces(folder: Path, host: History | None = None) -> TracesOnly:
    """The traces of a folder."""
    files = TraceFiles(folder, AtomicWriter(1, iter("abcdefghijkl").__next__))
    return TracesOnly(FileTraces(files, host or NoHistory()))


def as_tapster(value: TracesOnly) -> Tapster:
    """For the app, which asks for no more than its requests need."""
    return cast(Tapster, value)
