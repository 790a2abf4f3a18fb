"""What a request, a session or a connection brought is freed when it ends: nothing of it waits for a collection of
cycles, which would come late in a process with large data, and hold up everybody."""

import gc
import weakref
from pathlib import Path
from typing import Any

import quart
import trio
import trio.testing

from tapster.actors.hosts.embedded.actor import AgentActor
from tapster.actors.session.actor import SessionActor
from tests.support.contract import open_contract
from tests.support.freed import objects_of_ours_in_cycles
from tests.support.stage import Stage, book, open_stage

PATHS = ("/tapster/api/v1/sessions", "/pmp-dsh-tavern/api/v1/presets", "/healthz", "/tapster/api/v1/nothing")


async def test_a_request_is_freed_when_it_is_answered(tmp_path: Path) -> None:
    seen: list[weakref.ref[Any]] = []

    async def watch() -> None:
        await trio.lowlevel.checkpoint()
        held: Any = quart.request
        seen.append(weakref.ref(held._get_current_object()))

    async with open_contract(tmp_path) as served:
        # Before the hook that answers for the roots.
        served.app.before_request_funcs[None].insert(0, watch)
        gc.collect()
        gc.disable()
        try:
            for path in PATHS:
                await served.client.send("GET", path)
            assert [ref() for ref in seen] == [None] * len(PATHS)
        finally:
            gc.enable()


async def live(stage: Stage, name: str, books: list[str]) -> None:
    """All that a session does from its beginning to its sleep, and a connection of its own."""
    await stage.new_session(name, books=books)
    await stage.say(name, "The bell rings.")
    await stage.preview(name, "The bell?")
    await stage.when_idle(name)
    await stage.say(name, "The bell again.")
    await stage.running.tapster.host.close(name)
    stream = await trio.open_tcp_stream("127.0.0.1", stage.running.server.port)
    await stream.send_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await stream.receive_some()
    await stream.aclose()
    await trio.testing.wait_all_tasks_blocked(0.05)


async def test_a_session_and_a_connection_leave_no_object_of_ours_to_the_collector(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        books = [await stage.import_file("b.json", book("bell", "It hangs under the reef. {{user}}"))]
        await live(stage, "first", books)
        with objects_of_ours_in_cycles() as left:
            for number in range(3):
                await live(stage, f"s-{number}", books)
    assert not left


async def test_nothing_of_a_session_stays_in_memory_while_it_sleeps(tmp_path: Path) -> None:
    async with open_stage(tmp_path, idle_s=0.05) as stage:
        for number in range(3):
            await stage.new_session(f"s-{number}")
            await stage.say(f"s-{number}", "The bell rings.")
        with trio.fail_after(12):
            while stage.running.tapster.host.live:  # noqa: ASYNC110 - it falls asleep in its own time
                await trio.sleep(0.02)
        gc.collect()
        kept = [type(each).__name__ for each in gc.get_objects() if isinstance(each, AgentActor | SessionActor)]
    assert not kept
