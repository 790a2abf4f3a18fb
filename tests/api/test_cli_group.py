"""The command line as a whole: help, version, settings, completion, errors for people."""

import shutil
import socket
import subprocess
import sys
from pathlib import Path

import click
import pytest

from tapster.api.cli.main import COMMANDS, group
from tests.support.cli import CARD, PRESET, WORLD, Cli

NAMES = group.list_commands(click.Context(group))


def test_help_lists_every_command(cli: Cli) -> None:
    shown = cli.run("--help")
    assert all(f"  {name} " in shown for name in NAMES)
    assert set(NAMES) <= set(COMMANDS)


@pytest.mark.parametrize("name", NAMES)
def test_every_command_explains_itself(cli: Cli, name: str) -> None:
    assert cli.run(name, "--help").startswith(f"Usage: tapster {name}")


def test_version(cli: Cli) -> None:
    assert cli.run("--version").startswith("tapster ")


def test_an_unknown_command(cli: Cli) -> None:
    assert "No such command" in cli.run("brew", code=2)


def test_settings_name_their_origin_and_hide_secrets(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "tapster.toml"
    file.write_text('[server]\nport = 9000\ntoken = "hush"\n', encoding="utf-8")
    rows = {row["key"]: row for row in cli.json("--config", str(file), "config")}
    assert (rows["server.port"]["value"], rows["server.port"]["origin"]) == ("9000", "file")
    assert rows["data_dir"]["origin"] == "environment"
    assert "hush" not in cli.run("--config", str(file), "config")


@pytest.mark.parametrize("text", ["port = [", "[server]\nport = 'many'", "[server]\nprot = 1"])
def test_a_configuration_that_cannot_be_used(cli: Cli, tmp_path: Path, text: str) -> None:
    file = tmp_path / "tapster.toml"
    file.write_text(text, encoding="utf-8")
    assert "[CONFIG_INVALID]" in cli.run("--config", str(file), "config", code=1)


def test_a_data_folder_that_is_a_file(cli: Cli, tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.write_text("", encoding="utf-8")
    assert "Error:" in cli.run("--data-dir", str(taken), "library", "list", code=1)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(cli: Cli, shell: str) -> None:
    assert "_TAPSTER_COMPLETE" in cli.run("completion", shell)


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash on this machine")
@pytest.mark.parametrize(("typed", "wanted"), [("expl", "explain"), ("library ex", "export"), ("trace ver", "verify")])
def test_completion_works_in_a_real_bash(cli: Cli, tmp_path: Path, typed: str, wanted: str) -> None:
    script = tmp_path / "tapster.bash"
    script.write_text(cli.run("completion", "bash"), encoding="utf-8")
    program = tmp_path / "tapster"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "from tapster.api.cli import main; main()" "$@"\n')
    program.chmod(0o755)
    words = ["tapster", *typed.split(" ")]
    asked = f"""
        PATH="{tmp_path}:$PATH"
        source "{script}"
        COMP_WORDS=({" ".join(words)}); COMP_CWORD={len(words) - 1}
        _tapster_completion tapster "{words[-1]}" "{words[-2]}"
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "--norc", "-c", asked], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == [wanted], done.stderr


@pytest.mark.parametrize("renderer", ["tavern", "sillytavern"])
def test_assemble_and_its_refusals(cli: Cli, tmp_path: Path, renderer: str) -> None:
    shown = cli.run("assemble", "--preset", PRESET, "--card", CARD, "--world", WORLD, "--renderer", renderer)
    assert "The harbour" in shown
    missing = str(tmp_path / "gone.png")
    assert f"{missing} can't be read" in cli.run("assemble", "--card", missing, "--renderer", renderer, code=1)
    for option in ("--preset", "--card", "--world", "--persona", "--chat"):
        broken = tmp_path / "broken"
        broken.write_bytes(b"\xff\x00{")
        assert str(broken) in cli.run("assemble", option, str(broken), "--renderer", renderer, code=1)


def test_a_port_that_is_taken(cli: Cli) -> None:
    # A process of its own: the server library leaves its socket to the collector when it can't listen.
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = cli.process("serve", "--host", "127.0.0.1", "--port", port)
    assert done.returncode == 1
    assert f"can't listen on 127.0.0.1:{port}" in done.stderr
    assert "[ADDRESS_UNUSABLE]" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("renderer", ["tavern", "sillytavern"])
def test_assemble_reads_what_import_reads(cli: Cli, tmp_path: Path, renderer: str) -> None:
    old = tmp_path / "2023.json"
    old.write_text('{"main_prompt": "Write well.", "temperature": 0.5}', encoding="utf-8")
    assert cli.json("import", str(old))[0]["resources"][0]["kind"] == "preset"
    assert "Write well." in cli.run("assemble", "--preset", str(old), "--renderer", renderer)
    refused = cli.run("assemble", "--preset", CARD, "--renderer", renderer, code=1)
    assert "it isn't a preset but a character card" in refused
