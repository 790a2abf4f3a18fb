"""Resources: heads in a table, bodies and files as content-addressed blobs.

A document's revision is the hash of its stored bytes, so revisions need no table of their own: a body stays as long as
a resource or a retained trace names its hash.
"""

import sqlite3
from collections.abc import Iterable
from typing import Any, final

from tapster.actors.store.codec import decode, encode, sha256
from tapster.actors.store.errors import ReadFailed
from tapster.actors.store.values import ResourceHead, ResourceKind, StoredResource
from tapster.engine.ecma import Json
from tapster.engine.errors import FormatError

_HEAD = "kind, id, name, revision, size_bytes, created_at, updated_at, original, cover IS NOT NULL"


@final
class SqliteResources:
    """The ``Resources`` of a connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def get(self, kind: ResourceKind, resource_id: str) -> StoredResource | None:
        head = self.head(kind, resource_id)
        if head is None:
            return None
        document = self._body(head.revision, f"{kind} {resource_id}")
        if document is None:
            raise ReadFailed(f"the body of {kind} {resource_id} is missing from the store; restore a backup")
        return StoredResource(head, document)

    def head(self, kind: ResourceKind, resource_id: str) -> ResourceHead | None:
        row = self._connection.execute(
            f"SELECT {_HEAD} FROM resources WHERE kind = ? AND id = ?", (kind, resource_id)
        ).fetchone()
        return None if row is None else _head(row)

    def heads(self, kind: ResourceKind) -> tuple[ResourceHead, ...]:
        rows = self._connection.execute(f"SELECT {_HEAD} FROM resources WHERE kind = ? ORDER BY place", (kind,))
        return tuple(_head(row) for row in rows.fetchall())

    def revision(self, kind: ResourceKind, resource_id: str, revision: str) -> Json | None:
        known = self._connection.execute(
            "SELECT 1 FROM resources WHERE kind = ? AND id = ? AND revision = ?"
            " UNION ALL SELECT 1 FROM trace_uses WHERE revision = ? AND kind = ? AND id = ? LIMIT 1",
            (kind, resource_id, revision, revision, kind, resource_id),
        ).fetchone()
        return None if known is None else self._body(revision, f"{kind} {resource_id}")

    def put(
        self,
        kind: ResourceKind,
        resource_id: str,
        document: Json,
        *,
        now: int,
        original: bytes | None = None,
        cover: bytes | None = None,
    ) -> ResourceHead:
        before = self._references(kind, resource_id)
        body = encode(document)
        revision = self._keep(body)
        name = encode_name(document.get("name") if isinstance(document, dict) else None)
        files = self._keep(original), self._keep(cover)
        self._connection.execute(
            "INSERT INTO resources (kind, id, name, revision, size_bytes, created_at, updated_at, original, cover)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (kind, id) DO UPDATE SET name = excluded.name,"
            " revision = excluded.revision, size_bytes = excluded.size_bytes, updated_at = excluded.updated_at,"
            " original = ifnull(excluded.original, original), cover = ifnull(excluded.cover, cover)",
            (kind, resource_id, name, revision, len(body), now, now, *files),
        )
        self.drop_unused(before)
        found = self.head(kind, resource_id)
        assert found is not None, "a row that was just written"
        return found

    def delete(self, kind: ResourceKind, resource_id: str) -> bool:
        before = self._references(kind, resource_id)
        done = self._connection.execute("DELETE FROM resources WHERE kind = ? AND id = ?", (kind, resource_id))
        self.drop_unused(before)
        return done.rowcount > 0

    def original(self, kind: ResourceKind, resource_id: str) -> bytes | None:
        return self._blob("original", kind, resource_id)

    def cover(self, kind: ResourceKind, resource_id: str) -> bytes | None:
        return self._blob("cover", kind, resource_id)

    def drop_cover(self, kind: ResourceKind, resource_id: str) -> None:
        before = self._references(kind, resource_id)
        self._connection.execute("UPDATE resources SET cover = NULL WHERE kind = ? AND id = ?", (kind, resource_id))
        self.drop_unused(before)

    def drop_unused(self, hashes: Iterable[str]) -> None:
        """Remove the blobs of these hashes that nothing names any more."""
        self._connection.executemany(
            "DELETE FROM blobs WHERE sha256 = ?1"
            " AND NOT EXISTS (SELECT 1 FROM resources WHERE revision = ?1)"
            " AND NOT EXISTS (SELECT 1 FROM resources WHERE original = ?1)"
            " AND NOT EXISTS (SELECT 1 FROM resources WHERE cover = ?1)"
            " AND NOT EXISTS (SELECT 1 FROM trace_uses WHERE revision = ?1)",
            [(item,) for item in hashes],
        )

    def _references(self, kind: str, resource_id: str) -> list[str]:
        row = self._connection.execute(
            "SELECT revision, original, cover FROM resources WHERE kind = ? AND id = ?", (kind, resource_id)
        ).fetchone()
        return [] if row is None else [str(item) for item in row if item is not None]

    def _keep(self, data: bytes | None) -> str | None:
        if data is None:
            return None
        digest = sha256(data)
        self._connection.execute("INSERT OR IGNORE INTO blobs (sha256, data) VALUES (?, ?)", (digest, data))
        return digest

    def _blob(self, column: str, kind: str, resource_id: str) -> bytes | None:
        row = self._connection.execute(
            f"SELECT data FROM resources JOIN blobs ON sha256 = {column} WHERE kind = ? AND id = ?",
            (kind, resource_id),
        ).fetchone()
        return None if row is None else bytes(row[0])

    def _body(self, digest: str, subject: str) -> Json | None:
        row = self._connection.execute("SELECT data FROM blobs WHERE sha256 = ?", (digest,)).fetchone()
        if row is None:
            return None
        try:
            return decode(row[0])
        except FormatError as error:
            raise ReadFailed(f"the stored document of {subject} can't be read: {error.message}") from error


def encode_name(name: Json) -> str:
    """A name for the head: text without lone surrogates, which SQLite can't hold."""
    return name.encode("utf-8", "replace").decode() if isinstance(name, str) else ""


def _head(row: Any) -> ResourceHead:
    return ResourceHead(row[0], row[1], row[2], row[3], row[4], row[5], row[6], row[7], bool(row[8]))
