"""The file that says where a server listens."""

import errno
import json
import os
import socket
from pathlib import Path

import pytest
import trio

from tapster.api.running_file import RETRY_S, announced, find_server


async def test_a_server_that_could_not_say_where_it_listens_says_so_later(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    lines: list[tuple[str, str]] = []

    def log(level: str, event: str, **fields: object) -> None:
        lines.append((level, event))

    (tmp_path / "server.json").mkdir()
    async with announced(tmp_path, "http://127.0.0.1:1", log):
        await trio.sleep(3 * RETRY_S)
        assert find_server(tmp_path) is None
        (tmp_path / "server.json").rmdir()
        await trio.sleep(2 * RETRY_S)
        assert find_server(tmp_path) == "http://127.0.0.1:1"
    assert lines == [("warning", "server.not-announced")]
    assert find_server(tmp_path) is None
    assert list(tmp_path.iterdir()) == []


def test_a_server_of_another_user_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def kill(process: int, signal: int) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "kill", kill)
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        (tmp_path / "server.json").write_text(json.dumps({"url": url, "pid": 1}), encoding="utf-8")
        assert find_server(tmp_path) == url
    # Its number may belong to somebody else by now.
    assert find_server(tmp_path) is None
