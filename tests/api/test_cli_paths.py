"""Every path that a command takes, of every odd kind: a declared error in a line, and nothing else lost."""

import json
import os
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import click
import pytest
import trio

from tapster.api.cli.main import group
from tapster.api.cli.offline import FileUnreadable, read_bytes
from tests.support.cli import PRESET, WORLD, Cli
from tests.support.disk_faults import mounted_disk
from tests.support.serve_process import open_serve_process

KINDS = ("folder", "missing", "below a file", "loop", "long", "device", "endless", "not UTF-8", "nameless", "empty")


def commands(
    parent: click.Group = group, names: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command with the words that name it."""
    context = click.Context(parent)
    for name in parent.list_commands(context):
        command = parent.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, (*names, name))
        elif command is not None:
            yield (*names, name), command


def path_parameters() -> Iterator[tuple[tuple[str, ...], str]]:
    for words, command in commands():
        for parameter in command.params:
            if isinstance(parameter.type, click.Path):
                yield words, str(parameter.name)


def odd_path(kind: str, place: Path) -> str:
    """A path of that kind; endless devices are only read, so a test can't fill a disk with one."""
    file = place / "file.json"
    file.write_text("{}", encoding="utf-8")
    match kind:
        case "folder":
            (place / "folder").mkdir()
            return str(place / "folder")
        case "missing":
            return str(place / "no" / "such.json")
        case "below a file":
            return str(file / "x.json")
        case "loop":
            (place / "loop").symlink_to(place / "loop")
            return str(place / "loop")
        case "long":
            return str(place / ("x" * 300))
        case "device":
            return "/dev/null"
        case "endless":
            return "/dev/zero"
        case "nameless":
            return "."
        case "not UTF-8":
            return os.fsdecode(os.fsencode(place) + b"/\xff\xfe.json")
        case _:
            return ""


def arguments(words: tuple[str, ...], name: str, path: str, other: Path) -> list[str]:
    """A call of the command with that path, and something for whatever else it must have."""
    (command,) = (found for found_words, found in commands() if found_words == words)
    given: list[str] = [*words]
    for parameter in command.params:
        if parameter.name != name and not parameter.required:
            continue
        is_choice = isinstance(parameter.type, click.Choice)
        value = path if parameter.name == name else parameter.type.choices[0] if is_choice else str(other)  # type: ignore[attr-defined]
        given += [value] if isinstance(parameter, click.Argument) else [parameter.opts[0], value]
    return given


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("is_forced", [False, True])
def test_every_path_of_every_command(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, is_forced: bool
) -> None:
    for number, (words, name) in enumerate(path_parameters()):
        command = dict(commands())[words]
        if is_forced and (kind == "device" or not any("--force" in each.opts for each in command.params)):
            # Nobody's null device is worth a test.
            continue
        place = tmp_path / str(number)
        place.mkdir()
        monkeypatch.chdir(place)
        path = odd_path(kind, place)
        # An undeclared error is raised here.
        given = [*arguments(words, name, path, place / "file.json"), *(["--force"] if is_forced else [])]
        result = cli.invoke(given)
        assert result.exit_code in (0, 1, 2), (words, name)
        if result.exit_code and "--json" not in words:
            assert result.output.strip(), (words, name)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "endless"])
