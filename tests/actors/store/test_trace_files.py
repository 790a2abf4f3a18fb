"""The contract's trace files on disk: written whole or not at all, older ones never touched (spec/trace §10, §11)."""

import itertools
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tapster.actors.store.files.atomic import AtomicWriter
from tapster.actors.store.files.traces import (
    AUDITS_FILE,
    RECORDS_FILE,
    SNAPSHOTS_FILE,
    AuditFile,
    LegacyTraces,
    TraceFiles,
)
from tapster.engine.errors import RequestError, StoreError

Json = Any


def writer() -> AtomicWriter:
    return AtomicWriter(7, map(str, itertools.count()).__next__)


def record(name: str) -> Json:
    return {
        "schemaVersion": 4,
        "id": name,
        "sessionId": "s",
        "turn": 1,
        "step": 0,
        "attempt": 1,
        "recordedAt": 1,
        "status": "assembled",
        "contentStatus": "reference-only",
    }


def test_what_was_put_is_there_after_a_restart(tmp_path: Path) -> None:
    files = TraceFiles(tmp_path, writer())
    files.put([record("a")])
    files.put_audits("s", [{"captureId": "b", "id": "1:0:1", "turn": 1, "step": 0, "attempt": 1, "recordedAt": 2}])
    again = TraceFiles(tmp_path, writer())
    assert [row["id"] for row in again.sources("s").records] == ["a", "b"]
    text = (tmp_path / RECORDS_FILE).read_text(encoding="utf-8")
    assert text == again.book.to_text()
    assert json.loads(text)["schemaVersion"] == 4
    assert os.listdir(tmp_path) == [RECORDS_FILE]


def test_a_failed_write_changes_neither_file_nor_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = TraceFiles(tmp_path, writer())
    files.put([record("a")])
    before = (tmp_path / RECORDS_FILE).read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "no space left")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        files.put([record("b")])
    monkeypatch.undo()
    assert (tmp_path / RECORDS_FILE).read_bytes() == before
    assert [row["id"] for row in files.sources("s").records] == ["a"]
    assert os.listdir(tmp_path) == [RECORDS_FILE]


def test_a_bad_record_among_good_ones_writes_nothing(tmp_path: Path) -> None:
    files = TraceFiles(tmp_path, writer())
    with pytest.raises(RequestError):
        files.put([record("a"), {**record("b"), "sessionId": "bad id"}])
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"schemaVersion":3,"records":[]}',
        '{"schemaVersion":4,"records":{}}',
        "\xff",
        '{"schemaVersion":4',
    ],
)
def test_an_unreadable_records_file_stops_the_start(tmp_path: Path, text: str) -> None:
    (tmp_path / RECORDS_FILE).write_text(text, encoding="latin-1")
    with pytest.raises(StoreError):
        TraceFiles(tmp_path, writer())
    assert (tmp_path / RECORDS_FILE).read_text(encoding="latin-1") == text


def test_an_oversized_records_file_stops_the_start(tmp_path: Path) -> None:
    with (tmp_path / RECORDS_FILE).open("wb") as file:
        file.truncate(32 * 1024 * 1024 + 1)
    with pytest.raises(StoreError, match="bytes"):
        TraceFiles(tmp_path, writer())


def test_opening_takes_usable_rows_and_rewrites_nothing(tmp_path: Path) -> None:
    rows = [
        {**record("a"), "sections": [{"name": "n", "text": "BODY", "sources": [{"text": "BODY"}]}]},
        {**record("b"), "schemaVersion": 3},
        {**record("c"), "sessionId": "-"},
        record(""),
        {**record("big"), "pad": "x" * (2 * 1024 * 1024)},
        7,
    ]
    text = json.dumps({"schemaVersion": 4, "records": rows})
    (tmp_path / RECORDS_FILE).write_text(text, encoding="utf-8")
    files = TraceFiles(tmp_path, writer())
    assert [row["id"] for row in files.sources("s").records] == ["a"]
    assert "BODY" not in files.book.to_text()
    assert (tmp_path / RECORDS_FILE).read_text(encoding="utf-8") == text


def test_older_files_are_shown_and_left_alone(tmp_path: Path) -> None:
    old = {"schemaVersion": 3, "id": "o", "sessionId": "s", "recordedAt": 1, "sections": [{"text": "kept"}]}
    snapshots = json.dumps({"schemaVersion": 3, "records": [old, {**old, "sessionId": "t"}]})
    audits = json.dumps({"schemaVersion": 1, "sessions": {"s": {"records": [{"id": "1:0:1"}, {"id": ""}, 5]}, "-": 1}})
    (tmp_path / SNAPSHOTS_FILE).write_text(snapshots, encoding="utf-8")
    (tmp_path / AUDITS_FILE).write_text(audits, encoding="utf-8")
    files = TraceFiles(tmp_path, writer())
    files.put([record("a")])
    assert list(files.sources("s").snapshots) == [old]
    assert [row["id"] for row in files.sources("s").audits] == ["1:0:1"]
    assert (tmp_path / SNAPSHOTS_FILE).read_text(encoding="utf-8") == snapshots
    assert (tmp_path / AUDITS_FILE).read_text(encoding="utf-8") == audits


def test_an_oversized_audit_file_is_a_warning(tmp_path: Path) -> None:
    with (tmp_path / AUDITS_FILE).open("wb") as file:
        file.truncate(16 * 1024 * 1024 + 1)
    legacy = LegacyTraces(tmp_path)
    assert len(legacy.warnings) == 1
    assert legacy.rows("s").audits == ()


def test_the_v1_file_round_trips(tmp_path: Path) -> None:
    audit = {"id": "1:0:1", "turn": 1, "step": 0, "attempt": 1, "recordedAt": 1, "updatedAt": 2}
    file = AuditFile(tmp_path, writer())
    file.put("s", [audit])
    text = (tmp_path / AUDITS_FILE).read_text(encoding="utf-8")
    assert text.endswith("}\n")
    assert (tmp_path / AUDITS_FILE).stat().st_mode & 0o777 == 0o600
    assert AuditFile(tmp_path, writer()).book.to_text() == text
    with pytest.raises(RequestError):
        file.put("s", [{**audit, "turn": "1"}])
    assert (tmp_path / AUDITS_FILE).read_text(encoding="utf-8") == text
