"""Every request below the contract root: the checks before the routing, the bodies, the words of each family."""

from pathlib import Path
from typing import Any

import pytest
import trio

from tapster.api.app import AppOptions, create_app
from tapster.api.contract import ROUTES
from tests.support.asgi import AsgiClient
from tests.support.traces import TracesOnly, as_tapster, open_traces

Json = Any
ROOT = "/pmp-dsh-tavern/api"
RECORD = {
    "schemaVersion": 4,
    "id": "a:1",
    "sessionId": "s:1",
    "turn": 1,
    "step": 0,
    "attempt": 1,
    "recordedAt": 5,
    "status": "request-observed",
    "contentStatus": "reference-only",
    "sections": [{"name": "n", "hash": "h", "sources": []}],
    "audit": {"id": "1:0:1", "captureId": "a:1"},
}


@pytest.fixture
def tapster(tmp_path: Path) -> TracesOnly:
    opened = open_traces(tmp_path)
    opened.traces.files.put([RECORD])
    return opened


@pytest.fixture
def client(tapster: TracesOnly) -> AsgiClient:
    return AsgiClient(create_app(as_tapster(tapster), AppOptions(request_token="ab12")))


WRITES = [route for route in ROUTES if route.method != "GET"]


@pytest.mark.parametrize("route", WRITES, ids=lambda route: f"{route.method} {route.pattern}")
async def test_a_foreign_page_reaches_no_write(client: AsgiClient, route: Any) -> None:
    reply = await client.send(route.method, ROOT + route.pattern, json={}, headers={"origin": "http://evil.test"})
    assert (reply.status, reply.json()["code"]) == (403, "TAVERN_API_ORIGIN_FORBIDDEN")
    assert reply.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("path", ["", "/", "/v1/nothing", "/v2/chrome", "/v3/capabilities", "/v1//x", "/%2e%2e/x"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "PROPFIND", "POST", "DELETE"])
async def test_the_checks_come_before_every_route_and_method(client: AsgiClient, method: str, path: str) -> None:
    foreign = AsgiClient(client.app, host="evil.test")
    reply = await foreign.send(method, ROOT + path)
    assert reply.status == 403
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert reply.headers["referrer-policy"] == "no-referrer"


async def test_peers_that_are_not_this_machine(client: AsgiClient) -> None:
    for peer in ("192.168.0.7", None):
        reply = await AsgiClient(client.app, peer=peer).send("GET", ROOT + "/v3/capabilities")
        assert reply.json()["code"] == "TAVERN_API_REMOTE_FORBIDDEN"


async def test_the_request_token(client: AsgiClient) -> None:
    granted = await client.send("GET", ROOT + "/request-token", headers={"x-tavern-client": "embedded"})
    assert granted.json() == {"ok": True, "token": "ab12"}
    assert (await client.send("GET", ROOT + "/request-token")).status == 403
    write = {"origin": "", "x-tavern-request-token": "ab12"}
    assert (await client.send("POST", ROOT + "/v1/nothing", headers=write)).status == 404


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/v3/sessions/s%3A1/assemblies", 200, None),
        ("GET", "/v3/sessions/s%3A1/assemblies/a%3A1", 200, None),
        ("GET", "/v3/sessions/s%3A1/assemblies/x", 404, "ASSEMBLY_NOT_FOUND"),
        ("GET", "/v3/sessions/other/assemblies/a%3A1", 404, "ASSEMBLY_NOT_FOUND"),
        ("GET", "/v3/sessions/-x/assemblies", 400, "PROMPT_SESSION_INVALID"),
        ("GET", "/v3/sessions/%ZZ/assemblies", 400, "INVALID_REQUEST"),
        ("GET", "/v3/sessions/s/assemblies/", 404, "NOT_FOUND"),
        ("GET", "/v3/sessions/a%2Fb/assemblies", 400, "PROMPT_SESSION_INVALID"),
        ("GET", "/v3/", 404, "NOT_FOUND"),
        ("HEAD", "/v3/capabilities", 405, None),
        ("DELETE", "/v3/nothing", 405, "METHOD_NOT_ALLOWED"),
    ],
)
async def test_v3(client: AsgiClient, method: str, path: str, status: int, code: str | None) -> None:
    reply = await client.send(method, ROOT + path)
    assert reply.status == status
    assert reply.headers["cache-control"] == "no-store"
    if code is not None:
        assert reply.json()["code"] == code


