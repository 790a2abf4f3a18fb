"""Copies while serving, and putting them back: checked first, nothing overwritten."""

import stat
import tarfile
from pathlib import Path

import pytest

from tapster.actors.store import (
    BackupFailed,
    BackupUnusable,
    DocumentKey,
    Keyed,
    PutDocument,
    StoreConfig,
    StoreInUse,
    StoreLocked,
    open_engine,
    restore_backup,
)
from tapster.actors.store.opening import EngineName
from tests.actors.store.test_contract_folder import tree

CHAT = DocumentKey("chats", "chat-1")
DURABLE: list[EngineName] = ["sqlite", "files"]


def put(config: StoreConfig, number: int) -> None:
    engine = open_engine(config)
    engine.commit([Keyed(PutDocument(CHAT, {"n": number}, 1))], 1)
    engine.close()


def present(config: StoreConfig) -> object:
    engine = open_engine(config)
    with engine.read() as tables:
        found = tables.documents.get(CHAT)
    assert engine.check() == ()
    engine.close()
    return None if found is None else found.value


@pytest.mark.parametrize("name", DURABLE)
def test_a_copy_made_while_serving_is_put_back_and_the_data_kept_aside(tmp_path: Path, name: EngineName) -> None:
    config = StoreConfig(tmp_path / "data", name)
    engine = open_engine(config)
    engine.commit([Keyed(PutDocument(CHAT, {"n": 1}, 1))], 1)
    copy = tmp_path / "copy"
    engine.backup(str(copy))
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    engine.commit([Keyed(PutDocument(CHAT, {"n": 2}, 1))], 1)
    with pytest.raises(StoreLocked):
        restore_backup(config, copy, "now", force=True)
    engine.close()
    with pytest.raises(StoreInUse, match="--force"):
        restore_backup(config, copy, "now")
    assert present(config) == {"n": 2}
    done = restore_backup(config, copy, "now", force=True)
    assert present(config) == {"n": 1}
    assert done.aside is not None
    if name == "files":
        assert present(StoreConfig(done.aside, name)) == {"n": 2}
    else:
        (tmp_path / "old").mkdir()
        done.aside.rename(tmp_path / "old" / "tapster.db")
        assert present(StoreConfig(tmp_path / "old", name)) == {"n": 2}
    elsewhere = StoreConfig(tmp_path / "new", name)
    assert restore_backup(elsewhere, copy, "now").aside is None
    assert present(elsewhere) == {"n": 1}


def test_the_log_of_a_killed_process_is_kept_aside_with_its_database(tmp_path: Path) -> None:
    """What only the WAL holds belongs to the data that is kept."""
    config = StoreConfig(tmp_path / "data")
    engine = open_engine(config)
    engine.commit([Keyed(PutDocument(CHAT, {"n": 1}, 1))], 1)
    engine.backup(str(tmp_path / "copy"))
    killed = StoreConfig(tmp_path / "killed")
    killed.directory.mkdir()
    for part in ("tapster.db", "tapster.db-wal"):
        (killed.directory / part).write_bytes((config.directory / part).read_bytes())
    engine.close()
    assert (killed.directory / "tapster.db-wal").stat().st_size > 0
    done = restore_backup(killed, tmp_path / "copy", "now", force=True)
    assert done.aside is not None
    assert present(killed) == {"n": 1}
    old = StoreConfig(tmp_path / "old")
    old.directory.mkdir()
    for part in ("", "-wal"):
        done.aside.with_name(done.aside.name + part).rename(old.directory / f"tapster.db{part}")
    assert present(old) == {"n": 1}


@pytest.mark.parametrize("name", DURABLE)
@pytest.mark.parametrize("content", ["text", "half", "other", "none"])
def test_an_unusable_copy_changes_nothing(tmp_path: Path, name: EngineName, content: str) -> None:
    config = StoreConfig(tmp_path / "data", name)
    put(config, 1)
    engine = open_engine(config)
    engine.commit([Keyed(PutDocument(DocumentKey("chats", "big"), {"pad": "x" * 200_000}, 1))], 1)
    good = tmp_path / "good"
    engine.backup(str(good))
    engine.close()
    bad = tmp_path / "bad"
    if content == "text":
        bad.write_bytes(b"this is no copy " * 1000)
    elif content == "half":
        bad.write_bytes(good.read_bytes()[: good.stat().st_size // 2 // 4096 * 4096])
    elif content == "other" and name == "files":
        bad.write_bytes(b"SQLite format 3\0" + b"x" * 4096)
    elif content == "other":
        with tarfile.open(bad, "w") as archive:
            archive.add(good, "x")
    before = {path: data for path, data in tree(config.directory).items() if not path.endswith("-shm")}
    with pytest.raises(BackupUnusable, match="bad"):
        restore_backup(config, bad, "now", force=True)
    after = {path: data for path, data in tree(config.directory).items() if not path.endswith("-shm")}
    assert after == before
    assert present(config) == {"n": 1}
    assert sorted(path.name for path in tmp_path.iterdir() if "now" in path.name or "restore" in path.name) == []


@pytest.mark.parametrize("member", ["../outside", "/outside", "a/../../outside", "link"])
def test_a_copy_that_reaches_outside_of_itself_is_refused(tmp_path: Path, member: str) -> None:
    bad = tmp_path / "bad"
    with tarfile.open(bad, "w") as archive:
        info = tarfile.TarInfo(member)
        if member == "link":
            info.type, info.linkname = tarfile.SYMTYPE, "/"
        archive.addfile(info)
    (tmp_path / "data").mkdir()
    with pytest.raises(BackupUnusable, match="isn't a copy"):
        restore_backup(StoreConfig(tmp_path / "data", "files"), bad, "now")
    assert list(tmp_path.rglob("outside")) == []


@pytest.mark.parametrize("name", DURABLE)
def test_a_copy_that_cant_be_written_is_named(tmp_path: Path, name: EngineName) -> None:
    config = StoreConfig(tmp_path / "data", name)
    put(config, 1)
    engine = open_engine(config)
    with pytest.raises(BackupFailed, match="nowhere"):
        engine.backup(str(tmp_path / "nowhere" / "copy"))
    engine.commit([Keyed(PutDocument(CHAT, {"n": 2}, 1))], 1)
    engine.close()
    assert present(config) == {"n": 2}
