"""A real turn, read back through API v3 with its bodies proved against the stored log."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tapster.actors.session.embedded import embedded_key
from tests.support.contract import Served, open_contract

Json = Any
V1 = "/pmp-dsh-tavern/api/v1"
V3 = "/pmp-dsh-tavern/api/v3/sessions/s/assemblies"
PRESET = {"name": "P", "prompts": [{"identifier": "main", "content": "You keep the lamp of {{user}}. 灯😀"}]}


@pytest.fixture(params=["sqlite", "files"])
async def served(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Served]:
    async with open_contract(tmp_path, engine=request.param) as opened:
        reply = await opened.client.send("POST", V1 + "/import", json={"content": json.dumps(PRESET)})
        chosen = {"id": reply.json()["preset"]["id"]}
        assert (await opened.client.send("POST", V1 + "/select", json=chosen)).status == 200
        yield opened


async def read(served: Served, target: str) -> Json:
    reply = await served.client.send("GET", target)
    assert reply.status == 200, reply.body
    return reply.json()


async def turn(served: Served, text: str) -> None:
    handle = await served.tapster.open_session("s")
    await handle.followup(text)
    await handle.when_idle()


async def test_a_turn_is_proved(served: Served) -> None:
    await served.tapster.create_session("s")
    await turn(served, "Hello")
    await turn(served, "Again")
    rows = (await read(served, V3))["records"]
    assert [row["status"] for row in rows] == ["request-observed"] * 2
    assert all("sections" not in row and "audit" not in row for row in rows)
    for row in rows:
        record = (await read(served, f"{V3}/{row['id']}"))["record"]
        assert record["contentStatus"] == "available"
        own = [part for part in record["sections"] if part["name"].startswith("pmp-dsh-tavern:part:")]
        assert [part["text"] for part in own] == ["You keep the lamp of User. 灯😀"]
        sources = [source for part in own for source in part["sources"]]
        assert all(source["textStatus"] == "not-stored" and "text" not in source for source in sources)
        assert record["systemMessages"]
    audits = (await read(served, V1 + "/traces?sessionId=s"))["records"]
    assert [audit["status"] for audit in audits] == ["header-observed", "header-reused-or-observed"]
    assert {audit["captureId"] for audit in audits} == {row["id"] for row in rows}


async def test_a_lost_history_is_said(served: Served) -> None:
    await served.tapster.create_session("s")
    await turn(served, "Hello")
    row = (await read(served, V3))["records"][0]
    await served.tapster.host.close("s")
    await served.tapster.store.delete_session(embedded_key("s"))
    record = (await read(served, f"{V3}/{row['id']}"))["record"]
    assert record["contentStatus"] == "reference-unavailable"
    assert record["referenceError"] == "history-unavailable"
    assert all("text" not in part for part in record["sections"])
