"""Moving all state between engines, and importing from a folder without touching it."""

from pathlib import Path
from typing import Any

import pytest

from tapster.actors.store import (
    AppendEvents,
    CreateSession,
    DocumentKey,
    EnsureSelection,
    FilesEngine,
    Keyed,
    PutDocument,
    PutResource,
    PutTrace,
    Refused,
    SessionKey,
    copy_state,
)
from tapster.engine.policy import Selection
from tests.actors.store.conftest import ENGINES, open_named
from tests.property.test_store_engines import state

KEYS = [SessionKey(host, session) for host in ("embedded", "far") for session in ("a", "b")]


def fill(engine: Any) -> None:
    writes: list[Any] = []
    for number, key in enumerate(KEYS):
        writes.append(CreateSession(key, {"id": key.session}, 5 + number, defaults=Selection(preset_id=key.host)))
        writes.append(AppendEvents(key, 0, [{"type": "ab"[seq % 2], "seq": seq} for seq in range(5)], 20 + number))
        record = {"schemaVersion": 4, "id": f"t{number}", "sessionId": key.session, "recordedAt": 9 - number}
        writes.append(PutTrace(key, record))
    places = [
        *(
            DocumentKey(name, "x")
            for name in ("chats", "settings", "state", "strategies", "strategy-selections", "mvu")
        ),
        DocumentKey("mvu", "y", "far"),
        DocumentKey("settings", "ui-settings"),
        DocumentKey("state", "ui-settings"),
        DocumentKey("state", "session-selections"),
        DocumentKey("settings", "x", "far"),
    ]
    writes += [PutDocument(key, {"n": str(key)}, 3) for key in places]
    writes.append(EnsureSelection(SessionKey("third", "z"), None, Selection(user_id="u"), 3))
    writes.append(PutResource("preset", "p0", {"name": "P", "x": "\ud800"}, 4, b"original"))
    writes.append(PutResource("character", "c", {"name": "C"}, 4, b"card", b"cover"))
    outcomes = engine.commit([Keyed(write) for write in writes], 1)
    assert not [outcome for outcome in outcomes if isinstance(outcome, Refused)]


def whole(engine: Any) -> Any:
    with engine.read() as tables:
        collections = tables.documents.collections()
        documents = {
            (name, item.key.name, item.key.scope): item.value
            for name in collections
            for item in tables.documents.items(name, None)
        }
        cover = tables.resources.cover("character", "c")
        return state(tables), collections, documents, cover, tables.traces.sessions()


@pytest.mark.parametrize("source", ENGINES)
@pytest.mark.parametrize("target", ENGINES)
def test_everything_arrives(tmp_path: Path, source: str, target: str) -> None:
    first, second = open_named(source, tmp_path / "a"), open_named(target, tmp_path / "b")
    fill(first)
    done = copy_state(first, second, 1)
    assert done.problems == ()
    assert whole(second) == whole(first)
    again = copy_state(first, second, 1)
    assert len(again.problems) == len(KEYS), "logs that are there are kept"
    assert whole(second) == whole(first)
    first.close()
    second.close()


def test_an_import_leaves_the_folder_as_it_was(tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    (folder / "presets").mkdir(parents=True)
    (folder / "presets" / "p.json").write_text('{"name": "P"}')
    (folder / "presets" / "q.json").write_text("{")
    (folder / "ui-settings.json").write_text("{half")
    (folder / "session-selections.json").write_text('{"schemaVersion": 1, "sessions": {"s": {"presetId": "p"}}}')
    before = {path: path.is_file() and path.read_bytes() for path in folder.rglob("*")}
    source, target = FilesEngine(folder, read_only=True), open_named("sqlite", tmp_path / "ours")
    copy_state(source, target, 1)
    source.close()
    assert {path: path.is_file() and path.read_bytes() for path in folder.rglob("*")} == before
    with target.read() as tables:
        assert [head.name for head in tables.resources.heads("preset")] == ["P"]
        assert tables.documents.get(DocumentKey("selections", "s", "embedded")) is not None
    target.close()
