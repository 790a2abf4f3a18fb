"""Session logs: one row an event, found by (log, seq).

There is no index by type: each session's end of it would be one more page to write and sync with every commit.
"""

import sqlite3
import sys
from collections.abc import Sequence
from typing import Any, final

from tapster.actors.store.checks import check_append, check_copy, event_type
from tapster.actors.store.codec import pack, unpack
from tapster.actors.store.errors import SessionLogExists, SessionLogMissing
from tapster.actors.store.values import SessionHead, SessionKey
from tapster.engine.ecma import Json

_HEAD = "host, session, header, next_seq, created_at, updated_at"


@final
class SqliteSessionLogs:
    """The ``SessionLogs`` of a connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def create(self, key: SessionKey, header: Json, *, now: int) -> SessionHead:
        if self.head(key) is not None:
            raise SessionLogExists(f"session {key} has a log already")
        self._connection.execute(
            "INSERT INTO sessions (host, session, header, next_seq, created_at, updated_at) VALUES (?, ?, ?, 0, ?, ?)",
            (key.host, key.session, pack(header), now, now),
        )
        return SessionHead(key, header, 0, now, now)

    def copy_events(self, source: SessionKey, target: SessionKey, through_seq: int, *, now: int) -> int:
        source_log, source_next = self._log(source)
        log, next_seq = self._log(target)
        check_copy(source, source_next, target, next_seq, through_seq)
        self._connection.execute(
            "INSERT INTO events (log, seq, type, body)"
            " SELECT ?, seq, type, body FROM events WHERE log = ? AND seq <= ? ORDER BY seq",
            (log, source_log, through_seq),
        )
        return self._advance(log, through_seq + 1, now)

    def append(self, key: SessionKey, first_seq: int, events: Sequence[Json], *, now: int) -> int:
        log, next_seq = self._log(key)
        check_append(key, next_seq, first_seq, events)
        self._connection.executemany(
            "INSERT INTO events (log, seq, type, body) VALUES (?, ?, ?, ?)",
            [(log, first_seq + index, event_type(event), pack(event)) for index, event in enumerate(events)],
        )
        return self._advance(log, first_seq + len(events), now)

    def set_header(self, key: SessionKey, header: Json, *, now: int) -> SessionHead:
        log, _ = self._log(key)
        self._connection.execute(
            "UPDATE sessions SET header = ?, updated_at = ? WHERE place = ?", (pack(header), now, log)
        )
        found = self.head(key)
        assert found is not None, "a row that was just written"
        return found

    def head(self, key: SessionKey) -> SessionHead | None:
        row = self._connection.execute(
            f"SELECT {_HEAD} FROM sessions WHERE host = ? AND session = ?", (key.host, key.session)
        ).fetchone()
        return None if row is None else _head(row)

    def heads(self, host: str | None = None) -> tuple[SessionHead, ...]:
        rows = self._connection.execute(
            f"SELECT {_HEAD} FROM sessions WHERE ? IS NULL OR host = ? ORDER BY updated_at DESC, place DESC",
            (host, host),
        ).fetchall()
        return tuple(_head(row) for row in rows)

    def read(self, key: SessionKey, since: int = 0, limit: int | None = None) -> tuple[Json, ...]:
        rows = self._connection.execute(
            "SELECT body FROM events JOIN sessions ON log = sessions.place"
            " WHERE host = ? AND session = ? AND seq >= ? ORDER BY seq LIMIT ?",
            (key.host, key.session, since, -1 if limit is None else limit),
        ).fetchall()
        return tuple(unpack(row[0]) for row in rows)

    def latest(self, key: SessionKey, event_type: str, before: int | None = None) -> Json | None:
        row = self._connection.execute(
            "SELECT body FROM events JOIN sessions ON log = sessions.place"
            " WHERE host = ? AND session = ? AND seq < ? AND type = ? ORDER BY seq DESC LIMIT 1",
            (key.host, key.session, sys.maxsize if before is None else before, event_type),
        ).fetchone()
        return None if row is None else unpack(row[0])

    def delete(self, key: SessionKey) -> bool:
        done = self._connection.execute("DELETE FROM sessions WHERE host = ? AND session = ?", (key.host, key.session))
        return done.rowcount > 0

    def _log(self, key: SessionKey) -> tuple[int, int]:
        row = self._connection.execute(
            "SELECT place, next_seq FROM sessions WHERE host = ? AND session = ?", (key.host, key.session)
        ).fetchone()
        if row is None:
            raise SessionLogMissing(f"session {key} has no log")
        return int(row[0]), int(row[1])

    def _advance(self, log: int, next_seq: int, now: int) -> int:
        self._connection.execute(
            "UPDATE sessions SET next_seq = ?, updated_at = ? WHERE place = ?", (next_seq, now, log)
        )
        return next_seq


def _head(row: Any) -> SessionHead:
    return SessionHead(SessionKey(row[0], row[1]), unpack(row[2]), row[3], row[4], row[5])
