"""``kill -9`` of ``tapster serve`` in a burst of writes, again and again on the same data.

After each restart everything that was acknowledged is read back over HTTP and the file is checked. The suite runs 20
rounds; ``python -m tests.crash.kill_rounds --rounds 200`` runs as many as one likes and prints a summary.
"""

import argparse
import random
import sqlite3
import statistics
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import attrs
import httpx2
import trio

from tapster.actors.testing import open_model_server
from tests.support.serve_process import ServeProcess, live_events, open_serve_process

Json = Any
OWN = "/tapster/api/v1"
CONTRACT = "/pmp-dsh-tavern/api"
SESSIONS = ("ship", "harbour", "tower:1")
LONGEST_S = 0.3
KEEP_TRACES = {"TAPSTER_TRACE_RECORDS": "1000000", "TAPSTER_TRACE_BYTES": "1000000000"}
"""So that a record that is gone was lost, not dropped."""


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
        # Messages may come faster than turns take them up: a session that has no room says when to ask again.
        while (answer := await self.client.post(path, json=body)).status_code == 503:
            assert answer.json()["code"] == "OVERLOADED", answer.text
            await trio.sleep(float(answer.headers["Retry-After"]))
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


@attrs.frozen
class Round:
    """A start after a kill: seconds until the server answered, and what had been acknowledged by then."""

    number: int
    start_s: float
    counts: Counter[str]


async def kill_rounds(
    folder: Path, engine: str, rounds: int, seed: int, told: Callable[[Round], None] = lambda _: None
) -> Ledger:
    """Kill a server so many times, and check everything after each restart.

    Raises:
        AssertionError: something acknowledged is gone, or the file is damaged.
    """
    rng = random.Random(seed)
    ledger = Ledger()
    async with open_model_server() as model:
        environment = {"TAPSTER_STORE": engine, "TAPSTER_PROVIDER_URL": model.url, "TAPSTER_MODEL": "stand-in"}
        if engine == "sqlite":
            environment |= KEEP_TRACES
        for number in range(rounds + 1):
            begun = trio.current_time()
            async with open_serve_process(folder, **environment) as server:
                started_s = trio.current_time() - begun
                await check(server, ledger)
                if engine == "sqlite":
                    assert integrity(folder) == "ok"
                else:
                    assert (await server.client.get(f"{OWN}/store/check")).json() == {"ok": True, "problems": []}
                told(Round(number, started_s, ledger.counts.copy()))
                if number == 0:
                    for session in SESSIONS:
                        answer = await server.client.post(f"{OWN}/sessions", json={"id": session})
                        assert answer.status_code == 201, answer.text
                if number < rounds:
                    await Burst(server, ledger, number).run(server, rng.uniform(0, LONGEST_S))
    return ledger


def main() -> None:
    """Run the rounds and say what held."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--engine", choices=("sqlite", "files"), default="sqlite")
    parser.add_argument("--seed", type=int, default=20260411, help="chooses the moments of the kills")
    given = parser.parse_args()
    starts: list[float] = []

    def told(each: Round) -> None:
        starts.append(each.start_s)
        if each.number % 10 == 0:
            print(f"{each.number} kills survived; acknowledged so far: {dict(each.counts)}", flush=True)

    with tempfile.TemporaryDirectory(dir=Path.cwd()) as place:
        ledger = trio.run(kill_rounds, Path(place), given.engine, given.rounds, given.seed, told)
    print(
        f"{given.rounds} kills of the {given.engine} engine (seed {given.seed}): no acknowledged write lost,"
        f" every integrity check clean; {ledger.counts.total()} acknowledgements {dict(ledger.counts)};"
        f" start after a kill: median {statistics.median(starts):.2f} s, longest {max(starts):.2f} s"
    )


if __name__ == "__main__":
    main()
