"""A whole Tapster on loopback as ``tapster serve`` runs it, before a stand-in for the model server."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import httpx2

from tapster.actors.testing import ModelServer, open_model_server
from tapster.api.config import Config, StoreEngine
from tapster.api.running import Running, open_running

Json = Any
OWN = "/tapster/api/v1"
CONTRACT = "/pmp-dsh-tavern/api"


@attrs.frozen
class Stage:
    """A running server, its model server, and a client that sends the Origin that writes need."""

    running: Running
    model: ModelServer
    client: httpx2.AsyncClient

    async def call(self, method: str, path: str, body: Json = None) -> Json:
        """The answer to a request that must work."""
        # Written as ASCII, so that a body may hold lone surrogates.
        data = None if method == "GET" else json.dumps({} if body is None else body).encode()
        answer = await self.client.request(method, path, content=data, headers={"Content-Type": "application/json"})
        assert answer.status_code < 300, answer.text
        return answer.json()

    async def import_file(self, name: str, body: Json) -> str:
        """The id of a resource that is imported."""
        answer = await self.call("POST", f"{OWN}/import?filename={name}", body)
        return str(answer["resources"][0]["id"])

    async def new_session(self, name: str, *, preset: str | None = None, books: list[str] | None = None) -> None:
        """A session with resources bound."""
        await self.call("POST", f"{OWN}/sessions", {"id": name})
        if books is not None:
            body = {"sessionId": name, "worldBookIds": books}
            await self.call("POST", f"{CONTRACT}/v1/world-book-selection", body)
        if preset is not None:
            await self.call("POST", f"{CONTRACT}/v1/select", {"sessionId": name, "id": preset})

    async def say(self, session: str, text: str) -> None:
        """Queue a message."""
        await self.call("POST", f"{OWN}/sessions/{session}/messages", {"text": text})

    async def preview(self, session: str, draft: str) -> str:
        """The text that would be sent with a draft."""
        answer = await self.call("POST", f"{OWN}/sessions/{session}/preview", {"draft": draft})
        return "\n".join(section["text"] for section in answer["preview"]["sections"])

    async def when_idle(self, session: str) -> None:
        """Wait until a session's turn is over."""
        await (await self.running.tapster.open_session(session)).when_idle()


@asynccontextmanager
async def open_stage(
    folder: Path,
    *,
    model: str = "stand-in",
    engine: StoreEngine = "sqlite",
    token: str | None = None,
    idle_s: float = 900,
) -> AsyncIterator[Stage]:
    """Everything open, for the length of a block."""
    async with open_model_server() as server:
        config = Config(
            data_dir=folder, port=0, provider_url=server.url, model=model, store=engine, token=token, idle_s=idle_s
        )
        async with open_running(config) as running:
            url = running.server.urls[0]
            headers = {"Origin": url} | ({} if token is None else {"Authorization": f"Bearer {token}"})
            async with httpx2.AsyncClient(base_url=url, trust_env=False, timeout=30, headers=headers) as client:
                yield Stage(running, server, client)


def book(key: str, content: str) -> Json:
    """A world book of one entry."""
    return {"name": key, "entries": {"0": {"uid": 0, "key": [key], "content": content, "position": 0}}}


def slow_preset(prompts: int) -> Json:
    """A preset that takes about 20 ms a prompt to render, with nothing in it that is wrong."""
    names = [f"p{number}" for number in range(prompts)]
    content = "{{roll 1000d6}}" * 10
    shown = [{"identifier": name, "role": "system", "content": content} for name in names]
    marker = {"identifier": "worldInfoBefore", "marker": True}
    order = [{"identifier": name, "enabled": True} for name in ("worldInfoBefore", *names)]
    return {
        "name": "Slow",
        "prompts": [marker, *shown],
        "prompt_order": [{"character_id": 100001, "order": order}],
    }
