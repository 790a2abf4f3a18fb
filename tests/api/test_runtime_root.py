"""The running program about itself, pressure at the border, and logs without what people say."""

import math
import re
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import pytest
import trio

from tapster.actors.admission import RESERVED_S, Admission, AdmissionLimits
from tapster.actors.providers import ScriptedProvider
from tapster.actors.providers.scripted import Crash, Item, Pause, fails, says
from tapster.actors.store import StoreConfig
from tapster.actors.tapster import Tapster, TapsterConfig, open_tapster
from tapster.api.app import AppOptions, create_app
from tapster.api.backing import Backing
from tapster.api.config import Config
from tapster.api.page import add_page
from tapster.runtime import LogSink, Overloaded, Phase
from tests.support.asgi import AsgiClient
from tests.support.cli import Cli

ROOT = "/tapster/api/v1"
SECRET = "the lamp oil is under the third stair"


def silent(level: str, event: str, **fields: object) -> None:
    pass


@asynccontextmanager
async def open_app(
    folder: Path,
    answers: list[list[Item]] | None = None,
    *,
    limits: AdmissionLimits | None = None,
    log: LogSink = silent,
) -> AsyncIterator[tuple[AsgiClient, Tapster]]:
    """The application over a whole Tapster."""
    provider = ScriptedProvider()
    provider.add(*(answers or []))
    config = TapsterConfig(StoreConfig(folder), admission=limits or AdmissionLimits())
    async with open_tapster(config, provider=provider, log=log) as tapster:
        app = create_app(Backing(tapster), AppOptions())
        add_page(app, tapster, Config(data_dir=folder, locale="en"))
        yield AsgiClient(app), tapster


async def test_probes_follow_the_phase(tmp_path: Path) -> None:
    async with open_app(tmp_path) as (client, tapster):
        assert (await client.send("GET", "/healthz")).json() == {"status": "alive"}
        assert (await client.send("GET", "/readyz")).json() == {"status": "ready"}
        tapster.lifecycle.advance(Phase.DRAINING)
        assert (await client.send("GET", "/healthz")).status == 200
        reply = await client.send("GET", "/readyz")
        assert (reply.status, reply.headers["retry-after"]) == (503, "1")
        assert (await client.send("GET", ROOT + "/runtime")).json()["runtime"]["phase"] == "draining"


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
async def test_probes_are_for_this_machine(tmp_path: Path, path: str) -> None:
    async with open_app(tmp_path) as (client, _):
        assert (await AsgiClient(client.app, peer="203.0.113.9").send("GET", path)).status == 403
        assert (await AsgiClient(client.app, host="evil.test").send("GET", path)).status == 403


async def test_metrics_are_in_the_format_that_is_scraped(tmp_path: Path) -> None:
    async with open_app(tmp_path) as (client, _):
        await client.send("POST", ROOT + "/sessions", json={"id": "lamp-oil"})
        reply = await client.send("GET", "/metrics")
        assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
        lines = reply.body.decode().splitlines()
        samples = [line for line in lines if not line.startswith("#")]
        assert all(re.fullmatch(r'[a-z_]+(\{([a-z]+="[^"]*",?)+\})? -?[0-9.e+]+', line) for line in samples)
        named = {line.split()[2] for line in lines if line.startswith("# TYPE")}
        assert {line.partition("{")[0].partition(" ")[0] for line in samples} == named
        assert 'tapster_actors{kind="agent",state="running"} 1' in samples
        assert any(line.startswith("tapster_store_commits_total ") and line != "tapster_store_commits_total 0"
                   for line in samples)  # fmt: skip
        assert "lamp-oil" not in reply.body.decode(), "sessions are counted, not named"


async def test_every_actor_says_how_it_does(tmp_path: Path) -> None:
    async with open_app(tmp_path, [[Pause(30), *says("Late.")]]) as (client, tapster):
        await client.send("POST", ROOT + "/sessions", json={"id": "s"})
        await client.send("POST", ROOT + "/sessions/s/messages", json={"text": "Hello."})
        async with trio.open_nursery() as nursery:
            handle = await tapster.open_session("s")
            nursery.start_soon(handle.when_idle)
            await trio.testing.wait_all_tasks_blocked(0.01)
            reading = (await client.send("GET", ROOT + "/runtime")).json()["runtime"]
            actors = {actor["name"]: actor for actor in reading["actors"]}
            assert {"store", "library", "agent:s", "session:embedded/s"} <= set(actors)
            assert actors["agent:s"]["open"] == 1
            assert actors["agent:s"]["oldest_s"] > 0
            assert {actor["state"] for actor in actors.values()} == {"running"}
            page = (await client.send("GET", "/runtime")).body.decode()
            assert "agent:s" in page
            await handle.cancel()
        assert {pool["name"] for pool in reading["threads"]} >= {"engine", "library", "store.commit", "store.read"}
        assert reading["loop"]["steps"] > 0
        assert reading["store"]["commits"] > 0


def test_ps_shows_the_same(cli: Cli) -> None:
    printed = cli.run("ps")
    assert re.search(r"^library +running", printed, re.MULTILINE)
    assert "store:" in printed


async def test_a_flooding_session_is_refused_and_others_are_served(tmp_path: Path) -> None:
    async with open_app(tmp_path, limits=AdmissionLimits(8, 64)) as (client, _):
        for name in ("flood", "quiet"):
            await client.send("POST", ROOT + "/sessions", json={"id": name})
        statuses: list[int] = []
        quiet: list[int] = []

        async def preview(name: str, kept: list[int]) -> None:
            reply = await client.send("POST", f"{ROOT}/sessions/{name}/preview", json={"draft": "hello"})
            kept.append(reply.status)
            if reply.status == 503:
                assert reply.json()["code"] == "OVERLOADED"
                assert int(reply.headers["retry-after"]) >= 1

        async with trio.open_nursery() as nursery:
            for _ in range(60):
                nursery.start_soon(preview, "flood", statuses)
            nursery.start_soon(preview, "quiet", quiet)
        assert set(statuses) == {200, 503}
        assert statuses.count(200) >= 8
        assert quiet == [200]


