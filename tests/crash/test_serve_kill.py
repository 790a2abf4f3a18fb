"""``kill -9`` of ``tapster serve`` in a burst of writes: after each restart everything acknowledged is there.

``TAPSTER_KILL_ROUNDS`` sets how often (20 by default).
"""

import os
import random
import sqlite3
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import attrs
import httpx2
import pytest
import trio

from tapster.actors.testing import open_model_server
from tests.support.serve_process import ServeProcess, live_events, open_serve_process

Json = Any
OWN = "/tapster/api/v1"
CONTRACT = "/pmp-dsh-tavern/api"
SESSIONS = ("ship", "harbour", "tower:1")
LONGEST_S = 0.3
ROUNDS = int(os.environ.get("TAPSTER_KILL_ROUNDS", "20"))


@attrs.define
class Ledger:
    """What was acknowledged, and the one change of each kind that may or may not have happened at the kill.

    Attributes:
        books: content of every acknowledged world book by its id.
        selected: the selection of each session; the second value is one that was sent and not yet answered.
        messages: texts acknowledged, by session.
        records: trace records that a reader has seen, by session.
    """

    books: dict[str, str] = attrs.field(factory=dict)
    selected: dict[str, tuple[Json, Json]] = attrs.field(factory=dict)
    messages: dict[str, list[str]] = attrs.field(factory=dict)
    records: dict[str, dict[str, str]] = attrs.field(factory=dict)
    counts: Counter[str] = attrs.field(factory=Counter)


class Burst:
    """Clients that write as fast as they can until the server is gone."""

    def __init__(self, server: ServeProcess, ledger: Ledger, number: int) -> None:
        self.client = server.client
        self.ledger = ledger
        self.number = number
        self.has_begun = False

    async def import_books(self) -> None:
        count = 0
        while True:
            text = f"content {self.number}/{count} 雾"
            book = {"name": f"b{self.number}-{count}", "entries": {"0": {"uid": 0, "key": ["雾"], "content": text}}}
            answer = await self.post(f"{OWN}/import?filename=book.json", book)
            self.ledger.books[answer["resources"][0]["id"]] = text
            self.ledger.counts["imported"] += 1
            count += 1

    async def select(self, session: str) -> None:
        known = self.ledger.selected.get(session, ([], []))[0]
        while True:
            wanted = list(self.ledger.books)[-3:]
            self.ledger.selected[session] = (known, wanted)
            await self.post(f"{CONTRACT}/v1/world-book-selection", {"sessionId": session, "worldBookIds": wanted})
            known = wanted
            self.ledger.selected[session] = (known, known)
            self.ledger.counts["selected"] += 1

    async def talk(self, session: str) -> None:
        count = 0
        while True:
            text = f"said {self.number}/{count}"
            await self.post(f"{OWN}/sessions/{session}/messages", {"text": text, "mode": "followup"})
            self.ledger.messages.setdefault(session, []).append(text)
            self.ledger.counts["said"] += 1
            count += 1
            await trio.sleep(0.03)

    async def read_traces(self, session: str) -> None:
        while True:
            answer = await self.client.get(f"{CONTRACT}/v3/sessions/{session}/assemblies")
            for row in answer.json()["records"]:
                if row["status"] == "request-observed":
                    self.ledger.records.setdefault(session, {})[row["id"]] = row["status"]
            self.ledger.counts["traced"] += 1
            await trio.sleep(0.01)

    async def post(self, path: str, body: Json) -> Json:
        answer = await self.client.post(path, json=body)
        # A selection of a session that is answering is refused by the contract; anything else must work.
        assert answer.status_code < 300 or (answer.status_code == 409 and "selection" in path), answer.text
        self.has_begun = True
        return answer.json()

    async def run(self, server: ServeProcess, seconds: float) -> None:
        """Write until the kill, so long after the first acknowledgement; only the connection may fail then."""
        async with trio.open_nursery() as nursery:
            for work in (self.import_books, self.import_books):
                nursery.start_soon(until_gone, work)
            for session in SESSIONS:
                nursery.start_soon(until_gone, lambda session=session: self.talk(session))
                nursery.start_soon(until_gone, lambda session=session: self.read_traces(session))
                nursery.start_soon(until_gone, lambda session=session: self.select(f"idle-{session}"))
            with trio.fail_after(20):
                while not self.has_begun:  # noqa: ASYNC110 - the other side is a process
                    await trio.sleep(0.002)
            await trio.sleep(seconds)
            server.kill()


