"""Tapster's own root: who may enter, what a refusal looks like, and the OpenAPI document."""

from pathlib import Path

import pytest

from tapster.api.app import AppOptions, create_app
from tapster.api.contract import ROUTES
from tests.support.asgi import AsgiClient
from tests.support.traces import TracesOnly, as_tapster, open_traces

ROOT = "/tapster/api/v1"


@pytest.fixture
def tapster(tmp_path: Path) -> TracesOnly:
    return open_traces(tmp_path)


@pytest.fixture
def client(tapster: TracesOnly) -> AsgiClient:
    return AsgiClient(create_app(as_tapster(tapster)))


async def test_health_and_readiness(tapster: TracesOnly, client: AsgiClient) -> None:
    assert (await client.send("GET", ROOT + "/health")).json() == {"status": "alive"}
    assert (await client.send("GET", ROOT + "/ready")).status == 200
    tapster.is_draining = True
    assert (await client.send("GET", ROOT + "/health")).status == 200
    reply = await client.send("GET", ROOT + "/ready")
    assert (reply.status, reply.headers["retry-after"]) == (503, "1")
    assert (await client.send("GET", ROOT + "/openapi.json")).json()["code"] == "DRAINING"


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nothing", 404, "NOT_FOUND"),
        ("GET", "", 404, "NOT_FOUND"),
        ("POST", "/health", 405, "METHOD_NOT_ALLOWED"),
        ("PROPFIND", "/health", 405, "METHOD_NOT_ALLOWED"),
    ],
)
async def test_refusals(client: AsgiClient, method: str, path: str, status: int, code: str) -> None:
    reply = await client.send(method, ROOT + path)
    assert reply.status == status
    assert set(reply.json()) == {"code", "message", "details"}
    assert reply.json()["code"] == code


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"origin": "http://evil.test"}, "TAVERN_API_ORIGIN_FORBIDDEN"),
        ({"origin": "null"}, "TAVERN_API_ORIGIN_FORBIDDEN"),
        ({"host": "evil.test"}, "TAVERN_API_HOST_FORBIDDEN"),
        ({"origin": "http://localhost:7788"}, None),
        ({}, None),
    ],
)
async def test_who_may_read(client: AsgiClient, headers: dict[str, str], code: str | None) -> None:
    reply = await client.send("GET", ROOT + "/health", headers=headers)
    assert reply.json().get("code") == code


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ("Bearer s3cret", 200),
        ("bearer s3cret", 200),
        ("Bearer s3cre", 401),
        ("Bearer s3crét", 401),
        ("Basic s3cret", 401),
        ("", 401),
    ],
)
async def test_the_bearer_token(tapster: TracesOnly, given: str, status: int) -> None:
    client = AsgiClient(create_app(as_tapster(tapster), AppOptions(token="s3cret")))
    assert (await client.send("GET", ROOT + "/health", headers={"authorization": given})).status == status


async def test_the_openapi_document_names_every_route(client: AsgiClient) -> None:
    document = (await client.send("GET", ROOT + "/openapi.json")).json()
    named = {(method.upper(), path) for path, item in document["paths"].items() for method in item}
    for route in ROUTES:
        path = f"/pmp-dsh-tavern/api{route.pattern}".replace(":id", "{id}")
        assert (route.method, path) in named
    assert ("GET", "/tapster/api/v1/openapi.json") in named
    assert ("GET", "/pmp-dsh-tavern/api/v3/sessions/{sessionId}/assemblies/{recordId}") in named
    ids = [operation["operationId"] for item in document["paths"].values() for operation in item.values()]
    assert len(ids) == len(set(ids))
