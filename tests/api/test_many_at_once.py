"""Many sessions and previews at once over a real server, and what is left of a preview whose client went away."""

import json
from pathlib import Path
from typing import Any

import pytest
import trio

from tapster.api.running import Running
from tests.support.cancel import task_count
from tests.support.stage import OWN, Stage, book, open_stage, slow_preset

Json = Any
SESSIONS = 50


def sent(stage: Stage, text: str) -> str:
    """The system text of the model request whose last message holds a text."""
    (request,) = [
        item.body["messages"] for item in stage.model.requests if text in str(item.body["messages"][-1]["content"])
    ]
    return "\n".join(str(message["content"]) for message in request if message["role"] == "system")


@pytest.mark.slow
async def test_fifty_sessions_and_previews_beside_a_live_assembly_each_get_their_own(tmp_path: Path) -> None:
    previewed: dict[str, str] = {}
    async with open_stage(tmp_path) as stage:
        preset = await stage.import_file("slow.json", slow_preset(5))
        books = [await stage.import_file("b.json", book(f"key{n}x", f"lore-{n}-only")) for n in range(SESSIONS)]
        for n in range(SESSIONS):
            await stage.new_session(f"s{n}", preset=preset if n == 0 else None, books=[books[n], books[n - 1]])

        async def preview(session: str, draft: str) -> None:
            previewed[f"{session} {draft}"] = await stage.preview(session, draft)

        with trio.fail_after(25):
            async with trio.open_nursery() as nursery:
                for n in range(SESSIONS):
                    nursery.start_soon(stage.say, f"s{n}", f"say key{n}x number {n}.")
                    nursery.start_soon(preview, f"s{n}", f"key{(n - 1) % SESSIONS}x")
                nursery.start_soon(preview, "s0", "nothing")
            for n in range(SESSIONS):
                await stage.when_idle(f"s{n}")
        for n in range(SESSIONS):
            before = (n - 1) % SESSIONS
            assert [name for name in range(SESSIONS) if f"lore-{name}-only" in sent(stage, f"number {n}.")] == [n]
            text = previewed[f"s{n} key{before}x"]
            assert f"lore-{before}-only" in text
        assert len(stage.model.requests) == SESSIONS
        # A preview leaves no record: one request, one record.
        for n in range(0, SESSIONS, 10):
            rows = await stage.call("GET", f"/pmp-dsh-tavern/api/v3/sessions/s{n}/assemblies")
            assert len(rows["records"]) == 1


def computing(running: Running) -> int:
    return running.tapster.ports.threads.statistics().used


async def until(running: Running, count: int) -> None:
    with trio.fail_after(10):
        while computing(running) != count:  # noqa: ASYNC110 - threads start and end in their own time
            await trio.sleep(0.002)


async def tasks_settle(expected: int) -> None:
    with trio.fail_after(12):
        while task_count() != expected:  # noqa: ASYNC110 - a connection ends in its own time
            await trio.sleep(0.005)


@pytest.mark.slow
@pytest.mark.parametrize("is_live", [True, False])
async def test_a_preview_whose_client_leaves_stops_computing(tmp_path: Path, is_live: bool) -> None:
    async with open_stage(tmp_path) as stage:
        running = stage.running
        preset = await stage.import_file("slow.json", slow_preset(600))
        await stage.new_session("s", preset=preset)
        if not is_live:
            await running.tapster.host.close("s")
        # The first preview parses the preset; it must not be counted with what follows.
        quick = await stage.import_file("quick.json", slow_preset(1))
        await trio.testing.wait_all_tasks_blocked()
        before = task_count()
        for _ in range(3):
            streams = []
            for _ in range(4):
                stream = await trio.open_tcp_stream("127.0.0.1", running.server.port)
                await stream.send_all(request(running, f"{OWN}/sessions/s/preview", {"draft": "x"}))
                streams.append(stream)
            await until(running, 2)
            assert task_count() > before + 4
            left = trio.current_time()
            for stream in streams:
                await stream.aclose()
            await tasks_settle(before)
            assert computing(running) == 0
            assert trio.current_time() - left < 5
        await stage.call("POST", "/pmp-dsh-tavern/api/v1/select", {"sessionId": "s", "id": quick})
        assert await stage.preview("s", "x")


def request(running: Running, path: str, body: Json) -> bytes:
    data = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost:{running.server.port}\r\nContent-Length: {len(data)}\r\n\r\n"
    return head.encode() + data


@pytest.mark.slow
async def test_a_live_request_goes_on_when_the_previews_beside_it_leave(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        preset = await stage.import_file("slow.json", slow_preset(30))
        await stage.new_session("s", preset=preset)
        await stage.say("s", "hello")
        await until(stage.running, 1)
        streams = []
        for _ in range(2):
            stream = await trio.open_tcp_stream("127.0.0.1", stage.running.server.port)
            await stream.send_all(request(stage.running, f"{OWN}/sessions/s/preview", {}))
            streams.append(stream)
        await until(stage.running, 2)
        for stream in streams:
            await stream.aclose()
        with trio.fail_after(20):
            await stage.when_idle("s")
        session = await stage.call("GET", f"{OWN}/sessions/s")
        assert session["session"]["messages"][-1]["role"] == "assistant"
