"""What a session keeps besides its log and its selection: activation settings, and its state by event seq.

A state is a row of its own under the seq of the first host event after it, so writing one costs the same in a long
session as in a short one, and a fork copies the rows before its cut as it copies the events.

Source: design §4 "Cheap now, costly later".
"""

from collections.abc import Iterator
from typing import Final, final

import attrs

from tapster.engine.ecma import Json, is_record

from .interface import Tables
from .selections import SelectionTable
from .values import ANY_BASE, Document, DocumentKey, SessionKey

SETTINGS: Final = "session-settings"
HEADS: Final = "session-states"
ROWS: Final = "session-state-rows"


def settings_key(key: SessionKey) -> DocumentKey:
    """The document with a session's activation settings."""
    return DocumentKey(SETTINGS, key.session, key.host)


@final
@attrs.frozen
class SessionStates:
    """The states of sessions inside one transaction or read."""

    tables: Tables

    def at(self, key: SessionKey, seq: int) -> Json | None:
        """The last state at or before a seq, None when there is none."""
        newest = self._newest(key)
        if newest is None:
            return None
        if newest <= seq:
            found = self.tables.documents.get(_row_key(key, newest))
            return None if found is None else found.value
        rows = [row for row in self._rows(key) if _seq(row) <= seq]
        return rows[-1].value if rows else None

    def put(self, key: SessionKey, seq: int, state: Json, now: int) -> None:
        """Keep a state; those of later seqs belong to events that were never stored, and go."""
        newest = self._newest(key)
        if newest is not None and newest > seq:
            self._drop([row for row in self._rows(key) if _seq(row) > seq])
        self.tables.documents.put(_row_key(key, seq), state, base=ANY_BASE, now=now)
        self.tables.documents.put(_head_key(key), {"seq": seq}, base=ANY_BASE, now=now)

    def copy(self, source: SessionKey, target: SessionKey, before: int, now: int) -> None:
        """Give a session the states of another that lie before a seq."""
        for row in self._rows(source):
            if _seq(row) < before:
                self.put(target, _seq(row), row.value, now)

    def delete(self, key: SessionKey) -> None:
        """Forget a session's states."""
        if self.tables.documents.delete(_head_key(key)):
            self._drop(self._rows(key))

    def _newest(self, key: SessionKey) -> int | None:
        head = self.tables.documents.get(_head_key(key))
        return int(head.value["seq"]) if head is not None and is_record(head.value) else None

    def _rows(self, key: SessionKey) -> list[Document]:
        place = _row_key(key, 0)
        return sorted(self._stored(place), key=_seq)

    def _stored(self, place: DocumentKey) -> Iterator[Document]:
        return self.tables.documents.items(place.collection, place.scope)

    def _drop(self, rows: list[Document]) -> None:
        for row in rows:
            self.tables.documents.delete(row.key)


def _head_key(key: SessionKey) -> DocumentKey:
    return DocumentKey(HEADS, key.session, key.host)


def _row_key(key: SessionKey, seq: int) -> DocumentKey:
    # The scope is the session, so that its rows are found without looking at those of others.
    return DocumentKey(f"{ROWS}-{key.host}", f"{seq:016}", key.session)


def _seq(row: Document) -> int:
    return int(row.key.name)


@final
@attrs.frozen
class PutSessionState:
    """Keep a session's state under a seq."""

    key: SessionKey
    seq: int
    state: Json
    now: int

    def apply(self, tables: Tables) -> None:
        SessionStates(tables).put(self.key, self.seq, self.state, self.now)

    def repeat(self, tables: Tables) -> None:
        return None


@final
@attrs.frozen
class InheritSession:
    """Give a session that begins below another its parent's settings, and the states before a seq.

    A session that has a selection of its own began earlier and keeps what it has.
    """

    key: SessionKey
    parent: SessionKey
    before: int
    now: int

    def apply(self, tables: Tables) -> None:
        if SelectionTable(tables).find(self.key) is not None:
            return
        settings = tables.documents.get(settings_key(self.parent))
        if settings is not None:
            tables.documents.put(settings_key(self.key), settings.value, base=ANY_BASE, now=self.now)
        SessionStates(tables).copy(self.parent, self.key, self.before, self.now)

    def repeat(self, tables: Tables) -> None:
        return None


def forget_session(tables: Tables, key: SessionKey) -> None:
    """Delete the documents of a session that goes."""
    tables.documents.delete(settings_key(key))
    SessionStates(tables).delete(key)
