"""The directory of session actors: one owner for a key, whatever comes of starts at the same moment."""

from contextlib import suppress
from typing import Literal

import pytest
import trio
import trio.testing

from tapster.actors.session import directory
from tapster.actors.session.directory import Sessions
from tapster.actors.store import SessionKey
from tapster.runtime import Actor, Request, Supervisor, open_supervisor, silent

KEY = SessionKey("host", "s")


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


@pytest.mark.parametrize("first", ["fails", "hangs"])
@pytest.mark.parametrize("steps", range(12))
async def test_a_start_that_ends_badly_never_takes_its_successor_along(
    monkeypatch: pytest.MonkeyPatch, first: Literal["fails", "hangs"], steps: int
) -> None:
    monkeypatch.setattr(directory, "SessionActor", Starting)
    async with open_supervisor(silent) as supervisor:
        await start_two(supervisor, Sessions(supervisor, None), first, steps)  # type: ignore[arg-type]


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
