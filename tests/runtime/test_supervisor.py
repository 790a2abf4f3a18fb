"""Supervision: restarts, limits, quarantine, order."""

import weakref
from contextvars import ContextVar

import attrs
import pytest
import trio
import trio.testing

from tapster.runtime import (
    Actor,
    ActorGone,
    AskCycle,
    Quarantined,
    Ref,
    Request,
    Restart,
    RestartLimit,
    open_actor,
    open_supervisor,
)


@attrs.frozen
class Ping:
    pass


@attrs.frozen
class Crash:
    pass


class Fragile(Actor):
    name = "fragile"

    def __init__(self, closed: list[str], name: str = "fragile") -> None:
        self.name = name
        self.closed = closed

    def receive(self, request: Request) -> None:
        if isinstance(request.body, Crash):
            raise RuntimeError("a bug")
        request.settle("pong")

    async def close(self) -> None:
        await trio.lowlevel.checkpoint()
        self.closed.append(self.name)


def silent(level: str, event: str, **fields: object) -> None:
    pass


async def test_a_crashed_child_comes_back(autojump_clock: trio.testing.MockClock) -> None:
    async with open_supervisor(silent) as supervisor:
        child = await supervisor.start("one", lambda: Fragile([]), Restart(intensity=3))
        for _ in range(3):
            ref = await child.ref()
            with pytest.raises(ActorGone) as caught:
                await ref.ask(Crash())
            assert caught.value.taken
        assert await (await child.ref()).ask(Ping()) == "pong"
        assert child.restarts == 3


async def test_crashes_far_apart_do_not_add_up(autojump_clock: trio.testing.MockClock) -> None:
    async with open_supervisor(silent) as supervisor:
        child = await supervisor.start("one", lambda: Fragile([]), Restart(intensity=1, period_s=5))
        for _ in range(10):
            with pytest.raises(ActorGone):
                await (await child.ref()).ask(Crash())
            await trio.sleep(6)
        assert await (await child.ref()).ask(Ping()) == "pong"


async def test_too_many_crashes_quarantine_until_reset(autojump_clock: trio.testing.MockClock) -> None:
    async with open_supervisor(silent) as supervisor:
        child = await supervisor.start("one", lambda: Fragile([]), Restart(intensity=0, exceeded="quarantine"))
        with pytest.raises(ActorGone):
            await (await child.ref()).ask(Crash())
        with pytest.raises(Quarantined):
            await child.ref()
        child.reset()
        assert await (await child.ref()).ask(Ping()) == "pong"


async def test_a_vital_child_takes_its_supervisor_down(autojump_clock: trio.testing.MockClock) -> None:
    with pytest.RaisesGroup(RestartLimit, flatten_subgroups=True):
        async with open_supervisor(silent) as supervisor:
            child = await supervisor.start("store", lambda: Fragile([]), Restart(intensity=1))
            for _ in range(2):
                with pytest.raises(ActorGone):
                    await (await child.ref()).ask(Crash())
            await trio.sleep_forever()


async def test_children_stop_in_reverse_order() -> None:
    closed: list[str] = []
    async with open_supervisor(silent) as supervisor:
        for name in ("a", "b", "c"):
            await supervisor.start(name, lambda name=name: Fragile(closed, name))  # type: ignore[misc]
    assert closed == ["c", "b", "a"]


async def test_a_child_keeps_nothing_of_whoever_started_it() -> None:
    class Kept:
        """A value that can be watched."""

    held: ContextVar[Kept] = ContextVar("held")
    seen: list[weakref.ref[Kept]] = []

    async with open_supervisor(silent) as supervisor:

        async def start() -> None:
            kept = Kept()
            held.set(kept)
            seen.append(weakref.ref(kept))
            await supervisor.start("one", lambda: Fragile([]))

        async with trio.open_nursery() as nursery:  # noqa: ASYNC112 - a task of its own, with a context of its own
            nursery.start_soon(start)
        await trio.testing.wait_all_tasks_blocked()
        assert [ref() for ref in seen] == [None]
        (child,) = supervisor.children
        assert await (await child.ref()).ask(Ping()) == "pong"


async def test_an_opening_that_asks_whoever_waits_for_it_is_a_cycle() -> None:
    class Opener(Actor):
        name = "opener"

        def receive(self, request: Request) -> None:
            if isinstance(request.body, Ping):
                self.start(request, supervisor.start, "child", lambda: Child(opener))

    class Child(Actor):
        name = "child"
        declared = (AskCycle,)

        def __init__(self, of: Ref) -> None:
            self.of = of

        async def open(self) -> None:
            await self.of.ask(Crash())

    async with open_supervisor(silent) as supervisor, open_actor(Opener()) as opener:
        with pytest.raises(AskCycle):
            await opener.ask(Ping())
