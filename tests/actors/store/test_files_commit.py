"""Several files that change as one: what is refused before the journal decides leaves nothing, now or later."""

import errno
import os
from collections import namedtuple
from pathlib import Path

import pytest

from tapster.actors.store import CommitFailed, DocumentKey, Keyed
from tapster.actors.store.files import FilesEngine
from tapster.actors.store.files.atomic import AtomicWriter
from tapster.actors.store.values import SessionKey
from tapster.actors.store.writes import AppendEvents, CreateSession, PutDocument

NOW = 1
KEY = SessionKey("h", "s")
Room = namedtuple("Room", "f_blocks f_bavail f_frsize")


def batch(names: str) -> list[Keyed]:
    return [Keyed(PutDocument(DocumentKey("chats", name), {"n": name}, NOW)) for name in names]


def stored(engine: FilesEngine) -> set[str]:
    with engine.read() as tables:
        return {document.key.name for document in tables.documents.items("chats")}


@pytest.mark.parametrize("failing", range(4))
def test_a_disk_that_fills_up_before_all_is_written_refuses_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    engine = FilesEngine(tmp_path)
    engine.commit(batch("ab"), NOW)
    real, calls = AtomicWriter.prepare, iter(range(100))

    def prepare(self: AtomicWriter, target: Path, data: bytes) -> Path:
        # Three files and the journal.
        if next(calls) == failing:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(target))
        return real(self, target, data)

    monkeypatch.setattr(AtomicWriter, "prepare", prepare)
    with pytest.raises(CommitFailed, match="No space left"):
        engine.commit(batch("cde"), NOW)
    monkeypatch.undo()
    assert stored(engine) == set("ab")
    engine.commit(batch("fg"), NOW)
    assert stored(engine) == set("abfg")
    engine.close()
    engine = FilesEngine(tmp_path)
    assert stored(engine) == set("abfg")
    engine.close()
    assert [path.name for path in tmp_path.rglob("*.tmp")] == []


def test_additions_that_have_no_room_are_refused_before_the_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = FilesEngine(tmp_path)
    engine.commit([Keyed(CreateSession(KEY, {}, NOW))], NOW)
    events = [{"type": "note", "seq": 0, "data": {}}]
    change = [Keyed(AppendEvents(KEY, 0, events, NOW)), *batch("a")]
    monkeypatch.setattr(os, "statvfs", lambda path: Room(9, 0, 4096))
    with pytest.raises(CommitFailed, match="No space left"):
        engine.commit(change, NOW)
    monkeypatch.undo()
    engine.commit(batch("b"), NOW)
    with engine.read() as tables:
        assert list(tables.sessions.read(KEY, 0, None)) == []
    engine.commit(change, NOW)
    with engine.read() as tables:
        assert len(list(tables.sessions.read(KEY, 0, None))) == 1
    assert stored(engine) == set("ab")
    engine.close()
