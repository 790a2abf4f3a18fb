"""The file that says where a server listens."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trio

from tapster.api.running_file import RETRY_S, announced, find_server
from tapster.runtime import silent

URL = "http://127.0.0.1:1"


async def test_a_server_that_could_not_say_where_it_listens_says_so_later(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    lines: list[tuple[str, str]] = []

    def log(level: str, event: str, **fields: object) -> None:
        lines.append((level, event))

    (tmp_path / "server.json").mkdir()
    async with announced(tmp_path, URL, log):
        await trio.sleep(3 * RETRY_S)
        assert find_server(tmp_path) is None
        (tmp_path / "server.json").rmdir()
        await trio.sleep(2 * RETRY_S)
        assert find_server(tmp_path) == URL
    assert lines == [("warning", "server.not-announced")]
    assert find_server(tmp_path) is None
    assert list(tmp_path.iterdir()) == []


async def test_only_a_server_that_lives_is_found(tmp_path: Path) -> None:
    # A killed server's file stays, and its number may belong to this very process by now, as in a container.
    (tmp_path / "server.json").write_text(json.dumps({"url": URL, "pid": os.getpid()}), encoding="utf-8")
    assert find_server(tmp_path) is None
    async with announced(tmp_path, URL, silent):
        assert find_server(tmp_path) == URL
        assert (tmp_path / "server.json").stat().st_mode & 0o777 == 0o600
    assert find_server(tmp_path) is None


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '"x"', "x" * 10_000])
async def test_a_file_that_says_nothing_is_no_server(tmp_path: Path, content: str) -> None:
    async with announced(tmp_path, URL, silent):
        (tmp_path / "server.json").write_text(content, encoding="utf-8")
        assert find_server(tmp_path) is None


def test_a_killed_server_is_not_found(tmp_path: Path) -> None:
    with killable(tmp_path) as server:
        assert find_server(tmp_path) == URL
        server.kill()
        server.wait()
        assert find_server(tmp_path) is None
        assert (tmp_path / "server.json").exists()


@contextmanager
def killable(data_dir: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that says that it serves a folder."""
    program = f"""
import trio
from pathlib import Path
from tapster.api.running_file import announced
from tapster.runtime import silent
async def main():
    async with announced(Path({str(data_dir)!r}), {URL!r}, silent):
        print("said", flush=True)
        await trio.sleep_forever()
trio.run(main)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            assert server.stdout.readline() == "said\n"
            yield server
        finally:
            server.kill()
