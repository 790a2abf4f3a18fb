"""``tapster serve`` as a process of its own that starts in a moment and can be killed.

The processes are forked from one that has imported everything, so twenty starts cost what one costs.
"""

import json
import multiprocessing
import os
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import attrs
import h11
import httpx2
import trio

from tapster.api.cli.main import main
from tapster.api.running_file import find_server

Json = Any
START_S: Final = 20.0
_CONTEXT: Final = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tapster.api.cli.serve"])


@attrs.frozen
class ServeProcess:
    """A running ``tapster serve``: its process, and a client that sends the Origin that writes need."""

    process: BaseProcess
    client: httpx2.AsyncClient

    def kill(self) -> None:
        """End it as ``kill -9`` does."""
        self.process.kill()


def run(data_dir: str, environment: Mapping[str, str]) -> None:
    """The child: the same entry point as the console script's."""
    # What it prints is for nobody; what matters is asked over HTTP.
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    os.environ.update(environment)
    main(["--data-dir", data_dir, "serve", "--port", "0"])


@asynccontextmanager
async def open_serve_process(data_dir: Path, **environment: str) -> AsyncIterator[ServeProcess]:
    """A server on a free port, ready when entered; killed when left if it still runs."""
    process = _CONTEXT.Process(target=run, args=(str(data_dir), environment), daemon=True)
    process.start()
    try:
        url = await _address(data_dir, process)
        async with httpx2.AsyncClient(base_url=url, trust_env=False, timeout=20, headers={"Origin": url}) as client:
            yield ServeProcess(process, client)
    finally:
        process.kill()
        process.join(10)


async def _address(data_dir: Path, process: BaseProcess) -> str:
    with trio.fail_after(START_S):
        while (url := find_server(data_dir)) is None:
            assert process.exitcode is None, f"the server ended with {process.exitcode}"
            await trio.sleep(0.005)
    return url


@asynccontextmanager
async def live_events(url: str, path: str) -> AsyncIterator[AsyncGenerator[Json, None]]:
    """The data of each server-sent event of a path, for the length of a block.

    By hand, because the client's own iterators can't be left in the middle.
    """
    where = urlsplit(url)
    assert where.hostname is not None
    assert where.port is not None
    wire = h11.Connection(h11.CLIENT)
    async with await trio.open_tcp_stream(where.hostname, where.port) as stream:
        head = h11.Request(method="GET", target=path, headers=[("Host", where.netloc)])
        await stream.send_all(wire.send(head) + wire.send(h11.EndOfMessage()))
        async with aclosing(_events(wire, stream)) as events:
            yield events


async def _events(wire: h11.Connection, stream: trio.SocketStream) -> AsyncGenerator[Json, None]:
    received = b""
    while True:
        event = wire.next_event()
        if event is h11.NEED_DATA:
            wire.receive_data(await stream.receive_some(65536))
        elif isinstance(event, h11.Response):
            assert event.status_code == 200
        elif isinstance(event, h11.Data):
            *lines, received = (received + bytes(event.data)).split(b"\n")
            for line in lines:
                if line.startswith(b"data: "):
                    yield json.loads(line[6:])
        else:
            return
