"""Documents in one table; their order of first writing is the row order."""

import sqlite3
from collections.abc import Iterator
from typing import Any, final

from tapster.actors.store.checks import conflict
from tapster.actors.store.codec import decode, encode, sha256
from tapster.actors.store.errors import ReadFailed
from tapster.actors.store.values import AnyBase, Base, Document, DocumentKey
from tapster.engine.ecma import Json
from tapster.engine.errors import FormatError

_WHERE = "WHERE collection = ? AND scope = ? AND name = ?"


@final
class SqliteDocuments:
    """The ``Documents`` of a connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def get(self, key: DocumentKey) -> Document | None:
        try:
            row = self._connection.execute(
                f"SELECT body, revision, updated_at FROM documents {_WHERE}", (key.collection, key.scope, key.name)
            ).fetchone()
        except sqlite3.OperationalError as error:
            raise ReadFailed(f"the stored document {key} can't be read: {error}") from error
        return None if row is None else _document(key, row)

    def put(self, key: DocumentKey, value: Json, *, base: Base, now: int) -> Document:
        if not isinstance(base, AnyBase):
            self._check(key, base)
        body = encode(value)
        revision = sha256(body)
        self._connection.execute(
            "INSERT INTO documents (collection, scope, name, revision, updated_at, body) VALUES (?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (collection, scope, name) DO UPDATE"
            " SET revision = excluded.revision, updated_at = excluded.updated_at, body = excluded.body",
            (key.collection, key.scope, key.name, revision, now, body),
        )
        return Document(key, value, revision, now)

    def delete(self, key: DocumentKey) -> bool:
        done = self._connection.execute(f"DELETE FROM documents {_WHERE}", (key.collection, key.scope, key.name))
        return done.rowcount > 0

    def items(self, collection: str, scope: str | None = "") -> Iterator[Document]:
        rows = self._connection.execute(
            "SELECT scope, name, body, revision, updated_at FROM documents"
            " WHERE collection = ? AND (? IS NULL OR scope = ?) ORDER BY place",
            (collection, scope, scope),
        ).fetchall()
        for row in rows:
            yield _document(DocumentKey(collection, row[1], row[0]), row[2:])

    def collections(self) -> tuple[str, ...]:
        rows = self._connection.execute("SELECT DISTINCT collection FROM documents ORDER BY collection")
        return tuple(str(row[0]) for row in rows.fetchall())

    def count(self, collection: str) -> tuple[int, int]:
        row = self._connection.execute(
            "SELECT count(*), ifnull(sum(length(body)), 0) FROM documents WHERE collection = ?", (collection,)
        ).fetchone()
        return int(row[0]), int(row[1])

    def _check(self, key: DocumentKey, base: str | None) -> None:
        row = self._connection.execute(
            f"SELECT revision FROM documents {_WHERE}", (key.collection, key.scope, key.name)
        ).fetchone()
        present = None if row is None else str(row[0])
        if present != base:
            raise conflict(key, base, present)


def _document(key: DocumentKey, row: Any) -> Document:
    try:
        return Document(key, decode(row[0]), str(row[1]), int(row[2]))
    except FormatError as error:
        raise ReadFailed(f"the stored document {key} can't be read: {error.message}") from error
