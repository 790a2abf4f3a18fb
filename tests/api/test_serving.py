"""A real server on a loopback port: started ready, ended in order, never held by a client."""

import json
import socket
import struct
from pathlib import Path
from typing import Any

import pytest
import trio
from quart import Response
from quart_trio import QuartTrio

from tapster.api import connections
from tapster.api.app import create_app
from tapster.api.serving import Server, open_server, server_config, wait_for_stop
from tapster.api.sse import Feed, stream_response
from tests.support.traces import as_tapster, open_traces
from tests.support.waiting import until

Json = Any
HEAD = "GET {path} HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n\r\n"


async def read_all(stream: trio.SocketStream) -> bytes:
    data = b""
    with trio.fail_after(10):
        async for chunk in stream:
            data += chunk
    return data


async def get(server: Server, path: str) -> bytes:
    stream = await trio.open_tcp_stream("127.0.0.1", server.port)
    async with stream:
        await stream.send_all(HEAD.format(path=path, port=server.port).encode())
        return await read_all(stream)


@pytest.fixture
def feed() -> Feed:
    return Feed()


@pytest.fixture
def app(tmp_path: Path, feed: Feed) -> QuartTrio:
    app = create_app(as_tapster(open_traces(tmp_path)))

    @app.get("/stream")
    async def stream() -> Response:
        await trio.lowlevel.checkpoint()
        return stream_response(feed.subscribe)

    return app


@pytest.mark.slow
async def test_a_free_port_and_no_server_header(app: QuartTrio) -> None:
    async with open_server(app, server_config("127.0.0.1", 0)) as server:
        assert server.port > 0
        answer = await get(server, "/tapster/api/v1/health")
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    assert b"server:" not in head.lower()
    assert json.loads(body) == {"status": "alive"}


