"""Commands whose standard streams are closed, full or not read to the end."""

import subprocess
from pathlib import Path

import pytest

from tests.support.cli import PRESET, WORLD, Cli


def test_a_full_standard_output_is_named(cli: Cli) -> None:
    with Path("/dev/full").open("wb") as full:
        done = cli.process("config", stdout=full)
    assert done.returncode == 1
    assert done.stderr == "Error: standard output can't be written: No space left on device [FILE_UNWRITABLE]\n"


@pytest.mark.parametrize("command", [("demo",), ("import", PRESET, WORLD), ("config",)])
def test_a_reader_that_has_gone_ends_a_command_quietly(cli: Cli, command: tuple[str, ...]) -> None:
    with subprocess.Popen(["true"], stdin=subprocess.PIPE) as reader:
        reader.wait()
        done = cli.process(*command, stdout=reader.stdin)
    assert (done.returncode, done.stderr) == (1, "")


def test_a_standard_input_that_cannot_be_read_is_named(cli: Cli) -> None:
    done = cli.process("strategy", "save", "-", wrapper=("sh", "-c", 'exec "$@" 0>/dev/null', "sh"))
    assert (done.returncode, done.stderr.partition(":")[0]) == (1, "Error")
    assert "standard input can't be read" in done.stderr


def test_a_command_without_standard_streams_works(cli: Cli) -> None:
    shell = ("sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh")
    assert cli.process("import", PRESET, wrapper=shell).returncode == 0
    # Nothing was written into a file that took the place of a stream.
    assert len(cli.json("library", "list")["preset"]) == 1
    assert cli.process("import", "-", wrapper=shell).returncode == 1
    assert "all sound" in cli.run("check")