async def test_a_detail_without_references_says_unverified(client: AsgiClient) -> None:
    record = (await client.send("GET", ROOT + "/v3/sessions/s:1/assemblies/a:1")).json()["record"]
    assert record["referenceError"] == "unverified"
    assert record["sections"][0]["contentStatus"] == "reference-unavailable"


async def test_v3_tells_nothing_of_a_failure_inside(tapster: TracesOnly, client: AsgiClient) -> None:
    tapster.traces.files = None  # type: ignore[assignment]
    reply = await client.send("GET", ROOT + "/v3/sessions/s:1/assemblies")
    assert (reply.status, reply.json()["code"]) == (500, "TRACE_READ_FAILED")
    assert "NoneType" not in reply.json()["error"]


@pytest.mark.parametrize(
    ("target", "status"),
    [("?sessionId=s:1", 200), ("", 400), ("?sessionId=", 400), ("?sessionId=-", 400), ("?sessionId=s%3A1", 200)],
)
async def test_v1_audits(client: AsgiClient, target: str, status: int) -> None:
    reply = await client.send("GET", f"{ROOT}/v1/traces{target}")
    assert reply.status == status
    if status == 200:
        assert [row["id"] for row in reply.json()["records"]] == ["1:0:1"]


@pytest.mark.parametrize(
    ("path", "shape"),
    [
        ("/v1/nothing", str),
        ("/v1/traces/x", str),
        ("/v1/users/a/b/c", dict),
        ("/v1/characters/a/b/c", dict),
        ("/v1/world-books/a/b/c", dict),
        ("/v1/session-templates/a/b", dict),
    ],
)
async def test_unknown_paths_in_the_words_of_their_family(client: AsgiClient, path: str, shape: type) -> None:
    reply = await client.send("GET", ROOT + path)
    assert reply.status == 404
    assert isinstance(reply.json()["error"], shape)
    if shape is dict:
        assert reply.json()["error"]["code"] == "NOT_FOUND"


@pytest.mark.parametrize("route", WRITES, ids=lambda route: f"{route.method} {route.pattern}")
async def test_a_body_over_its_limit(client: AsgiClient, route: Any) -> None:
    body = b" " * (route.limit + 1)
    reply = await client.send(route.method, ROOT + route.pattern, data=body, pieces=3)
    assert reply.status == 413
    assert reply.headers["connection"] == "close"


@pytest.mark.parametrize(
    "body", [b"{bad", b"[]", b"3", b"\xef\xbb\xbf{}", b'{"a":' * 500 + b"1" + b"}" * 500, b'{"x":NaN}']
)
async def test_bodies_that_are_no_json_object(client: AsgiClient, body: bytes) -> None:
    for path, shape in (("/v1/users", dict), ("/v1/presets", str)):
        reply = await client.send("POST", ROOT + path, data=body)
        assert reply.status == 400
        assert isinstance(reply.json()["error"], shape)


async def test_a_draining_process_refuses(tapster: TracesOnly, client: AsgiClient) -> None:
    tapster.is_draining = True
    reply = await client.send("GET", ROOT + "/v1/traces?sessionId=s:1")
    assert reply.status == 503
    assert reply.headers["retry-after"] == "1"


async def test_a_client_that_falls_silent_in_its_body(
    client: AsgiClient, autojump_clock: trio.testing.MockClock
) -> None:
    reply = await client.send("POST", ROOT + "/v1/users", data=b'{"name":', is_cut=True)
    assert (reply.status, reply.json()["error"]["code"]) == (408, "INVALID_USER_REQUEST")
    assert trio.current_time() == pytest.approx(30, abs=1)
