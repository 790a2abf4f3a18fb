"""``tapster demo``: the sample library, two turns, and the record that proves what was sent."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path
from typing import Final

import attrs
import click
import httpx2
import trio

from tapster.actors.hosts.embedded import AgentHandle, LiveChunk
from tapster.actors.providers import TextDelta
from tapster.actors.tapster import Tapster
from tapster.actors.testing import ModelServer, open_model_server
from tapster.api.config import Config
from tapster.api.logs import open_logs
from tapster.api.running import Running, open_running
from tapster.engine.ecma import Json, stringify
from tapster.engine.errors import TapsterError

from .main import read_config
from .output import write_text

SESSION: Final = "demo"
SAMPLE: Final = ("mira.card.png", "evening.preset.json", "traveller.persona.json", "greywater.world.json")
TURNS: Final = (
    "Good evening, Mira. Is that the bell I hear? 那是沉钟的声音吗？",
    "Then I will wait for the ferry tonight. 那我今晚等渡船。灯还亮着吗？",
)


class DemoFailed(TapsterError):
    """The demonstration found something that doesn't hold."""

    code = "DEMO_FAILED"


@click.command("demo")
@click.pass_context
def command(context: click.Context) -> None:
    """Import the sample library, play two turns, and show what was sent, why, and the proof.

    Without TAPSTER_PROVIDER_URL an offline stand-in answers on loopback in place of a model.
    """
    config = read_config(context, port=0)
    with open_logs(sys.stderr, "warning"):
        trio.run(run_demo, config)


async def run_demo(config: Config) -> None:
    """The whole demonstration in a data folder of its own."""
    started = trio.current_time()
    with tempfile.TemporaryDirectory(prefix="tapster-demo-") as folder:
        async with _model(config) as (served, stand_in):
            served = attrs.evolve(served, data_dir=Path(folder), token=None)
            async with open_running(served) as running:
                await _play(running, stand_in)
    say(f"The demo took {trio.current_time() - started:.1f} s.")
    say("Next: `make serve` (or `tapster serve`) opens the page for a library of your own.")


@asynccontextmanager
async def _model(config: Config) -> AsyncIterator[tuple[Config, ModelServer | None]]:
    if config.provider_url is not None:
        say(f"Model server: {config.provider_url}, model {config.model}")
        yield config, None
        return
    async with open_model_server() as server:
        say(f"Model server: {server.url} (OFFLINE STAND-IN, no model; set TAPSTER_PROVIDER_URL for a real one)")
        yield attrs.evolve(config, provider_url=server.url, model="stand-in"), server


async def _play(running: Running, stand_in: ModelServer | None) -> None:
    tapster = running.tapster
    heading("Import the sample library")
    bound = await _import(tapster)
    handle = await tapster.create_session(SESSION, mode="tavern")
    await tapster.select(SESSION, bound)
    say(f"Session {SESSION!r} is open; page and API at {running.server.urls[0]}/")
    for number, text in enumerate(TURNS, 1):
        heading(f"Turn {number}")
        say(f"You: {text}")
        await _turn(handle, text)
        _show_request(tapster, stand_in)
    await _prove(running)


async def _import(tapster: Tapster) -> dict[str, Json]:
    bound: dict[str, Json] = {"worldBookIds": []}
    members = {"preset": "presetId", "character": "characterCardId", "user": "userId"}
    for name in SAMPLE:
        report = await tapster.library.imports.import_file(name, sample(name))
        for resource in report.resources:
            say(f"  {name}: {resource.kind} {resource.name!r}")
            if resource.kind == "world-book":
                bound["worldBookIds"].append(resource.id)
            else:
                bound[members[resource.kind]] = resource.id
    return bound


async def _turn(handle: AgentHandle, text: str) -> None:
    subscription = await handle.subscribe()
    write_text("Reply, as it streams in:")
    try:
        await handle.followup(text)
        while True:
            item = await subscription.receive()
            if isinstance(item, LiveChunk):
                if isinstance(item.chunk, TextDelta):
                    write_text(item.chunk.text, end="")
            elif item.type == "turn/end":
                write_text("")
                if item.data["reason"]["kind"] != "completed":
                    raise DemoFailed(f"the turn ended with {stringify(item.data['reason'])}")
                return
    finally:
        subscription.close()


def _show_request(tapster: Tapster, stand_in: ModelServer | None) -> None:
    agent = tapster.host.agent(SESSION)
    if stand_in is not None and stand_in.requests:
        body = stand_in.requests[-1].body
        shown = {key: value for key, value in body.items() if key != "messages"}
        write_text(f"The request as the server got it: {stringify(shown)}")
        for message in body["messages"]:
            write_text(f"  [{message['role']}] {indented(message['content'])}")
    elif agent is not None:
        write_text("The messages of the request:")
        for message in agent.derive_messages()[:-1]:
            text = "".join(block.get("text", "") for block in message["content"])
            write_text(f"  [{message['role']}] {indented(text)}")


async def _prove(running: Running) -> None:
    heading("The record, read back through API v3")
    root = f"{running.server.urls[0]}/pmp-dsh-tavern/api/v3/sessions/{SESSION}/assemblies"
    async with httpx2.AsyncClient(trust_env=False) as client:
        index = (await client.get(root)).json()
        for row in index["records"]:
            record = (await client.get(f"{root}/{row['id']}")).json()["record"]
            for line in proof(record):
                write_text(line)
            if record["contentStatus"] != "available" or not record["delivery"]["historyVerified"]:
                raise DemoFailed(f"record {row['id']} can't be verified: {record['contentStatus']}")
    if len(index["records"]) != len(TURNS):
        raise DemoFailed(f"{len(TURNS)} records were expected, {len(index['records'])} are there")
    write_text("Every section's text was found in the host's own history and its hash matches.")


def proof(record: Json) -> Iterator[str]:
    """A record for a person: how it was verified, and each entry's reason."""
    yield f"Turn {record['turn']}: {record['status']}, bodies {record['contentStatus']} (verified against the history)"
    for part in record["sections"]:
        text = " ".join(part["text"].split())
        yield f"  section {part['name']}: {text[:60]}{'…' if len(text) > 60 else ''}"
    for book in record["audit"]["worldBooks"]:
        yield f"  {book['resource']['name']}:"
        for item in book["decisions"]:
            mark = "fired" if item["decision"] == "included" else "did not fire"
            hits = f", key {', '.join(item['primaryMatches'])}" if item["primaryMatches"] else ""
            yield f"    {item['entryName'] or item['entryId']} {mark}: {item['reason']}{hits}"


def sample(name: str) -> bytes:
    """A file of the sample library."""
    return files("tapster.api.sample").joinpath(name).read_bytes()


def heading(text: str) -> None:
    """A heading."""
    write_text(f"\n== {text} ==")


def say(text: str) -> None:
    """A line, shown at once."""
    write_text(text)


def indented(text: str) -> str:
    """A text whose later lines stand under the first."""
    return text.replace("\n", os.linesep + "    ")
