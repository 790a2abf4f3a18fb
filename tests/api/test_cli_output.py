"""Commands whose standard streams are closed, full or not read to the end."""

import os
import signal
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.cli import PRESET, WORLD, Cli


@pytest.mark.parametrize("command", [("config",), ("completion", "bash"), ("demo",)])
def test_a_full_standard_output_is_named(cli: Cli, command: tuple[str, ...]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = cli.process(*command, stdout=full)
    assert done.returncode == 1
    assert done.stderr == "Error: standard output can't be written: No space left on device [FILE_UNWRITABLE]\n"


@pytest.mark.parametrize("command", [("--help",), ("--version",), ("library", "--help")])
def test_help_into_a_full_disk_is_one_line(cli: Cli, command: tuple[str, ...]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = cli.process(*command, stdout=full)
    assert (done.returncode, done.stderr) == (1, "Error: [Errno 28] No space left on device\n")


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
    assert cli.process("config", wrapper=("sh", "-c", 'exec "$@" >&-', "sh")).returncode == 0
    (preset,) = cli.json("library", "list")["preset"]
    asked = cli.process("library", "delete", "preset", preset["id"], wrapper=("sh", "-c", 'exec "$@" <&-', "sh"))
    assert (asked.returncode, asked.stderr.splitlines()[-1]) == (1, "Aborted!")
    # What goes wrong doesn't land among what was asked for.
    refused = cli.process("library", "export", "preset", "none", wrapper=("sh", "-c", 'exec "$@" 2>&-', "sh"))
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "all sound" in cli.run("check")


def test_a_standard_input_that_does_not_block_is_read_to_its_end(cli: Cli) -> None:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    text = "{{upper::" + "x" * 200_000 + "}}"

    def write_slowly() -> None:
        with os.fdopen(writing, "w") as file:
            for start in range(0, len(text), 50_000):
                file.write(text[start : start + 50_000])
                file.flush()

    with os.fdopen(reading) as given, ThreadPoolExecutor(1) as pool:
        pool.submit(write_slowly)
        done = cli.process("macro", "-", stdin=given)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout) >= 200_000


def test_ctrl_c_ends_a_command_with_a_word(cli: Cli) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent_model:
        address = f"http://127.0.0.1:{silent_model.getsockname()[1]}/v1"
        with cli.started("demo", TAPSTER_PROVIDER_URL=address) as demo:
            assert demo.stdout is not None
            while not demo.stdout.readline().startswith("Reply"):
                assert demo.poll() is None
            demo.send_signal(signal.SIGINT)
            _, said = demo.communicate(timeout=30)
    assert (demo.returncode, said.strip()) == (1, "Aborted!")
