"""Log lines cost their writer nothing, whatever becomes of standard error."""

import fcntl
import json
import logging
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tapster.api.logs import LineWriter, log_sink, open_logs
from tests.support.disk_faults import open_logged_server

PAGE = 4096


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, PAGE)
    yield reading, writing
    for descriptor in (reading, writing):
        try:
            os.close(descriptor)
        except OSError:
            continue


def lines_of(descriptor: int) -> list[dict[str, Any]]:
    """Everything up to the end, as objects."""
    with os.fdopen(os.dup(descriptor), encoding="utf-8") as text:
        return [json.loads(line) for line in text if line.strip()]


def test_a_reader_that_stops_holds_up_nobody_and_hears_how_much_it_missed(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    writer = LineWriter(writing, waiting_lines=10)
    for number in range(1_000):
        writer.msg(json.dumps({"n": number, "pad": "x" * 200}))
    read: list[dict[str, Any]] = []
    reader = threading.Thread(target=lambda: read.extend(lines_of(reading)))
    reader.start()
    writer.close(10)
    # What was lost while the queue was full is told with the next line that is written.
    assert not writer._thread.is_alive()
    os.close(writing)
    reader.join(10)
    numbers = [line["n"] for line in read if "n" in line]
    assert numbers == sorted(numbers)
    lost = sum(line["lines"] for line in read if line.get("event") == "logs.lost") + writer._lost
    assert len(numbers) + lost == 1_000
    assert lost > 0


def test_a_pipe_that_does_not_block_is_waited_for(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    os.set_blocking(writing, False)
    writer = LineWriter(writing)
    read: list[dict[str, Any]] = []
    reader = threading.Thread(target=lambda: read.extend(lines_of(reading)))
    reader.start()
    for number in range(900):
        writer.msg(json.dumps({"n": number, "pad": "x" * 400}))
    writer.close(10)
    os.close(writing)
    reader.join(10)
    assert [line["n"] for line in read] == list(range(900))


def test_a_reader_that_has_gone_and_a_full_disk_lose_lines_only(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    os.close(reading)
    full = os.open("/dev/full", os.O_WRONLY)
    for descriptor in (writing, full, None):
        writer = LineWriter(descriptor)
        for number in range(100):
            writer.msg(str(number))
        writer.close(10)
        assert not writer._thread.is_alive()
        assert writer._lost == 100
    os.close(full)


def test_lost_lines_are_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    # Bad, bad, room for one line (which tells), bad, then good.
    room = iter([False, False, False, True, False, True, True])
    read: list[bytes] = []

    def write(descriptor: int, data: bytes) -> int:
        if not next(room, True):
            raise OSError(28, "No space left on device")
        read.append(bytes(data))
        return len(data)

    monkeypatch.setattr(os, "write", write)
    writer = LineWriter(7)
    for number in range(4):
        writer.msg(json.dumps({"n": number}))
    writer.close(10)
    lines = [json.loads(line) for line in read]
    lost = sum(line.get("lines", 0) for line in lines)
    assert lost + sum("n" in line for line in lines) == 4


def test_what_was_cut_off_leaves_the_next_line_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = os.open(tmp_path / "log", os.O_CREAT | os.O_WRONLY)
    calls: Iterator[int | OSError] = iter([4, OSError(28, "No space left on device")])
    real = os.write

    def write(descriptor: int, data: bytes) -> int:
        step = next(calls, None)
        if isinstance(step, OSError):
            raise step
        return real(descriptor, data if step is None else data[:step])

    monkeypatch.setattr(os, "write", write)
    writer = LineWriter(file)
    writer.msg("the first line")
    writer.msg("the second line")
    writer.close(10)
    os.close(file)
    first, lost, second = (tmp_path / "log").read_text(encoding="utf-8").splitlines()
    assert (first, second) == ("the ", "the second line")
    assert json.loads(lost) == {"event": "logs.lost", "level": "warning", "lines": 1}


def test_lines_of_libraries_have_no_values(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w") as file, open_logs(file):
        log_sink("info", "ours", count=1, name="灰水")
        try:
            raise ValueError("a secret text")
        except ValueError:
            logging.getLogger("trio.serve_listeners").exception("accept failed with %s", "a secret text")
        logging.getLogger("somebody").info("not said")
    ours, theirs = (json.loads(line) for line in (tmp_path / "log").read_text(encoding="utf-8").splitlines())
    assert (ours["event"], ours["count"], ours["name"], ours["level"]) == ("ours", 1, "灰水", "info")
    assert theirs["template"] == "accept failed with %s"
    assert (theirs["error"], theirs["logger"]) == ("ValueError", "trio.serve_listeners")
    assert theirs["at"].startswith("test_logs.py:")
    assert "secret" not in str(theirs)


@pytest.mark.slow
async def test_a_server_whose_output_goes_nowhere_serves(tmp_path: Path) -> None:
    async with open_logged_server(tmp_path, Path("/dev/full"), "sqlite", {}) as server:
        made = await server.client.post("/tapster/api/v1/sessions", json={"id": "s"})
        assert made.status_code == 201
        server.process.terminate()
        assert server.process.wait(20) == 0


@pytest.mark.slow
async def test_a_server_stops_in_order_while_nobody_reads_what_it_says(tmp_path: Path, pipe: tuple[int, int]) -> None:
    _, writing = pipe
    # Not one more byte: as a terminal that was stopped, or a pipe whose reader hangs.
    os.write(writing, b"x" * PAGE)
    async with open_logged_server(tmp_path / "data", tmp_path / "out", "sqlite", {}, writing) as server:
        made = await server.client.post("/tapster/api/v1/sessions", json={"id": "s"})
        assert made.status_code == 201
        server.process.terminate()
        assert server.process.wait(20) == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "encoding", "said"),
    [
        (b"\xca\xfd\xbe\xdd", "utf-8", b"\\udcca\\udcfd\\udcbe\\udcdd"),
        ("灰水".encode(), "latin-1", b"\\u7070\\u6c34"),
        ("灰水".encode(), "utf-8", "灰水".encode()),
    ],
)
async def test_a_server_says_where_its_data_is_whatever_its_name(
    tmp_path: Path, name: bytes, encoding: str, said: bytes
) -> None:
    log, environment = tmp_path / "log", {"PYTHONIOENCODING": encoding}
    async with open_logged_server(tmp_path / os.fsdecode(name), log, "sqlite", environment) as server:
        server.process.terminate()
        assert server.process.wait(20) == 0
    ready = log.read_bytes().splitlines()[0]
    assert ready.startswith(b"Tapster is ready: http://")
    assert said in ready
