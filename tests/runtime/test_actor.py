"""Actors: every ask ends in an answer, a declared error, ActorGone, or the asker's own cancellation."""

import itertools
from collections.abc import Callable

import attrs
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from tapster.runtime import Actor, ActorGone, AskCycle, Overloaded, Ref, Request, open_actor
from tapster.runtime.inbox import AT_ONCE


class Refused(Exception):
    pass


@attrs.frozen
class Echo:
    value: int


@attrs.frozen
class Sleep:
    seconds: float


@attrs.frozen
class Refuse:
    pass


@attrs.frozen
class Crash:
    pass


@attrs.frozen
class Hold:
    pass


@attrs.frozen
class AskOther:
    pass


class Worker(Actor):
    name = "worker"
    capacity = 2
    declared = (Refused,)

    def __init__(self) -> None:
        self.ended: list[str] = []
        self.held: list[Request] = []
        self.other: Ref | None = None
        self.closed = False

    def receive(self, request: Request) -> None:
        match request.body:
            case Echo(value):
                request.settle(value)
            case Sleep(seconds):
                self.start(request, self.sleep, seconds)
            case Refuse():
                raise Refused("no")
            case Hold():
                self.held.append(request)
            case AskOther():
                self.start(request, self.ask_other)
            case _:
                raise RuntimeError("a bug")

    async def sleep(self, seconds: float) -> str:
        try:
            await trio.sleep(seconds)
        finally:
            self.ended.append("sleep")
        return "slept"

    async def ask_other(self) -> object:
        assert self.other is not None
        return await self.other.ask(AskOther())

    async def close(self) -> None:
        await trio.lowlevel.checkpoint()
        self.closed = True


async def test_answers_and_declared_errors(autojump_clock: trio.testing.MockClock) -> None:
    async with open_actor(Worker()) as ref:
        assert await ref.ask(Echo(3)) == 3
        assert await ref.ask(Sleep(5)) == "slept"
        with pytest.raises(Refused):
            await ref.ask(Refuse())
        assert await ref.offer(Echo(4)) == 4


async def test_a_leaving_asker_ends_the_work_first(autojump_clock: trio.testing.MockClock) -> None:
    worker = Worker()
    async with open_actor(worker) as ref:
        with trio.move_on_after(1) as scope:
            await ref.ask(Sleep(100))
        assert scope.cancelled_caught
        assert worker.ended == ["sleep"]
        assert ref.statistics().open == 0


async def test_a_bug_ends_the_actor_and_every_open_request() -> None:
    worker = Worker()
    outcomes: list[object] = []

    async def asker(ref: Ref, body: object) -> None:
        try:
            outcomes.append(await ref.ask(body))
        except ActorGone as gone:
            outcomes.append(gone.taken)

    with pytest.RaisesGroup(RuntimeError, flatten_subgroups=True):
        async with open_actor(worker) as ref, trio.open_nursery() as nursery:
            nursery.start_soon(asker, ref, Hold())
            nursery.start_soon(asker, ref, Sleep(100))
            await wait_all_tasks_blocked()
            nursery.start_soon(asker, ref, Crash())
            await trio.sleep_forever()
    assert worker.closed
    assert worker.ended == ["sleep"]


async def test_a_held_request_ends_with_the_actor(autojump_clock: trio.testing.MockClock) -> None:
    worker = Worker()
    gone: list[bool] = []

    async def asker(ref: Ref) -> None:
        with pytest.raises(ActorGone) as caught:
            await ref.ask(Hold())
        gone.append(caught.value.taken)

    async with trio.open_nursery() as nursery:
        async with open_actor(worker) as ref:
            nursery.start_soon(asker, ref)  # noqa: ASYNC111 - it outlives the actor on purpose
            await wait_all_tasks_blocked()
        await wait_all_tasks_blocked()
    assert gone == [True]
    with pytest.raises(ActorGone) as caught:
        await ref.ask(Echo(1))
    assert caught.value.taken is False


async def test_a_full_inbox_waits_inside_and_refuses_at_the_border() -> None:
    class Stuck(Worker):
        name = "stuck"

        async def open(self) -> None:
            await trio.lowlevel.checkpoint()

        def receive(self, request: Request) -> None:
            self.held.append(request)

    stuck = Stuck()
    async with open_actor(stuck) as ref:
        # The loop never runs between these, so the third finds no room.
        assert ref.tell(Echo(1))
        assert ref.tell(Echo(2))
        assert not ref.tell(Echo(3))
        with pytest.raises(Overloaded):
            await ref.offer(Echo(3))
        with trio.move_on_after(0.01):
            await ref.ask(Echo(4))


async def test_a_burst_is_taken_at_once_but_lets_others_run() -> None:
    class Counting(Actor):
        name = "counting"
        capacity = 4 * AT_ONCE
        taken = 0

        def receive(self, request: Request) -> None:
            self.taken += 1
            request.settle()

    actor, seen = Counting(), list[int]()
    async with open_actor(actor) as ref:
        await wait_all_tasks_blocked()
        for _ in range(4 * AT_ONCE):
            assert ref.tell(Echo(1))
        while actor.taken < 4 * AT_ONCE:
            await trio.lowlevel.checkpoint()
            seen.append(actor.taken)
    # Steps of one round come in any order, so between two of the watcher's there are at most two of the actor's.
    assert max(after - before for before, after in itertools.pairwise([0, *seen])) <= 2 * AT_ONCE


async def test_an_asker_that_is_cancelled_already_asks_nothing() -> None:
    worker = Worker()
    async with open_actor(worker) as ref:
        with trio.CancelScope() as scope:
            scope.cancel(reason="before it asks")
            await ref.ask(Hold())
        await wait_all_tasks_blocked()
        assert scope.cancelled_caught
        assert worker.held == []


async def test_asking_in_a_circle_is_refused() -> None:
    one, two = Worker(), Worker()
    async with open_actor(one) as first, open_actor(two) as second:
        one.other, two.other = second, first
        with pytest.raises(AskCycle):
            await first.ask(AskOther())


@pytest.mark.parametrize("make", [Worker])
async def test_failing_open_fails_the_call(make: Callable[[], Worker]) -> None:
    class Broken(Worker):
        async def open(self) -> None:
            raise Refused("not today")

    with pytest.raises(Refused):
        async with open_actor(Broken()):
            pass
