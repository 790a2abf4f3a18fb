"""A disk that fills up, becomes read-only or can't sync in the middle of a burst, under a real server.

Requests go on, the failure is told by the answers, the log and the store's own page, nothing acknowledged is lost, and
nothing needs a restart. Then the server is killed, and everything acknowledged is there again.
"""

import errno
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import attrs
import httpx2
import pytest
import trio

from tapster.actors.testing import open_model_server
from tapster.engine.ecma import Json
from tests.support.disk_faults import Disk, LoggedServer, build_faults, mounted_disk, open_logged_server

from .kill_rounds import plain, queued

OWN = "/tapster/api/v1"
CONTRACT = "/pmp-dsh-tavern/api"
WRITERS = 4
FAILURES = 12
SESSION = "ship"


@attrs.define
class Story:
    """What a burst met: acknowledged and refused by name, statuses and codes of refusals, reads that failed."""

    acknowledged: dict[str, str] = attrs.field(factory=dict)
    refused: list[str] = attrs.field(factory=list)
    codes: set[tuple[int, str]] = attrs.field(factory=set)
    said: list[str] = attrs.field(factory=list)
    reads: int = 0

    async def write(self, client: httpx2.AsyncClient, writer: int) -> None:
        """Import books one after another."""
        count = 0
        while True:
            name = f"b{writer}-{count}"
            book = {"name": name, "entries": {"0": {"uid": 0, "key": ["x"], "content": "word " * 400}}}
            answer = await client.post(f"{OWN}/import?filename=book.json", json=book)
            if answer.status_code == 201:
                self.acknowledged[name] = answer.json()["resources"][0]["id"]
            else:
                self.refused.append(name)
                self.codes.add((answer.status_code, answer.json()["code"]))
                await trio.sleep(0.01)
            count += 1

    async def talk(self, client: httpx2.AsyncClient) -> None:
        """Send messages to a session."""
        count = 0
        while True:
            text = f"said {count}"
            answer = await client.post(f"{OWN}/sessions/{SESSION}/messages", json={"text": text, "mode": "followup"})
            if answer.status_code < 300:
                self.said.append(text)
            count += 1
            await trio.sleep(0.05)

    async def read(self, client: httpx2.AsyncClient) -> None:
        """Ask for what needs no write; it must be answered at every moment."""
        paths = ("/health", "/ready", "/store", "/sessions", f"/sessions/{SESSION}")
        while True:
            for path in paths:
                answer = await client.get(OWN + path)
                assert answer.status_code == 200, (path, answer.text)
            listed = await client.get(f"{CONTRACT}/v1/world-books")
            assert listed.status_code == 200, listed.text
            preview = await client.post(f"{OWN}/sessions/{SESSION}/preview", json={})
            assert preview.status_code == 200, preview.text
            self.reads += 1


async def wait_for(what: str, found: object) -> None:
    """Poll until a function says yes."""
    assert callable(found)
    with trio.move_on_after(20) as scope:
        while not await found():
            await trio.sleep(0.02)
    assert not scope.cancelled_caught, what


async def burst(server: LoggedServer, disk: Disk) -> Story:
    """Write and read while the disk is well, fails, and is well again."""
    story = Story()
    client = server.client

    async def problem() -> Json:
        return (await client.get(f"{OWN}/store")).json()["problem"]

    async def has_acknowledged() -> bool:
        return len(story.acknowledged) > 2 * WRITERS and len(story.said) > 1

    async def has_failed() -> bool:
        return len(story.refused) >= FAILURES and await problem() is not None

    async with trio.open_nursery() as nursery:
        for writer in range(WRITERS):
            nursery.start_soon(story.write, client, writer)
        nursery.start_soon(story.talk, client)
        nursery.start_soon(story.read, client)
        await wait_for("writes work at first", has_acknowledged)
        disk.fail()
        reads = story.reads
        await wait_for("writes fail", has_failed)
        while story.reads < reads + 2:  # noqa: ASYNC110 - the other side is a process
            await trio.sleep(0.02)
        disk.mend()
        before = len(story.acknowledged), len(story.said)

        async def has_recovered() -> bool:
            is_writing = len(story.acknowledged) > before[0] + 2 * WRITERS and len(story.said) > before[1] + 2
            return is_writing and await problem() is None

        await wait_for("writes work again", has_recovered)
        nursery.cancel_scope.cancel()
    return story


async def check(client: httpx2.AsyncClient, story: Story, *, strict: bool) -> None:
    """Everything acknowledged is there; with ``strict``, nothing that was refused is."""
    books = (await client.get(f"{CONTRACT}/v1/world-books")).json()["worldBooks"]
    present = {book["name"]: book["id"] for book in books}
    assert {name: present.get(name) for name in story.acknowledged} == story.acknowledged
    if strict:
        assert [name for name in story.refused if name in present] == []
    messages = (await client.get(f"{OWN}/sessions/{SESSION}")).json()["session"]["messages"]
    waiting = await queued(client, SESSION)
    texts = {plain(message) for message in messages} | set(waiting)
    assert [text for text in story.said if text not in texts] == []
    assert (await client.get(f"{OWN}/store/check")).json() == {"ok": True, "problems": []}


@contextmanager
def failing_disk(kind: str, tmp_path: Path) -> Iterator[tuple[Disk, Path]]:
    """A disk of a kind, and the data folder on it."""
    if kind == "full":
        with mounted_disk(tmp_path / "disk", "24m") as disk:
            yield disk, tmp_path / "disk" / "data"
        return
    data = tmp_path / "data"
    if kind == "read-only":
        yield build_faults(tmp_path, data, "writes", errno.EROFS), data
    else:
        yield build_faults(tmp_path, data, "syncs", errno.EIO), data


@asynccontextmanager
async def serving(data: Path, log: Path, store: str, disk: Disk) -> AsyncIterator[LoggedServer]:
    async with open_model_server() as model:
        environment = {**disk.environment, "TAPSTER_PROVIDER_URL": model.url, "TAPSTER_MODEL": "stand-in"}
        async with open_logged_server(data, log, store, environment) as server:
            yield server


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["full", "read-only", "sync"])
@pytest.mark.parametrize("store", ["sqlite", "files"])
async def test_a_failing_disk_passes_without_a_restart(tmp_path: Path, store: str, kind: str) -> None:
    with failing_disk(kind, tmp_path) as (disk, data):
        data.mkdir(parents=True)
        # Beside the data, so that a full disk takes no lines either.
        log = data.parent / "log"
        async with serving(data, log, store, disk) as server:
            created = await server.client.post(f"{OWN}/sessions", json={"id": SESSION})
            assert created.status_code == 201, created.text
            story = await burst(server, disk)
            assert story.codes == {(503, "STORE_COMMIT_FAILED")}
            assert server.said("store.commit-failed") + server.said("logs.lost") > 0
            assert server.said("store.recovered") > 0
            assert "word word" not in log.read_text(encoding="utf-8")
            metrics = (await server.client.get("/metrics")).text
            assert "\ntapster_store_failed_commits_total 0\n" not in metrics
            # What a file system refuses before anything has its name never comes back.
            strict = store == "sqlite" or kind == "full"
            await check(server.client, story, strict=strict)
        async with serving(data, log, store, disk) as server:
            await check(server.client, story, strict=strict)