@pytest.mark.slow
async def test_a_too_large_body_gets_its_answer_over_a_real_connection(app: QuartTrio) -> None:
    async with open_server(app, server_config("127.0.0.1", 0)) as server:
        size = 8 * 1024 * 1024
        head = (
            f"PUT /pmp-dsh-tavern/api/v1/ui-settings HTTP/1.1\r\nHost: localhost:{server.port}\r\n"
            f"Origin: http://localhost:{server.port}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {size}\r\n\r\n"
        )
        stream = await trio.open_tcp_stream("127.0.0.1", server.port)
        async with stream:
            await stream.send_all(head.encode())
            for _ in range(size // 65536):
                await stream.send_all(b" " * 65536)
            answer = await read_all(stream)
    assert answer.startswith(b"HTTP/1.1 413")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["ok"] is False


@pytest.mark.slow
async def test_a_client_that_leaves_ends_its_stream(app: QuartTrio, feed: Feed) -> None:
    async with open_server(app, server_config("127.0.0.1", 0)) as server:
        stream = await trio.open_tcp_stream("127.0.0.1", server.port)
        await stream.send_all(HEAD.format(path="/stream", port=server.port).encode())
        with trio.fail_after(12):
            assert b"connected" in await stream.receive_some() + await stream.receive_some()
        assert feed.subscribers == 1
        await stream.aclose()
        await until(lambda: not feed.subscribers)


@pytest.mark.slow
async def test_a_client_that_stops_reading_holds_no_shutdown(
    app: QuartTrio, feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections.BoundedServer, "send_limit_s", 0.2)
    with trio.fail_after(12):
        async with open_server(app, server_config("127.0.0.1", 0, grace_s=0.2)) as server:
            stuck = await trio.open_tcp_stream("127.0.0.1", server.port)
            await stuck.send_all(HEAD.format(path="/stream", port=server.port).encode())
            await until(lambda: feed.subscribers == 1)
            for _ in range(200):
                feed.publish("big", "x" * 100_000)
            await trio.sleep(0.05)
    assert feed.subscribers == 0
    await stuck.aclose()


@pytest.mark.slow
async def test_one_connection_too_many_is_told_so_and_a_later_one_is_served(app: QuartTrio, feed: Feed) -> None:
    async with open_server(app, server_config("127.0.0.1", 0), 2) as server:
        streams = [await trio.open_tcp_stream("127.0.0.1", server.port) for _ in range(2)]
        for stream in streams:
            await stream.send_all(HEAD.format(path="/stream", port=server.port).encode())
        await until(lambda: feed.subscribers == 2)
        answers = [await get(server, "/tapster/api/v1/health") for _ in range(5)]
        for answer in answers:
            head, _, body = answer.partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 503 Service Unavailable")
            assert b"Retry-After: 1" in head
            assert json.loads(body)["code"] == "OVERLOADED"
        await streams[0].aclose()
        await until(lambda: feed.subscribers == 1)
        with trio.fail_after(12):
            while not (await get(server, "/tapster/api/v1/health")).startswith(b"HTTP/1.1 200"):
                await trio.sleep(0.01)
        await streams[1].aclose()


@pytest.mark.slow
async def test_a_refused_client_that_goes_on_sending_still_reads_why(app: QuartTrio, feed: Feed) -> None:
    async with open_server(app, server_config("127.0.0.1", 0), 1) as server:
        first = await trio.open_tcp_stream("127.0.0.1", server.port)
        await first.send_all(HEAD.format(path="/stream", port=server.port).encode())
        await until(lambda: feed.subscribers == 1)
        late = await trio.open_tcp_stream("127.0.0.1", server.port)
        async with late:
            await late.send_all(
                b"POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 500000\r\n\r\n" + b" " * 500_000
            )
            assert (await read_all(late)).startswith(b"HTTP/1.1 503")
        await first.aclose()


GONE = {
    "silent": b"",
    "half a line": b"GET / HT",
    "garbage": b"\x00\xff\r\n\r\n",
    "one answered": b"GET /tapster/api/v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "two streams": 2 * b"GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "two documents": 2 * b"GET /tapster/api/v1/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "half a body": b"PUT /pmp-dsh-tavern/api/v1/ui-settings HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{",
}


@pytest.mark.slow
@pytest.mark.parametrize("is_reset", [True, False], ids=["reset", "closed"])
@pytest.mark.parametrize("sent", GONE.values(), ids=GONE.keys())
async def test_a_client_that_has_gone_holds_no_place(app: QuartTrio, feed: Feed, sent: bytes, is_reset: bool) -> None:
    limit = 3
    async with open_server(app, server_config("127.0.0.1", 0), limit) as server:
        for _ in range(limit):
            client = await trio.open_tcp_stream("127.0.0.1", server.port)
            await client.send_all(sent)
            await trio.sleep(0.05)
            if is_reset:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            await client.aclose()
        with trio.fail_after(12):
            while not (await get(server, "/tapster/api/v1/health")).startswith(b"HTTP/1.1 200"):
                # A stream notices at the next thing that it sends.
                feed.publish("x", "x")
                await trio.sleep(0.05)


async def test_one_signal_drains_to_the_end(autojump_clock: trio.testing.MockClock) -> None:
    send, receive = trio.open_memory_channel[int](2)
    steps: list[str] = []

    async def drain() -> None:
        await trio.sleep(30)
        steps.append("drained")

    send.send_nowait(15)
    await wait_for_stop(receive, drain, at_once=lambda: steps.append("at once"))
    assert steps == ["drained"]


async def test_a_second_signal_stops_at_once(autojump_clock: trio.testing.MockClock) -> None:
    send, receive = trio.open_memory_channel[int](2)
    steps: list[str] = []

    async def drain() -> None:
        try:
            await trio.sleep(30)
        finally:
            steps.append("drain ended")

    async with trio.open_nursery() as nursery:
        send.send_nowait(15)
        nursery.start_soon(lambda: wait_for_stop(receive, drain, at_once=lambda: steps.append("at once")))
        await trio.sleep(1)
        send.send_nowait(15)
    assert steps == ["at once", "drain ended"]
    assert trio.current_time() < 5
