"""The contract's folders: taken over untouched, written byte for byte, and back again."""

import json
from pathlib import Path
from typing import Any

import pytest

from tapster.actors.store import (
    ContractFolder,
    DocumentKey,
    FilesEngine,
    Keyed,
    PutDocument,
    PutTrace,
    ReadFailed,
    Refused,
    SessionKey,
    StoreInUse,
    export_folder,
    import_folder,
)
from tests.actors.store.conftest import open_named
from tests.actors.store.test_transfer import fill, whole

NOW = 1_700_000_000_000
Bytes = dict[str, bytes]


def tree(folder: Path) -> Bytes:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != ".tapster.lock"
    }


def contract_files(folder: Path) -> Bytes:
    return {name: data for name, data in tree(folder).items() if not name.startswith(("tapster/", "hosts/"))}


def installation(home: Path) -> ContractFolder:
    """Both folders of the contract, with something of every kind, made by the engine that writes them."""
    folder = ContractFolder(home / "tavern", home / "dsh-prompt-assembler")
    engine = FilesEngine(folder.tavern, assembler=folder.assembler)
    fill(engine)
    # An older record that is written again is last in the file, whatever its time says.
    again = PutTrace(SessionKey("embedded", "a"), {"schemaVersion": 4, "id": "t0", "recordedAt": 1, "status": "x"})
    ownership = PutDocument(DocumentKey("state", "prompt-template-ownership"), {"mode": "native", "n": [1]}, NOW)
    outcomes = engine.commit([Keyed(again), Keyed(ownership)], NOW)
    assert not [outcome for outcome in outcomes if isinstance(outcome, Refused)]
    engine.close()
    (folder.tavern / "tavern-traces.json").write_text('{"schemaVersion": 1, "sessions": {}}')
    return folder


@pytest.mark.parametrize("engine", ["sqlite", "files", "memory"])
def test_what_is_taken_over_is_written_back_byte_for_byte(tmp_path: Path, engine: str) -> None:
    folder = installation(tmp_path / "theirs")
    assert folder.assembler is not None
    before = tree(tmp_path / "theirs")
    assert set(contract_files(folder.assembler)) == {"assembly-presets.json"}
    assert (folder.tavern / "prompt-template-ownership.json").read_bytes() == b'{"mode":"native","n":[1]}'
    home = tmp_path / "ours"
    home.mkdir()
    ours = open_named(engine, home)
    taken = import_folder(ContractFolder.found(folder.tavern), ours, home, NOW)
    assert taken.copied.problems == ()
    assert taken.replaced == {}
    assert taken.legacy == ("tavern-traces.json",)
    assert tree(tmp_path / "theirs") == before
    back = ContractFolder(tmp_path / "back" / "tavern", tmp_path / "back" / "dsh-prompt-assembler")
    written = export_folder(ours, back, home, NOW)
    assert written.copied.problems == ()
    assert back.assembler is not None
    assert contract_files(back.tavern) == contract_files(folder.tavern)
    assert contract_files(back.assembler) == contract_files(folder.assembler)
    again = FilesEngine(back.tavern, assembler=back.assembler)
    assert whole(again) == whole(ours)
    again.close()
    ours.close()


def test_a_dry_run_changes_nothing_and_says_what_would_be_replaced(tmp_path: Path) -> None:
    folder = installation(tmp_path / "theirs")
    (folder.tavern / "presets" / "broken.json").write_text("{")
    (folder.tavern / "notes.txt").write_text("mine")
    home = tmp_path / "ours"
    ours = open_named("sqlite", home)
    ours.commit([Keyed(PutDocument(DocumentKey("settings", "ui-settings"), {"n": "other"}, NOW))], NOW)
    before = whole(ours)
    report = import_folder(folder, ours, home, NOW, dry_run=True)
    assert report.replaced == {"settings": 1}
    assert report.copied.counts["preset"] == 1
    assert report.unknown == ("notes.txt",)
    assert [problem for problem in report.copied.problems if "broken.json" in problem]
    assert whole(ours) == before
    assert not (home / "tavern-traces.json").exists()
    would = export_folder(ours, ContractFolder(tmp_path / "out"), home, NOW, dry_run=True)
    assert would.copied.counts == {"settings": 1}
    assert not (tmp_path / "out").exists()
    ours.close()


def test_an_export_never_writes_over_files_unasked(tmp_path: Path) -> None:
    folder = installation(tmp_path / "theirs")
    before = tree(tmp_path / "theirs")
    ours = open_named("memory", tmp_path)
    ours.commit([Keyed(PutDocument(DocumentKey("settings", "ui-settings"), {"n": "other"}, NOW))], NOW)
    with pytest.raises(StoreInUse, match="--force"):
        export_folder(ours, folder, tmp_path, NOW)
    assert tree(tmp_path / "theirs") == before
    report = export_folder(ours, folder, tmp_path, NOW, force=True)
    assert report.replaced == {"settings": 1}
    ours.close()


def test_an_older_copy_in_the_tavern_folder_counts_when_there_is_no_other(tmp_path: Path) -> None:
    tavern, assembler = tmp_path / "tavern", tmp_path / "dsh-prompt-assembler"
    tavern.mkdir()
    assembler.mkdir()
    state: Any = {"version": 1, "presets": {"mine": {"name": "M"}}, "selections": {"s": None}}
    (tavern / "assembly-presets.json").write_text(json.dumps(state))
    folder = ContractFolder.found(tavern, assembler)
    ours = open_named("memory", tmp_path)
    report = import_folder(folder, ours, tmp_path, NOW)
    assert report.copied.counts == {"strategies": 1, "strategy-selections": 1}
    ours.close()
    with pytest.raises(ReadFailed, match="no folder"):
        ContractFolder.found(tmp_path / "nothing")


def test_changes_in_both_folders_are_one(tmp_path: Path) -> None:
    """The journal reaches the other folder too: what a crash interrupted is completed there."""
    from tapster.actors.store.files.disk import Disk

    class Stopping(Disk):
        def _apply_one(self, path: Path, change: object, prepared: Path | None = None) -> None:
            if path.name == "assembly-presets.json":
                raise OSError(5, "the machine stops here", str(path))
            Disk._apply_one(self, path, change, prepared)  # type: ignore[arg-type]

    tavern, assembler = tmp_path / "tavern", tmp_path / "dsh-prompt-assembler"
    batch = [
        Keyed(PutDocument(DocumentKey(collection, "x"), {"n": 1}, NOW)) for collection in ("settings", "strategies")
    ]
    engine = FilesEngine(tavern, assembler=assembler, disk=Stopping)
    with pytest.raises(Exception, match="the machine stops here"):
        engine.commit(batch, NOW)
    engine.close()
    engine = FilesEngine(tavern, assembler=assembler)
    with engine.read() as tables:
        assert tables.documents.get(DocumentKey("strategies", "x")) is not None
        assert tables.documents.get(DocumentKey("settings", "x")) is not None
    engine.close()
    assert (assembler / "assembly-presets.json").exists()
