"""SIGTERM to ``tapster serve``: what is under way ends in order, and whatever was acknowledged is there afterwards."""

import os
import signal
from pathlib import Path
from typing import Any

import httpx2
import pytest
import trio

from tapster.actors.testing import open_model_server
from tapster.actors.testing.model_server import Answer, ModelServer
from tests.support.serve_process import ServeProcess, live_events, open_serve_process

Json = Any
OWN = "/tapster/api/v1"


async def begin(server: ServeProcess, session: str = "s") -> None:
    """A session whose reply is streaming."""
    await server.client.post(f"{OWN}/sessions", json={"id": session})
    async with live_events(str(server.client.base_url), f"{OWN}/sessions/{session}/events") as events:
        sent = await server.client.post(f"{OWN}/sessions/{session}/messages", json={"text": "hello"})
        assert sent.status_code == 202
        async for event in events:
            if "The bell" in str(event):
                return


async def exit_code(server: ServeProcess, within_s: float) -> int:
    with trio.fail_after(within_s):
        while server.process.exitcode is None:  # noqa: ASYNC110 - a process ends in its own time
            await trio.sleep(0.01)
    return server.process.exitcode


async def events_after(folder: Path, environment: dict[str, str]) -> list[Json]:
    """The session's log as the next server reads it."""
    async with open_serve_process(folder, **environment) as server:
        last = (await server.client.get(f"{OWN}/sessions/s")).json()["session"]["seq"] - 1
        found = []
        async with live_events(str(server.client.base_url), f"{OWN}/sessions/s/events?after=-1") as events:
            async for event in events:
                found.append(event)
                if event.get("seq", -1) >= last:
                    return found
    raise AssertionError("the stream ended early")


def settings(model: ModelServer, grace_s: float) -> dict[str, str]:
    return {"TAPSTER_PROVIDER_URL": model.url, "TAPSTER_SHUTDOWN_GRACE_S": str(grace_s)}


@pytest.mark.slow
async def test_a_reply_that_ends_within_the_grace_is_kept_whole(tmp_path: Path) -> None:
    async with open_model_server() as model:
        model.answers.append(
            Answer(({"content": "The bell "}, {"content": "rings "}, {"content": "far out."}), pause_s=0.3)
        )
        environment = settings(model, 10)
        async with open_serve_process(tmp_path, **environment) as server:
            await begin(server)
            os.kill(server.process.pid or 0, signal.SIGTERM)
            ready = await refused_while_draining(server)
            assert ready
            assert await exit_code(server, 8) == 0
        events = await events_after(tmp_path, environment)
    said = next(event for event in events if event["type"] == "assistant/message")
    assert said["data"]["message"]["content"][0]["text"] == "The bell rings far out."
    assert [event["data"]["reason"] for event in events if event["type"] == "turn/end"] == [{"kind": "completed"}]


async def refused_while_draining(server: ServeProcess) -> bool:
    """Whether new work is refused while the old one ends: 503 with when to try again."""
    with trio.move_on_after(2):
        while True:
            try:
                answer = await server.client.get(f"{OWN}/ready")
            except httpx2.TransportError:
                return False
            if answer.status_code == 503:
                refused = await server.client.post(f"{OWN}/sessions", json={"id": "late"})
                return refused.status_code == 503 and "retry-after" in refused.headers
            await trio.sleep(0.005)
    return False


@pytest.mark.slow
@pytest.mark.parametrize("signals", [1, 2])
async def test_a_reply_that_hangs_is_ended_in_the_log(tmp_path: Path, signals: int) -> None:
    """After the grace, or at once at a second signal: what was said so far stays, and the turn has its end."""
    async with open_model_server() as model:
        model.answers.append(Answer(({"content": "The bell "}, {"content": "rings."}), hang_after=1))
        environment = settings(model, 0.5 if signals == 1 else 60)
        async with open_serve_process(tmp_path, **environment) as server:
            await begin(server)
            for _ in range(signals):
                os.kill(server.process.pid or 0, signal.SIGTERM)
                await trio.sleep(0.2)
            assert await exit_code(server, 8) == 0
        events = await events_after(tmp_path, environment)
    assert [event["data"]["reason"]["kind"] for event in events if event["type"] == "turn/end"] == ["aborted"]
    said = next(event for event in events if event["type"] == "assistant/message")
    assert said["data"]["message"]["content"][0]["text"] == "The bell "
