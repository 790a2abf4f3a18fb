"""Traces as msgpack, one row a record, under retention by count, size, age and session."""

import sqlite3
from collections.abc import Iterator, Sequence
from typing import final

from tapster.actors.store.codec import pack, unpack
from tapster.actors.store.retention import Retention
from tapster.actors.store.values import ResourceUse, SessionKey
from tapster.engine.ecma import Json
from tapster.engine.trace.retention import Row

from .resources import SqliteResources

_RANKED = "SELECT place, row_number() OVER (PARTITION BY host, session ORDER BY place DESC) AS rank FROM traces"
_WHERE = "WHERE host = ? AND session = ? AND id = ?"


@final
class SqliteTraces:
    """The ``Traces`` of a connection."""

    def __init__(self, connection: sqlite3.Connection, resources: SqliteResources, retention: Retention) -> None:
        self._connection = connection
        self._resources = resources
        self._retention = retention

    def put(self, key: SessionKey, record: Json, uses: Sequence[ResourceUse] = ()) -> Json:
        record_id = record.get("id")
        present = self.get(key, record_id) if isinstance(record_id, str) else None
        row = self._retention.row({**record, "sessionId": key.session}, present)
        # Removed first, so that the new row is last in write order; its uses may keep a revision, so blobs go after.
        freed = self._remove(f"SELECT place FROM traces {_WHERE}", (key.host, key.session, record_id))
        place = self._connection.execute(
            "INSERT INTO traces (host, session, id, size_bytes, recorded_at, body) VALUES (?, ?, ?, ?, ?, ?)",
            (key.host, key.session, record_id, *self._columns(row)),
        ).lastrowid
        self._connection.executemany(
            "INSERT OR IGNORE INTO trace_uses (trace, kind, id, revision)"
            " SELECT ?, ?, ?, sha256 FROM blobs WHERE sha256 = ?",
            [(place, use.kind, use.id, use.revision) for use in uses],
        )
        self._evict(key, self._retention.recorded_at(row.record), freed)
        return row.record

    def put_audits(self, key: SessionKey, audits: Sequence[Json]) -> None:
        for audit in audits:
            capture = audit.get("captureId")
            row = self._retention.audited(key.session, audit, self.get(key, capture) if capture else None)
            if row is not None:
                self._connection.execute(
                    "INSERT INTO traces (host, session, id, size_bytes, recorded_at, body) VALUES (?, ?, ?, ?, ?, ?)"
                    " ON CONFLICT (host, session, id) DO UPDATE"
                    " SET size_bytes = excluded.size_bytes, body = excluded.body",
                    (key.host, key.session, capture, *self._columns(row)),
                )
        self._evict(key, 0, set())

    def sweep(self, now: int, limit: int) -> int:
        keep = self._retention
        before = self.size()[0]
        freed: set[str] = set()
        if keep.max_age_ms is not None:
            oldest = now - keep.max_age_ms
            freed |= self._remove("SELECT place FROM traces WHERE recorded_at < ? LIMIT ?", (oldest, limit))
        if keep.max_per_session is not None:
            room = limit - before + self.size()[0]
            freed |= self._remove(f"SELECT place FROM ({_RANKED}) WHERE rank > ? LIMIT ?", (keep.max_per_session, room))
        while keep.is_over(*self.size()) and before - self.size()[0] < limit:
            freed |= self._remove("SELECT min(place) FROM traces", ())
        self._resources.drop_unused(freed)
        return before - self.size()[0]

    def get(self, key: SessionKey, record_id: str) -> Json | None:
        row = self._connection.execute(
            f"SELECT body FROM traces {_WHERE}", (key.host, key.session, record_id)
        ).fetchone()
        return None if row is None else unpack(row[0])

    def of_session(self, key: SessionKey) -> tuple[Json, ...]:
        rows = self._connection.execute(
            "SELECT body FROM traces WHERE host = ? AND session = ? ORDER BY place", (key.host, key.session)
        ).fetchall()
        return tuple(unpack(row[0]) for row in rows)

    def sessions(self) -> tuple[SessionKey, ...]:
        rows = self._connection.execute("SELECT DISTINCT host, session FROM traces ORDER BY host, session")
        return tuple(SessionKey(row[0], row[1]) for row in rows.fetchall())

    def in_order(self, host: str) -> Iterator[tuple[SessionKey, Json]]:
        rows = self._connection.execute("SELECT session, body FROM traces WHERE host = ? ORDER BY place", (host,))
        for row in rows:
            yield SessionKey(host, row[0]), unpack(row[1])

    def size(self) -> tuple[int, int]:
        row = self._connection.execute("SELECT records, bytes FROM trace_totals").fetchone()
        return int(row[0]), int(row[1])

    def _columns(self, row: Row) -> tuple[int, int, bytes]:
        return row.size_bytes, self._retention.recorded_at(row.record), pack(row.record)

    def _evict(self, key: SessionKey, now: int, freed: set[str]) -> None:
        keep = self._retention
        if keep.max_age_ms is not None:
            freed |= self._remove("SELECT place FROM traces WHERE recorded_at < ?", (now - keep.max_age_ms,))
        if keep.max_per_session is not None:
            freed |= self._remove(
                "SELECT place FROM traces WHERE host = ? AND session = ? ORDER BY place DESC LIMIT -1 OFFSET ?",
                (key.host, key.session, keep.max_per_session),
            )
        while keep.is_over(*self.size()):
            freed |= self._remove("SELECT min(place) FROM traces", ())
        self._resources.drop_unused(freed)

    def _remove(self, which: str, arguments: Sequence[object]) -> set[str]:
        """Delete the rows a query picks; the revisions they named."""
        places = [row[0] for row in self._connection.execute(which, arguments).fetchall()]
        freed: set[str] = set()
        for place in places:
            rows = self._connection.execute("SELECT revision FROM trace_uses WHERE trace = ?", (place,))
            freed |= {str(row[0]) for row in rows.fetchall()}
            self._connection.execute("DELETE FROM traces WHERE place = ?", (place,))
        return freed
