"""A client that leaves: everything its request started ends, and nothing else does."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from tapster.actors.library import SessionSide
from tapster.api.serving import Server, open_server, server_config
from tests.support.contract import Served, open_contract
from tests.support.waiting import until

Json = Any
ROOT = "/tapster/api/v1"


def tasks() -> int:
    """Every task of this run."""
    waiting, count = [trio.lowlevel.current_root_task()], 0
    while waiting:
        task = waiting.pop()
        if task is not None:
            count += 1
            waiting += [child for nursery in task.child_nurseries for child in nursery.child_tasks]
    return count


class Gate:
    """Holds every look at what a session has bound, and counts who waits."""

    def __init__(self) -> None:
        self.waiting = 0
        self.entered = trio.Event()

    async def __call__(self, side: SessionSide, key: object) -> Any:
        self.waiting += 1
        self.entered.set()
        try:
            await trio.sleep_forever()
        finally:
            self.waiting -= 1


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[tuple[Served, Server]]:
    async with (
        open_contract(folder) as served,
        open_server(served.app, server_config("127.0.0.1", 0, grace_s=0.2)) as server,
    ):
        yield served, server


def request(server: Server, method: str, path: str) -> bytes:
    body = b"{}" if method == "POST" else b""
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost:{server.port}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


@pytest.mark.slow
@pytest.mark.parametrize("is_live", [True, False])
async def test_a_running_preview_ends_with_its_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_live: bool
) -> None:
    async with serving(tmp_path) as (served, server):
        handle = await served.tapster.create_session("s")
        if not is_live:
            await handle.close()
        gate = Gate()
        monkeypatch.setattr(SessionSide, "bound", lambda side, key: gate(side, key))
        await trio.testing.wait_all_tasks_blocked()
        before = tasks()
        streams = [await trio.open_tcp_stream("127.0.0.1", server.port) for _ in range(3)]
        for stream in streams:
            await stream.send_all(request(server, "POST", f"{ROOT}/sessions/s/preview"))
        await until(lambda: gate.waiting == 3)
        assert tasks() > before
        await streams[0].aclose()
        await until(lambda: gate.waiting == 2)
        for stream in streams[1:]:
            await stream.aclose()
        await until(lambda: tasks() <= before)
        assert gate.waiting == 0
        monkeypatch.undo()
        reply = await served.client.send("POST", f"{ROOT}/sessions/s/preview", json={})
        assert reply.status == 200


@pytest.mark.slow
async def test_live_events_end_with_their_connection(tmp_path: Path) -> None:
    async with serving(tmp_path) as (served, server):
        handle = await served.tapster.create_session("s")
        await trio.testing.wait_all_tasks_blocked()
        before = tasks()
        stream = await trio.open_tcp_stream("127.0.0.1", server.port)
        await stream.send_all(request(server, "GET", f"{ROOT}/sessions/s/events?after=-1"))
        await handle.followup("Hello")
        seen = b""
        while b"turn/end" not in seen:
            with trio.fail_after(12):
                seen += await stream.receive_some()
        assert b"event: chunk" in seen
        await handle.when_idle()
        await stream.aclose()
        await until(lambda: tasks() <= before)
