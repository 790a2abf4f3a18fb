"""Traces in the contract's records file, under its retention, with the revisions they name kept beside it."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import final

import attrs

from tapster.actors.store.errors import ReadFailed
from tapster.actors.store.retention import Retention
from tapster.actors.store.values import ResourceUse, SessionKey
from tapster.engine.ecma import Json, stringify, utf8
from tapster.engine.errors import StoreError
from tapster.engine.trace import TraceBook, open_book
from tapster.engine.trace.retention import Key, Row

from .layout import Layout
from .resources import FileResources
from .staging import Staging
from .traces import RECORDS_FILE

_USES = "tapster/trace-uses.json"


@final
class FileTraces:
    """The ``Traces`` of a data folder: one records file for each host."""

    def __init__(self, staging: Staging, layout: Layout, resources: FileResources, retention: Retention) -> None:
        self._staging = staging
        self._layout = layout
        self._resources = resources
        self._retention = retention
        self._books: dict[str, TraceBook] = {}
        self._texts: dict[int, tuple[Row, bytes]] = {}

    def forget(self) -> None:
        """Read the files again."""
        self._books.clear()
        self._texts.clear()

    def put(self, key: SessionKey, record: Json, uses: Sequence[ResourceUse] = ()) -> Json:
        book = self._book(key.host)
        after = book.put([{**record, "sessionId": key.session}])
        place = (key.session, record["id"])
        stored = after.rows[place].record if place in after.rows else record
        kept = [[use.kind, use.id, use.revision] for use in uses if self._resources.keep(use)]
        self._save(key, after, {place: kept})
        return stored

    def put_audits(self, key: SessionKey, audits: Sequence[Json]) -> None:
        self._save(key, self._book(key.host).put_audits(key.session, audits), {})

    def sweep(self, now: int, limit: int) -> int:
        return 0  # each write keeps the whole file within its bounds

    def get(self, key: SessionKey, record_id: str) -> Json | None:
        found = self._book(key.host).find(key.session, record_id)
        return None if found is None else dict(found)

    def of_session(self, key: SessionKey) -> tuple[Json, ...]:
        return tuple(dict(record) for record in self._book(key.host).session(key.session))

    def sessions(self) -> tuple[SessionKey, ...]:
        found = {
            SessionKey(host, session) for host, _ in self._layout.host_folders() for session, _ in self._book(host).rows
        }
        return tuple(sorted(found, key=lambda key: (key.host, key.session)))

    def in_order(self, host: str) -> Iterator[tuple[SessionKey, Json]]:
        for (session, _), row in self._book(host).rows.items():
            yield SessionKey(host, session), dict(row.record)

    def size(self) -> tuple[int, int]:
        books = [self._book(host) for host, _ in self._layout.host_folders()]
        rows = [row for book in books for row in book.rows.values()]
        return len(rows), sum(row.size_bytes for row in rows)

    def _book(self, host: str) -> TraceBook:
        if host not in self._books:
            path = self._layout.host_folder(host) / RECORDS_FILE
            try:
                self._books[host] = open_book(self._staging.read(path), self._retention.limits)
            except StoreError as error:
                raise ReadFailed(error.message, details={"document": path.stem}) from error
        return self._books[host]

    def _save(self, key: SessionKey, book: TraceBook, uses: dict[Key, list[Json]]) -> None:
        book = self._trimmed(book, key.session)
        self._staging.put(self._layout.host_folder(key.host) / RECORDS_FILE, self._text(book))
        self._staging.undo.set(self._books, key.host, book)
        self._save_uses(self._layout.host_folder(key.host) / _USES, book, uses)

    def _trimmed(self, book: TraceBook, session: str) -> TraceBook:
        """The book under the bounds that a person added to the contract's."""
        keep = self._retention
        rows = dict(book.rows)
        if keep.max_age_ms is not None and rows:
            oldest = max(keep.recorded_at(row.record) for row in rows.values()) - keep.max_age_ms
            rows = {place: row for place, row in rows.items() if keep.recorded_at(row.record) >= oldest}
        if keep.max_per_session is not None:
            mine = [place for place in rows if place[0] == session]
            for place in mine[: max(0, len(mine) - keep.max_per_session)]:
                del rows[place]
        return attrs.evolve(book, rows=rows)

    def _text(self, book: TraceBook) -> bytes:
        """The file's bytes; each record is turned into text once."""
        texts = {}
        for row in book.rows.values():
            known = self._texts.get(id(row))
            texts[id(row)] = known if known is not None and known[0] is row else (row, utf8(stringify(row.record)))
        self._texts = texts
        return b'{"schemaVersion":4,"records":[' + b",".join(text for _, text in texts.values()) + b"]}"

    def _save_uses(self, path: Path, book: TraceBook, added: dict[Key, list[Json]]) -> None:
        document = self._staging.load(path, keep=True) or {"uses": {}}
        before: dict[str, list[Json]] = document["uses"]
        changed = {**before, **{"\n".join(place): kept for place, kept in added.items() if kept}}
        live = {"\n".join(place) for place in book.rows}
        after = {place: kept for place, kept in changed.items() if place in live}
        if after == before:
            return
        self._staging.store(path, {"uses": after})
        named = {tuple(use) for kept in after.values() for use in kept}
        for use in {tuple(use) for kept in changed.values() for use in kept} - named:
            self._resources.release(ResourceUse(*use))
