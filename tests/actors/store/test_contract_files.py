"""The ``files`` engine over the contract's folder: same names, same bytes, and nothing damaged is ever replaced."""

import json
from pathlib import Path
from typing import Any

import pytest

from tapster.actors.store import (
    DocumentKey,
    EnsureSelection,
    FilesEngine,
    Keyed,
    MergeSelection,
    PutDocument,
    PutResource,
    PutTrace,
    Refused,
    SelectionTable,
    SessionKey,
)
from tapster.actors.store.codec import iso_ms
from tapster.actors.store.files.atomic import AtomicWriter
from tapster.actors.store.files.selections import FilePorts, SelectionFile
from tapster.engine.assembly.store import read_store
from tapster.engine.policy import Selection, SelectionLimits
from tapster.engine.trace import TraceBook
from tests.actors.store.conftest import open_named

S1 = SessionKey("embedded", "s1")
S2 = SessionKey("embedded", "s2")
NOW = 1_700_000_000_123


def do(engine: Any, *writes: Any) -> list[Any]:
    outcomes = engine.commit([Keyed(write) for write in writes], NOW)
    for outcome in outcomes:
        if isinstance(outcome, Refused):
            raise outcome.error
    return [outcome.value for outcome in outcomes]


def test_selections_are_written_as_by_the_contracts_own_store(tmp_path: Path) -> None:
    ports = FilePorts(AtomicWriter(1, lambda: "t"), lambda: iso_ms(NOW), lambda: "p")
    (tmp_path / "a").mkdir()
    reference = SelectionFile.open(tmp_path / "a", SelectionLimits(), ports)
    reference.ensure("s1")
    reference.set("s1", {"userId": "林", "worldBookIds": ["w"]})
    reference.ensure("s2", "s1")
    engine = open_named("files", tmp_path / "b")
    defaults = Selection(preset_id="p")
    do(
        engine,
        EnsureSelection(S1, None, defaults, NOW),
        MergeSelection(S1, {"userId": "林", "worldBookIds": ["w"]}, defaults, NOW),
        EnsureSelection(S2, S1, defaults, NOW),
    )
    engine.close()
    name = "session-selections.json"
    assert (tmp_path / "b" / name).read_bytes() == (tmp_path / "a" / name).read_bytes()


def test_traces_are_written_as_by_the_contracts_own_store(tmp_path: Path) -> None:
    records = [
        {"schemaVersion": 4, "id": f"t{number}", "sessionId": "s1", "recordedAt": 1, "text": "火\ud800"}
        for number in range(3)
    ]
    engine = open_named("files", tmp_path)
    do(engine, *[PutTrace(S1, record) for record in records])
    engine.close()
    expected = TraceBook().put(records).to_text().encode()
    assert (tmp_path / "tavern-trace-records.json").read_bytes() == expected


def test_documents_have_the_contracts_places(tmp_path: Path) -> None:
    engine = open_named("files", tmp_path)
    do(
        engine,
        PutResource("preset", "p1", {"id": "p1", "name": "P"}, NOW),
        PutResource("character", "c1", {"id": "c1", "name": "C"}, NOW, b"file", b"cover"),
        PutResource("user", "u1", {"id": "u1", "name": "U", "description": ""}, NOW),
        PutResource("world-book", "w1", {"id": "w1", "name": "W"}, NOW),
        PutDocument(DocumentKey("settings", "ui-settings"), {"schemaVersion": 1}, NOW),
        PutDocument(DocumentKey("state", "user-world-book-bindings"), {"schemaVersion": 1, "bindings": {}}, NOW),
        PutDocument(DocumentKey("strategies", "a"), {"name": "A"}, NOW),
        PutDocument(DocumentKey("strategy-selections", "s1"), None, NOW),
    )
    engine.close()
    assert (tmp_path / "presets" / "p1.json").read_text() == '{\n  "id": "p1",\n  "name": "P"\n}\n'
    assert (tmp_path / "character-artifacts" / "c1.bin").read_bytes() == b"cover"
    for name in ("characters/c1.json", "users/u1.json", "world-books/w1.json", "ui-settings.json"):
        assert (tmp_path / name).exists()
    strategies = json.loads((tmp_path / "assembly-presets.json").read_text())
    assert strategies == {"version": 1, "presets": {"a": {"name": "A"}}, "selections": {"s1": None}}


@pytest.mark.parametrize(("collection", "section"), [("strategies", "presets"), ("strategy-selections", "selections")])
def test_the_assemblers_file_has_every_section_from_the_first_write_on(
    tmp_path: Path, collection: str, section: str
) -> None:
    engine = open_named("files", tmp_path)
    do(engine, PutDocument(DocumentKey(collection, "a"), None, NOW))
    engine.close()
    found = json.loads((tmp_path / "assembly-presets.json").read_text())
    assert found == {"version": 1, "presets": {}, "selections": {}} | {section: {"a": None}}
    if section == "selections":
        assert read_store(found).selections == {"a": None}


def test_an_older_selections_file_is_taken_over(tmp_path: Path) -> None:
    old = {"schemaVersion": 1, "sessions": {"s1": {"presetId": "p", "junk": 1}, "bad id": {}}}
    (tmp_path / "session-selections.json").write_text(json.dumps(old))
    engine = open_named("files", tmp_path)
    with engine.read() as tables:
        assert SelectionTable(tables).all() == ((S1, Selection(preset_id="p")),)
    engine.close()
    assert json.loads((tmp_path / "session-selections.json").read_text())["schemaVersion"] == 2


@pytest.mark.parametrize(
    ("name", "write", "code"),
    [
        ("session-selections.json", EnsureSelection(S1, None, Selection(), NOW), "STORE_READ_FAILED"),
        ("tavern-trace-records.json", PutTrace(S1, {"schemaVersion": 4, "id": "t"}), "STORE_READ_FAILED"),
        ("assembly-presets.json", PutDocument(DocumentKey("strategies", "a"), {}, NOW), "STORE_READ_FAILED"),
    ],
)
def test_a_damaged_shared_file_stays_and_answers_its_error(tmp_path: Path, name: str, write: Any, code: str) -> None:
    (tmp_path / name).write_bytes(b'{"half')
    engine = FilesEngine(tmp_path)
    other = PutDocument(DocumentKey("chats", "c"), {"n": 1}, NOW)
    outcomes = engine.commit([Keyed(write), Keyed(other)], NOW)
    assert isinstance(outcomes[0], Refused)
    assert outcomes[0].error.code == code
    with engine.read() as tables:
        assert tables.documents.get(other.key) is not None
    engine.close()
    assert (tmp_path / name).read_bytes() == b'{"half'


def test_unreadable_resources_are_left_out_of_lists(tmp_path: Path) -> None:
    engine = open_named("files", tmp_path)
    do(engine, PutResource("preset", "p1", {"id": "p1", "name": "P"}, NOW))
    (tmp_path / "presets" / "broken.json").write_text("{")
    (tmp_path / "presets" / "folder.json").mkdir()
    (tmp_path / "presets" / "note.txt").write_text("x")
    with engine.read() as tables:
        assert [head.id for head in tables.resources.heads("preset")] == ["p1"]
    engine.close()