async def until_gone(work: Callable[[], Awaitable[None]]) -> None:
    try:
        await work()
    except httpx2.TransportError:
        return


async def check(server: ServeProcess, ledger: Ledger) -> None:
    """Everything of the ledger, read back through the API."""
    client = server.client
    listed = (await client.get(f"{CONTRACT}/v1/world-books")).json()["worldBooks"]
    assert set(ledger.books) <= {book["id"] for book in listed}
    for book_id in list(ledger.books)[-5:]:
        book = (await client.get(f"{CONTRACT}/v1/world-books/{book_id}")).json()["worldBook"]
        assert ledger.books[book_id] in str(book)
    for session, (known, pending) in ledger.selected.items():
        found = await client.get(f"{CONTRACT}/v1/world-book-selection", params={"sessionId": session})
        selected = found.json()["selection"]["worldBookIds"]
        assert selected in (known, pending)
        ledger.selected[session] = (selected, selected)
    for session, texts in ledger.messages.items():
        events = (await client.get(f"{OWN}/sessions/{session}")).json()["session"]
        said = Counter(text for message in events["messages"] if (text := plain(message)).startswith("said "))
        waiting = await queued(client, session)
        missing = [text for text in texts if said[text] + waiting[text] == 0]
        assert not missing, (session, missing)
        assert all(count == 1 for count in said.values()), "a message was said twice"
    for session, records in ledger.records.items():
        rows = (await client.get(f"{CONTRACT}/v3/sessions/{session}/assemblies")).json()["records"]
        found_rows = {row["id"]: row["status"] for row in rows}
        assert {record: found_rows.get(record) for record in records} == records


def plain(message: Json) -> str:
    return "".join(part.get("text", "") for part in message["content"])


async def queued(client: httpx2.AsyncClient, session: str) -> Counter[str]:
    """What waits in the inbox: the messages that the log of events holds and no turn has claimed yet."""
    seen: Counter[str] = Counter()
    last = (await client.get(f"{OWN}/sessions/{session}")).json()["session"]["seq"] - 1
    async with live_events(str(client.base_url), f"{OWN}/sessions/{session}/events?after=-1") as events:
        async for event in events:
            if event.get("type") == "agent/inbox/spliced":
                seen.update(plain(item) for item in event["data"]["inserted"])
            if event.get("seq", -1) >= last:
                break
    return seen


def integrity(folder: Path) -> str:
    """SQLite's own verdict on the file, read beside the server."""
    connection = sqlite3.connect(f"file:{folder / 'tapster.db'}?mode=ro", uri=True)
    try:
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        return str(connection.execute("PRAGMA integrity_check").fetchone()[0])
    finally:
        connection.close()


@pytest.mark.slow
@pytest.mark.parametrize(("engine", "rounds"), [("sqlite", ROUNDS), ("files", max(1, ROUNDS // 5))])
async def test_no_acknowledged_write_of_a_killed_server_is_lost(tmp_path: Path, engine: str, rounds: int) -> None:
    rng = random.Random(20260411)
    ledger = Ledger()
    async with open_model_server() as model:
        environment = {"TAPSTER_STORE": engine, "TAPSTER_PROVIDER_URL": model.url, "TAPSTER_MODEL": "stand-in"}
        for number in range(rounds + 1):
            async with open_serve_process(tmp_path, **environment) as server:
                await check(server, ledger)
                if engine == "sqlite":
                    assert integrity(tmp_path) == "ok"
                if number == 0:
                    for session in SESSIONS:
                        answer = await server.client.post(f"{OWN}/sessions", json={"id": session})
                        assert answer.status_code == 201, answer.text
                ledger.messages.clear()
                ledger.records.clear()
                if number < rounds:
                    await Burst(server, ledger, number).run(server, rng.uniform(0, LONGEST_S))
    assert all(ledger.counts[kind] for kind in ("imported", "selected", "said", "traced")), ledger.counts
    assert ledger.counts.total() >= 4 * rounds
