"""Trace records in the contract's own files.

``tavern-trace-records.json`` is written; ``tavern-assemblies.json`` (schema 3) and ``tavern-traces.json`` (v1) are only
read, and never migrated, shrunk or reset.

Source: spec/trace §10, §11.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import final

import attrs

from tapster.actors.store.errors import ReadFailed, anew
from tapster.engine.ecma import Json, utf8
from tapster.engine.errors import StoreError
from tapster.engine.limits import AUDIT_READ_BYTES, TRACE_READ_BYTES
from tapster.engine.trace import (
    AuditBook,
    AuditLimits,
    RetentionLimits,
    TraceBook,
    TraceSources,
    open_audits,
    open_book,
    read_rows,
)

from .atomic import AtomicWriter, read_if_present

RECORDS_FILE = "tavern-trace-records.json"
SNAPSHOTS_FILE = "tavern-assemblies.json"
AUDITS_FILE = "tavern-traces.json"
SNAPSHOT_SCHEMA = 3


@final
class LegacyTraces:
    """The older read-only files of a data folder, whole in memory."""

    def __init__(self, folder: Path, *, must_read: bool = True) -> None:
        """Read the files; missing ones are empty.

        Args:
            must_read: whether an unreadable schema-3 file fails this, or only whatever asks for its rows.

        Raises:
            StoreError: the schema-3 file is unreadable, and it must be read.
        """
        self.warnings: tuple[str, ...] = ()
        self._error: StoreError | None = None
        self._snapshots: Sequence[Mapping[str, Json]] = ()
        self._audits = self._open_audits(folder / AUDITS_FILE)
        try:
            self._snapshots = _read_snapshots(folder / SNAPSHOTS_FILE)
        except StoreError as error:
            if must_read:
                raise
            self._error = error
            self.warnings = (*self.warnings, error.message)

    def rows(self, session_id: str) -> TraceSources:
        """The older rows of a session.

        Raises:
            StoreError: the schema-3 file is unreadable.
        """
        if self._error is not None:
            raise anew(self._error)
        return TraceSources(
            snapshots=[row for row in self._snapshots if row["sessionId"] == session_id],
            audits=self._audits.sessions.get(session_id, ()),
        )

    def _open_audits(self, path: Path) -> AuditBook:
        try:
            return open_audits(read_if_present(path, AUDIT_READ_BYTES))
        except StoreError as error:
            self.warnings = (error.message,)
            return AuditBook()


def _read_snapshots(path: Path) -> Sequence[Mapping[str, Json]]:
    try:
        return read_rows(read_if_present(path, TRACE_READ_BYTES), SNAPSHOT_SCHEMA, path.name)
    except OSError as error:
        raise ReadFailed(f"{path.name} can't be read: {error.strerror or error}") from error


@final
class TraceFiles:
    """The trace records of one data folder, whole in memory; used by one thread at a time."""

    def __init__(self, folder: Path, writer: AtomicWriter, limits: RetentionLimits | None = None) -> None:
        """Read the folder's files; they stay as they are until the first write.

        Raises:
            StoreError: a records file is unreadable; nothing is reset.
        """
        self._target = folder / RECORDS_FILE
        self._writer = writer
        self._book = open_book(read_if_present(self._target, TRACE_READ_BYTES), limits)
        self.legacy = LegacyTraces(folder)

    @property
    def book(self) -> TraceBook:
        """The retained records."""
        return self._book

    def put(self, records: Iterable[Mapping[str, Json]]) -> None:
        """Write records, durable when this returns; all of them or none."""
        self._save(self._book.put(records))

    def put_audits(self, session_id: str, audits: Iterable[Mapping[str, Json]]) -> None:
        """Write v1 audits into the records of their captures, durable when this returns."""
        self._save(self._book.put_audits(session_id, audits))

    def sources(self, session_id: str) -> TraceSources:
        """Everything that an answer about a session reads."""
        return attrs.evolve(self.legacy.rows(session_id), records=self._book.session(session_id))

    def _save(self, book: TraceBook) -> None:
        # The file first: what memory answers with must have survived.
        self._writer.write(self._target, utf8(book.to_text()))
        self._book = book


@final
class AuditFile:
    """The v1 audit file of a data folder that still uses it; used by one thread at a time."""

    def __init__(self, folder: Path, writer: AtomicWriter, limits: AuditLimits | None = None) -> None:
        """Read the folder's file.

        Raises:
            StoreError: the file is unreadable; nothing is reset.
        """
        self._target = folder / AUDITS_FILE
        self._writer = writer
        self._book = open_audits(read_if_present(self._target, AUDIT_READ_BYTES), limits)

    @property
    def book(self) -> AuditBook:
        """The retained audits."""
        return self._book

    def put(self, session_id: Json, records: Iterable[Mapping[str, Json]]) -> None:
        """Write audits, durable when this returns."""
        book = self._book.put(session_id, records)
        self._writer.write(self._target, utf8(book.to_text()))
        self._book = book
