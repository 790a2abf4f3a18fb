"""A real ``tapster serve`` process and an offline model server, for tests from the outside."""

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue

import trio

from tapster.actors.testing import open_model_server

READY_S = 20.0
READY_LINE = re.compile(r"Tapster is ready: (http://\S+?)/ ")


@contextmanager
def model_server_thread() -> Iterator[str]:
    """The address of a model stand-in that serves from a thread of its own."""
    started: Queue[tuple[str, trio.lowlevel.TrioToken, trio.CancelScope]] = Queue()

    async def serve() -> None:
        with trio.CancelScope() as scope:
            async with open_model_server() as server:
                started.put((server.url, trio.lowlevel.current_trio_token(), scope))
                await trio.sleep_forever()

    thread = threading.Thread(target=trio.run, args=[serve], name="model stand-in")
    thread.start()
    url, token, scope = started.get(timeout=READY_S)
    try:
        yield url
    finally:
        token.run_sync_soon(scope.cancel)
        thread.join(READY_S)


@contextmanager
def served(data_dir: Path, **environment: str) -> Iterator[str]:
    """The address of a server process over a data folder; it's stopped as a person would stop it."""
    command = [
        sys.executable,
        "-c",
        "from tapster.api.cli import main; main()",
        "serve",
        "--host",
        "127.0.0.1",
        "--port",
        "0",
    ]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TAPSTER_")}
    # HOME keeps a configuration file of this machine's user out.
    own = {"TAPSTER_DATA_DIR": str(data_dir), "HOME": str(data_dir), "XDG_CONFIG_HOME": str(data_dir)}
    process = subprocess.Popen(
        command, env={**kept, **own, **environment}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    timer = threading.Timer(READY_S, process.kill)
    try:
        timer.start()
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            found = READY_LINE.search(line)
            if found is not None:
                break
        else:
            raise AssertionError("the server did not start:\n" + "".join(lines))
        timer.cancel()
        yield found[1]
    finally:
        timer.cancel()
        process.terminate()
        try:
            process.communicate(timeout=READY_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise
