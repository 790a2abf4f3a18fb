"""The contract's selections file: written through, whole or not at all."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from tapster.actors.store.files.atomic import AtomicWriter
from tapster.actors.store.files.selections import FILE_NAME, FilePorts, SelectionFile
from tapster.engine.errors import FormatError
from tapster.engine.policy import SelectionLimits, SessionSelectionLimitError

NOW = "2026-01-01T00:00:00.000Z"


def opened(folder: Path, limits: SelectionLimits | None = None) -> SelectionFile:
    names = map(str, itertools.count())
    ports = FilePorts(AtomicWriter(1, names.__next__), lambda: NOW, lambda: "default")
    return SelectionFile.open(folder, limits or SelectionLimits(), ports)


def document(folder: Path) -> Any:
    return json.loads((folder / FILE_NAME).read_text(encoding="utf-8"))


def test_reading_writes_nothing(tmp_path: Path) -> None:
    store = opened(tmp_path)
    assert store.get("s").preset_id == "default"
    assert not store.has("s")
    assert list(tmp_path.iterdir()) == []


def test_a_change_is_there_after_reopening(tmp_path: Path) -> None:
    opened(tmp_path).set("s", {"userId": "u"})
    assert opened(tmp_path).get("s").user_id == "u"
    assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]


def test_a_refused_change_leaves_memory_and_file(tmp_path: Path) -> None:
    store = opened(tmp_path, SelectionLimits(max_sessions=1))
    store.set("a", {})
    before = document(tmp_path)
    with pytest.raises(SessionSelectionLimitError):
        store.set_many(["b", "c"], {})
    assert document(tmp_path) == before
    assert not store.has("b")


def test_a_failing_disk_leaves_memory_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = opened(tmp_path)
    store.set("a", {"userId": "u"})

    def broken(self: Path, target: Path) -> Path:
        raise OSError(28, "no space left")

    monkeypatch.setattr(Path, "replace", broken)
    with pytest.raises(OSError, match="no space"):
        store.set("a", {"userId": "v"})
    assert store.get("a").user_id == "u"
    assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]


def test_an_old_document_is_written_anew(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text('{"schemaVersion":1,"sessions":{"s":{"userId":"u"},"bad id":{}}}')
    opened(tmp_path)
    assert document(tmp_path)["sessions"]["s"]["updatedAt"] == NOW
    assert list(document(tmp_path)["sessions"]) == ["s"]


def test_a_broken_document_stays(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text("{")
    with pytest.raises(FormatError):
        opened(tmp_path)
    assert (tmp_path / FILE_NAME).read_text() == "{"


def test_bad_ids_are_refused_everywhere(tmp_path: Path) -> None:
    store = opened(tmp_path)
    for call in (store.get, store.has, store.ensure, store.delete):
        with pytest.raises(FormatError):
            call("no id")