@pytest.mark.parametrize("command", [("library", "list"), ("check",), ("ps",), ("config",)])
def test_every_kind_of_data_folder(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, command: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    cli.invoke(["--data-dir", odd_path(kind, tmp_path), *command])


@pytest.mark.parametrize("name", ["tapster.db", "tapster.db.lock", "tapster.db-wal", "server.json"])
def test_a_folder_in_the_place_of_a_file_of_ours(cli: Cli, tmp_path: Path, name: str) -> None:
    (tmp_path / "data" / name / "within").mkdir(parents=True)
    done = cli.invoke(["library", "list"])
    assert done.exit_code == (0 if name == "server.json" else 1)
    assert name == "server.json" or str(tmp_path / "data") in done.output


@pytest.mark.parametrize("store", ["sqlite", "files"])
def test_a_read_only_disk_is_named_and_what_would_help(tmp_path: Path, store: str) -> None:
    with mounted_disk(tmp_path / "disk", "4m") as disk:
        data = disk.folder / "data"
        cli = Cli(tmp_path)
        cli.run("--data-dir", str(data), "import", PRESET)
        disk.seal()
        done = cli.process("--data-dir", str(data), "serve", "--port", "0", "--store", store)
        assert done.returncode == 1
        assert str(data) in done.stderr
        assert "Read-only file system; let this user read and write it" in done.stderr
        assert done.stderr.count("\n") == 1


def test_a_folder_of_another_user_is_named_and_what_would_help(cli: Cli, tmp_path: Path) -> None:
    shut = tmp_path / "shut"
    for place in ("data", "files"):
        (shut / place).mkdir(parents=True)
    shutil.copy(PRESET, shut / "files" / "preset.json")
    shutil.copy(WORLD, tmp_path / "open.json")
    (shut / "files").chmod(0)
    (shut / "data").chmod(0o500)
    try:
        refused = cli.process_of_nobody("--data-dir", str(shut / "data"), "library", "list")
        assert refused.returncode == 1
        assert f"{shut / 'data'} can't be used" in refused.stderr
        assert "let this user read and write it" in refused.stderr
        # What can be read is imported, whatever else was given.
        mixed = cli.process_of_nobody("import", str(shut / "files"), str(shut / "files" / "preset.json"), str(tmp_path))
        assert mixed.returncode == 1
        assert "1 imported, 3 refused" in mixed.stdout, mixed.stdout + mixed.stderr
        assert mixed.stdout.count("Permission denied") == 3
    finally:
        (shut / "files").chmod(0o700)


def test_an_endless_file_is_refused_at_the_size_of_the_largest_resource() -> None:
    with pytest.raises(FileUnreadable, match="/dev/zero is larger than 64 MiB"):
        read_bytes(Path("/dev/zero"))


def test_a_pipe_can_be_read(tmp_path: Path, cli: Cli) -> None:
    reading, writing = os.pipe()
    os.write(writing, Path(WORLD).read_bytes())
    os.close(writing)
    assert "1 imported" in cli.run("import", f"/dev/fd/{reading}")
    os.close(reading)


def test_a_dash_is_standard_input(cli: Cli) -> None:
    text = Path(WORLD).read_text(encoding="utf-8")
    assert "1 imported" in cli.run("import", "-", typed=text)
    assert "Greywater" in cli.run("assemble", "--world", "-", typed=text)


def test_a_file_named_dash_is_a_file(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(WORLD, tmp_path / "-")
    assert "Greywater" in cli.run("assemble", "--world", "./-", typed="")
    (tmp_path / "-").unlink()
    cli.run("import", PRESET)
    (preset,) = cli.json("library", "list")["preset"]
    cli.run("library", "export", "preset", preset["id"], "--output", "./-")
    assert (tmp_path / "-").is_file()


@pytest.mark.parametrize("path", ["", "a\0b", "~nobody-of-that-name/x"])
def test_a_data_folder_that_is_no_path_is_named(cli: Cli, tmp_path: Path, path: str) -> None:
    file = tmp_path / "tapster.toml"
    file.write_text(f"data_dir = {json.dumps(path)}\n", encoding="utf-8")
    own = cli.invoke(["--config", str(file), "check"], TAPSTER_DATA_DIR=None)
    assert own.exit_code == 1
    assert "data_dir (from file)" in own.output
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.slow
async def test_an_export_from_a_server_without_room_for_a_copy_is_refused(cli: Cli, tmp_path: Path) -> None:
    assert cli.process("import", PRESET).returncode == 0
    with mounted_disk(tmp_path / "disk", "64k") as disk:
        async with open_serve_process(cli.home / "data"):
            run = partial(cli.process, "export", "--dsh-tavern", str(tmp_path / "out"), TMPDIR=str(disk.folder))
            done = await trio.to_thread.run_sync(run)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert "[BACKUP_FAILED]" in done.stderr
