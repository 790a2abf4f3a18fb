"""The directory of session actors: one owner for a key, whatever comes of starts at the same moment."""

from contextlib import suppress
from types import SimpleNamespace
from typing import Literal

import pytest
import trio
import trio.testing

from tapster.actors.session import directory
from tapster.actors.session.directory import Sessions
from tapster.actors.session.messages import Leave
from tapster.actors.store import SessionKey
from tapster.runtime import Actor, ActorGone, Request, Supervisor, open_supervisor, silent

KEY = SessionKey("host", "s")


PORTS = SimpleNamespace(library=SimpleNamespace(forget=lambda key: None))


class Starting(Actor):
    """A session whose start fails, hangs, or succeeds, as its host says."""

    name = "session"
    declared = (ValueError,)

    def __init__(self, key: object, host: str, ports: object, parent: object = None) -> None:
        self.host = host

    async def open(self) -> None:
        await trio.lowlevel.checkpoint()
        if self.host == "fails":
            raise ValueError("the log is closed")
        if self.host == "hangs":
            await trio.sleep_forever()

    def receive(self, request: Request) -> None:
        request.settle(self.host)
        if isinstance(request.body, Leave):
            self.finish()


@pytest.mark.parametrize("first", ["fails", "hangs"])
@pytest.mark.parametrize("steps", range(12))
async def test_a_start_that_ends_badly_never_takes_its_successor_along(
    monkeypatch: pytest.MonkeyPatch, first: Literal["fails", "hangs"], steps: int
) -> None:
    monkeypatch.setattr(directory, "SessionActor", Starting)
    async with open_supervisor(silent) as supervisor:
        await start_two(supervisor, Sessions(supervisor, PORTS), first, steps)  # type: ignore[arg-type]


async def start_two(supervisor: Supervisor, sessions: Sessions, first: str, steps: int) -> None:
    scope = trio.CancelScope()

    async def begin() -> None:
        with scope, suppress(ValueError):
            await sessions.open(KEY, first)  # type: ignore[arg-type]

    async def follow() -> None:
        if first == "hangs":
            await trio.testing.wait_all_tasks_blocked()
            scope.cancel()
        for _ in range(steps):
            await trio.lowlevel.checkpoint()
        try:
            await sessions.open(KEY, "works")  # type: ignore[arg-type]
        except ValueError:
            await sessions.open(KEY, "works")  # type: ignore[arg-type]

    async with trio.open_nursery() as nursery:
        nursery.start_soon(begin)
        nursery.start_soon(follow)
    assert sessions.find(KEY) is not None
    assert await sessions.ask(KEY, "works", "who?") == "works"  # type: ignore[arg-type]
    assert len(supervisor.children) == 1


@pytest.mark.parametrize("steps", range(8))
async def test_one_that_is_released_while_it_starts_does_not_stay(monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    monkeypatch.setattr(directory, "SessionActor", Starting)
    async with open_supervisor(silent) as supervisor:
        sessions = Sessions(supervisor, PORTS)  # type: ignore[arg-type]

        async def begin() -> None:
            with suppress(ActorGone):
                await sessions.open(KEY, "works")  # type: ignore[arg-type]

        async with trio.open_nursery() as nursery:
            nursery.start_soon(begin)
            for _ in range(steps):
                await trio.lowlevel.checkpoint()
            has_begun = sessions.knows(KEY)
            sessions.release(KEY)
        await trio.testing.wait_all_tasks_blocked()
        if has_begun:
            assert not sessions.knows(KEY)
            assert len(supervisor.children) == 0
        assert await sessions.ask(KEY, "works", "who?") == "works"  # type: ignore[arg-type]
