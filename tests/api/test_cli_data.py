"""Backup, restore, check, and moving to and from the contract's folders, as a person does it."""

import json
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from tapster.engine.ecma import Json
from tests.support.cli import CARD, PRESET, WORLD, Cli
from tests.support.serve_process import open_serve_process

STORES = ("sqlite", "files")


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> str:
    """The engine of the test's data, chosen by its configuration file as a person would."""
    name = str(request.param)
    (cli.home / "tapster").mkdir()
    (cli.home / "tapster" / "tapster.toml").write_text(f'[store]\nengine = "{name}"\n', encoding="utf-8")
    return name


def books(cli: Cli) -> list[str]:
    found: Json = cli.json("library", "list", "world-book")
    return sorted(str(row["name"]) for row in found["world-book"])


def test_a_copy_is_made_checked_and_put_back(cli: Cli, store: str, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    assert "NO_DATA" in cli.run("check", code=1) or store == "files"
    cli.run("import", WORLD)
    before = books(cli)
    assert cli.json("check") == {"ok": True, "problems": []}
    assert "holds a copy" in cli.run("backup", str(copy))
    assert "STORE_IN_USE" in cli.run("backup", str(copy), code=1)
    cli.run("backup", str(copy), "--force")
    shutil.copy(WORLD, tmp_path / "second.json")
    cli.run("import", str(tmp_path / "second.json"))
    assert len(books(cli)) == 2
    assert "--force" in cli.run("restore", str(copy), code=1)
    assert len(books(cli)) == 2
    assert "is kept as" in cli.run("restore", str(copy), "--force")
    assert books(cli) == before
    assert "BACKUP_UNUSABLE" in cli.run("restore", WORLD, "--force", code=1)
    assert "BACKUP_FAILED" in cli.run("backup", str(tmp_path / "nowhere" / "copy"), code=1)
    assert books(cli) == before


def test_damage_is_named_and_left_alone(cli: Cli) -> None:
    cli.run("import", CARD, PRESET, WORLD)
    path = cli.home / "data" / "tapster.db"
    data = path.read_bytes()
    path.write_bytes(data[:4096] + b"\xff" * 8192 + data[12288:])
    damaged = path.read_bytes()
    for command in (("check",), ("library", "list", "preset"), ("backup", str(cli.home / "copy"))):
        assert "STORE_CORRUPT" in cli.run(*command, code=1)
    assert path.read_bytes() == damaged
    assert not (cli.home / "copy").exists()


def test_damage_that_only_a_check_finds_is_listed(cli: Cli) -> None:
    cli.run("import", CARD)
    with sqlite3.connect(cli.home / "data" / "tapster.db") as database:
        database.execute("PRAGMA foreign_keys = OFF")
        database.execute("DELETE FROM blobs WHERE sha256 IN (SELECT original FROM resources)")
    database.close()
    found = cli.json("check", code=1)
    assert not found["ok"]
    assert "names a missing blobs" in found["problems"][0]


def second_server(data_dir: Path, store: str) -> str:
    """What another ``tapster serve`` over the same data says before it ends."""
    code = "from tapster.api.cli.main import main; main()"
    run = [sys.executable, "-c", code, "--data-dir", str(data_dir), "serve", "--port", "0", "--store", store]
    ended = subprocess.run(run, capture_output=True, text=True, check=False, timeout=60)
    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
    return ended.stderr


@pytest.mark.slow
async def test_a_running_server_is_asked(cli: Cli, store: str, tmp_path: Path) -> None:
    def run(*arguments: str, code: int = 0) -> str:
        return cli.run(*arguments, code=code)

    copy, folder = tmp_path / "copy", tmp_path / "theirs"
    async with open_serve_process(cli.home / "data", TAPSTER_STORE=store) as server:
        await trio.to_thread.run_sync(run, "import", WORLD)
        assert "all sound" in await trio.to_thread.run_sync(run, "check")
        assert "holds a copy" in await trio.to_thread.run_sync(run, "backup", str(copy))
        assert "STORE_LOCKED" in await trio.to_thread.run_sync(lambda: run("restore", str(copy), "--force", code=1))
        assert "is locked by process" in await trio.to_thread.run_sync(second_server, cli.home / "data", store)
        assert "1 world-book" in await trio.to_thread.run_sync(run, "export", "--dsh-tavern", str(folder))
        refused = await trio.to_thread.run_sync(lambda: run("import", "--dsh-tavern", str(folder), code=1))
        assert "stop it" in refused
        said = await trio.to_thread.run_sync(run, "import", "--dsh-tavern", str(folder), "--dry-run")
        assert "would be taken over" in said
        facts = (await server.client.get("/tapster/api/v1/store")).json()
        assert (facts["engine"], facts["problem"]) == (store, None)
    before = await trio.to_thread.run_sync(books, cli)
    await trio.to_thread.run_sync(run, "restore", str(copy), "--force")
    assert await trio.to_thread.run_sync(books, cli) == before
    assert len(list((folder / "world-books").glob("*.json"))) == 1


def test_everything_moves_to_the_contracts_folders_and_back(cli: Cli, store: str, tmp_path: Path) -> None:
    cli.run("import", CARD, PRESET, WORLD)
    folder = tmp_path / "theirs"
    written = cli.json("export", "--dsh-tavern", str(folder))
    assert written["problems"] == []
    assert written["copied"]["world-book"] == 1
    assert "STORE_IN_USE" in cli.run("export", "--dsh-tavern", str(folder), code=1)
    before = books(cli)
    shutil.rmtree(cli.home / "data")
    would = cli.json("import", "--dsh-tavern", str(folder), "--dry-run")
    assert would["copied"] == written["copied"]
    assert not (cli.home / "data").exists()
    assert cli.json("import", "--dsh-tavern", str(folder)) == would
    assert books(cli) == before
    again = cli.json("export", "--dsh-tavern", str(tmp_path / "again"))
    assert again["copied"] == written["copied"]
    for path in folder.rglob("*.json"):
        twin = tmp_path / "again" / path.relative_to(folder)
        assert json.loads(twin.read_bytes()) == json.loads(path.read_bytes()), path


def test_import_says_what_it_takes(cli: Cli, tmp_path: Path) -> None:
    assert "give PATHS" in cli.run("import", code=2)
    assert "give PATHS" in cli.run("import", WORLD, "--dry-run", code=2)
    assert "no folder" in cli.run("import", "--dsh-tavern", str(tmp_path / "nothing"), code=1)