async def test_messages_that_no_turn_takes_are_bounded(tmp_path: Path) -> None:
    async with open_app(tmp_path, [[Pause(math.inf)]], limits=AdmissionLimits(4, 64)) as (client, tapster):
        await client.send("POST", ROOT + "/sessions", json={"id": "s"})
        body = {"text": "again", "mode": "followup"}
        statuses = [(await client.send("POST", ROOT + "/sessions/s/messages", json=body)).status for _ in range(10)]
        assert statuses[:4] == [202] * 4
        assert statuses[-1] == 503
        await client.send("POST", ROOT + "/sessions/s/cancel", json={})
        assert (await client.send("POST", ROOT + "/sessions/s/messages", json=body)).status == 202
        await (await tapster.open_session("s")).cancel()


async def test_messages_that_wait_for_an_idle_session_shut_nobody_out(tmp_path: Path) -> None:
    answers: list[list[Item]] = [[Pause(math.inf)], *(says("yes") for _ in range(10))]
    async with open_app(tmp_path, answers, limits=AdmissionLimits(4, 64)) as (client, tapster):
        await client.send("POST", ROOT + "/sessions", json={"id": "s"})
        body = {"text": "again", "mode": "followup"}
        statuses = [(await client.send("POST", ROOT + "/sessions/s/messages", json=body)).status for _ in range(6)]
        assert statuses[-1] == 503
        await client.send("POST", ROOT + "/sessions/s/cancel", json={"keepInbox": True})
        handle = await tapster.open_session("s")
        await handle.when_idle()
        assert (await client.send("POST", ROOT + "/sessions/s/messages", json=body)).status == 202
        await handle.when_idle()
        agent = tapster.host.agent("s")
        assert agent is not None
        assert not agent.queues.next_turn


async def test_cost_is_what_computations_took(autojump_clock: trio.testing.MockClock) -> None:
    admission = Admission(AdmissionLimits(10, 15))
    assert admission.cost("a") == 1
    with admission.computation("a"):
        await trio.sleep(0.08)
    assert admission.cost("a") == 8
    with admission.computation("a"):
        with pytest.raises(Overloaded):
            admission.computation("a").__enter__()
        with admission.message("b", 0):
            assert admission.statistics().pending == 9
        with pytest.raises(Overloaded) as caught:
            admission.message("b", 10).__enter__()
        assert caught.value.retry_after_s >= 1
    with admission.computation("a"):
        await trio.sleep(1000)
    assert admission.cost("a") == 10, "no session costs more than it may have, so none is shut out"
    assert admission.statistics().pending == 0
    assert admission.statistics().sessions == 0


async def test_one_live_stream_too_many_is_refused_before_it_begins(tmp_path: Path) -> None:
    limits = AdmissionLimits(streams_per_session=2, streams=3)
    async with open_app(tmp_path, limits=limits) as (client, tapster):
        admission = tapster.admission
        for name in ("a", "b"):
            await client.send("POST", ROOT + "/sessions", json={"id": name})
        with ExitStack() as held:
            for name in ("a", "a", "b"):
                held.enter_context(admission.stream(name))
            for name in ("a", "b"):
                refused = await client.send("GET", f"{ROOT}/sessions/{name}/events")
                assert refused.status == 503
                assert int(refused.headers["retry-after"]) >= 1
            assert admission.statistics().streams == 3
        assert admission.statistics().streams == 0
        admission.stream("a")


async def test_a_place_for_a_stream_is_kept_from_when_it_is_let_in(autojump_clock: trio.testing.MockClock) -> None:
    admission = Admission(AdmissionLimits(streams_per_session=1))
    place = admission.stream("a")
    with pytest.raises(Overloaded):
        admission.stream("a")
    with place:
        await trio.sleep(2 * RESERVED_S)
        with pytest.raises(Overloaded):
            admission.stream("a")
    admission.stream("a")
    # Its client went before the stream began.
    await trio.sleep(2 * RESERVED_S)
    admission.stream("a")


async def test_no_log_entry_holds_what_people_say(tmp_path: Path) -> None:
    entries: list[str] = []

    def log(level: str, event: str, **fields: object) -> None:
        entries.append(f"{level} {event} {fields}")

    answers: list[list[Item]] = [
        says(SECRET),
        [Crash(RuntimeError(SECRET))],
        fails("SERVER", SECRET, status=500),
        fails("INVALID_REQUEST", SECRET, status=400),
    ]
    async with open_app(tmp_path, answers, log=log) as (client, tapster):
        await client.send("POST", ROOT + "/sessions", json={"id": "s"})
        for _ in range(len(answers)):
            await client.send("POST", ROOT + "/sessions/s/messages", json={"text": SECRET})
            await (await tapster.open_session("s")).when_idle()
        await client.send("POST", ROOT + "/sessions/s/preview", json={"draft": SECRET})
        tapster.sessions.tell(next(tapster.sessions.statuses()).key, SECRET)  # type: ignore[call-overload]
        (await (await tapster.open_session("s")).child.ref()).tell(SECRET)
        await trio.testing.wait_all_tasks_blocked(0.01)
    assert any("actor.crashed" in entry for entry in entries), entries
    assert not [entry for entry in entries if SECRET in entry]
