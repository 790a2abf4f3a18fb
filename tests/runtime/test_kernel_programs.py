"""Programs of asks, tells, cancellations, crashes and stops against actors on a virtual clock."""

from collections import Counter
from collections.abc import Sequence
from typing import Literal

import attrs
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from tapster.runtime import (
    Actor,
    ActorGone,
    Draining,
    FairLimiter,
    Inbox,
    Overloaded,
    Quarantined,
    Request,
    Restart,
    open_supervisor,
)
from tests.support.cancel import task_count

SENDERS = 3
Kind = Literal["echo", "sleep", "refuse", "crash", "hold", "sleep-then-refuse"]


class Refused(Exception):
    """Declared by the actor."""


@attrs.frozen
class Message:
    """What a sender sends, and its number among the sender's messages of its urgency."""

    sender: int
    number: int
    kind: Kind
    control: bool


@attrs.frozen
class Send:
    """One thing that a sender does, and how long it waits for the answer (None: as long as it takes)."""

    sender: int
    kind: Kind
    way: Literal["ask", "control", "offer", "tell"]
    patience_s: float | None
    pause_s: float


@attrs.frozen
class Pause:
    seconds: float


@attrs.frozen
class Revive:
    """End a quarantine."""


Command = Send | Pause | Revive
KINDS: Sequence[Kind] = ("echo", "echo", "sleep", "sleep", "refuse", "crash", "hold", "sleep-then-refuse")
COMMANDS = st.one_of(
    st.builds(
        Send,
        st.integers(0, SENDERS - 1),
        st.sampled_from(KINDS),
        st.sampled_from(["ask", "ask", "control", "offer", "tell"]),
        st.sampled_from([None, None, 0.0, 0.5, 2.0]),
        st.sampled_from([0.0, 0.0, 0.0, 0.3, 1.5]),
    ),
    st.builds(Pause, st.sampled_from([0.0, 1.0, 10.0, 100.0])),
    st.builds(Revive),
)


@attrs.define(eq=False)
class Watch:
    """What the actors were given and how many works run, over all incarnations."""

    received: list[Message] = attrs.field(factory=list)
    working: Counter[Message] = attrs.field(factory=Counter)
    actors: list["Worker"] = attrs.field(factory=list)


class Worker(Actor):
    name = "worker"
    capacity = 2
    declared = (Refused,)

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.held: list[Request] = []
        watch.actors.append(self)

    def receive(self, request: Request) -> None:
        message: Message = request.body
        self.watch.received.append(message)
        match message.kind:
            case "echo":
                request.settle(message.number)
            case "refuse":
                raise Refused
            case "crash":
                raise RuntimeError("a bug")
            case "hold":
                self.held.append(request)
            case _:
                self.start(request, self.work, message)

    async def work(self, message: Message) -> int:
        self.watch.working[message] += 1
        try:
            await trio.sleep(1)
            if message.kind == "sleep-then-refuse":
                raise Refused
            return message.number
        finally:
            self.watch.working[message] -= 1


def silent(level: str, event: str, **fields: object) -> None:
    pass


@settings(max_examples=150, deadline=None)
@given(st.lists(COMMANDS, max_size=25))
def test_every_ask_ends_in_exactly_one_way(program: list[Command]) -> None:
    trio.run(run, program, clock=trio.testing.MockClock(autojump_threshold=0))


async def run(program: list[Command]) -> None:
    watch = Watch()
    tasks = task_count()
    outcomes: Counter[int] = Counter()
    asked = 0
    numbers: Counter[tuple[int, bool]] = Counter()
    async with trio.open_nursery() as clients:
        async with open_supervisor(silent) as supervisor:
            child = await supervisor.start("worker", lambda: Worker(watch), Restart(2, 5.0, "quarantine"))
            for command in program:
                match command:
                    case Pause(seconds):
                        await trio.sleep(seconds)
                    case Revive():
                        child.reset()
                    case Send():
                        control = command.way == "control"
                        numbers[command.sender, control] += 1
                        message = Message(command.sender, numbers[command.sender, control], command.kind, control)

                        async def client(command: Send, message: Message, number: int) -> None:
                            with trio.CancelScope() as scope:
                                if command.patience_s is not None:
                                    scope.deadline = trio.current_time() + command.patience_s
                                try:
                                    ref = await child.ref()
                                    if command.way == "tell":
                                        ref.tell(message)
                                    elif command.way == "offer":
                                        assert await ref.offer(message) == message.number
                                    else:
                                        assert (
                                            await ref.ask(message, control=command.way == "control") == message.number
                                        )
                                except (Refused, ActorGone, Overloaded, Quarantined, Draining):
                                    assert command.way == "tell" or watch.working[message] == 0
                            if command.way != "tell":
                                assert watch.working[message] == 0, "an ask returned while its work ran"
                            outcomes[number] += 1

                        clients.start_soon(client, command, message, asked)
                        asked += 1
                        await trio.sleep(command.pause_s)
        # The actor is gone: whoever still waits must be told so.
        with trio.fail_after(10):
            await trio.testing.wait_all_tasks_blocked()
    assert outcomes == Counter(range(asked)), "each ask ends once"
    assert not +watch.working
    assert task_count() == tasks
    for actor in watch.actors:
        assert len(actor._inbox) == 0
        assert actor._inbox._promised == 0
        assert not actor._open


@attrs.frozen
class Put:
    sender: int
    control: bool
    is_cancelled: bool


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.one_of(st.builds(Put, st.integers(0, 2), st.booleans(), st.booleans()), st.just("get"), st.just("discard")),
        max_size=60,
    )
)
def test_an_inbox_keeps_order_and_slots(program: list[Put | str]) -> None:
    trio.run(use_inbox, program, clock=trio.testing.MockClock(autojump_threshold=0))


async def use_inbox(program: list[Put | str]) -> None:
    inbox = Inbox(2)
    put: list[Request] = []
    got: list[tuple[int, bool, int]] = []
    async with trio.open_nursery() as nursery:
        for number, step in enumerate(program):
            if isinstance(step, Put):
                scope = trio.CancelScope()

                async def sender(step: Put, number: int, scope: trio.CancelScope) -> None:
                    with scope:
                        request = Request((step.sender, step.control, number), "x")
                        if await inbox.put(request, control=step.control):
                            put.append(request)

                nursery.start_soon(sender, step, number, scope)
                await trio.testing.wait_all_tasks_blocked()
                if step.is_cancelled:
                    scope.cancel()
            elif step == "get":
                with trio.move_on_after(0.01):
                    request = await inbox.get()
                    assert request is not None
                    _, is_control, _ = request.body
                    assert is_control or not inbox._control, "control goes first"
                    got.append(request.body)
            elif put and not put[-1].was_taken:
                put[-1].leave("gone")
                inbox.discard(put[-1])
            await trio.testing.wait_all_tasks_blocked()
            used = len(inbox._normal) + len(inbox._control)
            assert inbox._promised == 0, "every promised slot was taken up"
            assert len(inbox._normal) <= 2
            assert used <= 2 + 16
            assert used >= 2 or not inbox._senders, "nobody waits beside a free slot"
        nursery.cancel_scope.cancel()
    for sender_number in range(3):
        for control in (False, True):
            order = [number for who, urgent, number in got if (who, urgent) == (sender_number, control)]
            assert order == sorted(order), "what one sender sends stays in order"


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from([0.0, 1.0, 3.0]), st.sampled_from([None, 0.0, 1.5, 4.0])),
        max_size=30,
    ),
    st.integers(1, 3),
)
def test_tokens_are_conserved(program: list[tuple[str, float, float | None]], total: int) -> None:
    async def main() -> None:
        limiter = FairLimiter(total)
        holding = 0

        async def user(share: str, hold_s: float, patience_s: float | None) -> None:
            nonlocal holding
            with trio.move_on_after(float("inf") if patience_s is None else patience_s):
                await limiter.acquire(share)
                holding += 1
                assert holding <= total
                try:
                    await trio.sleep(hold_s)
                finally:
                    holding -= 1
                    limiter.release()

        async with trio.open_nursery() as nursery:
            for entry in program:
                nursery.start_soon(user, *entry)
        assert limiter.borrowed == 0
        assert limiter.waiting == 0

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


async def test_a_flood_of_one_sharer_waits_behind_its_own_work(autojump_clock: trio.testing.MockClock) -> None:
    limiter = FairLimiter(1)
    order: list[str] = []

    async def use(share: str) -> None:
        await limiter.acquire(share)
        await trio.sleep(1)
        order.append(share)
        limiter.release()

    async with trio.open_nursery() as nursery:
        for _ in range(50):
            nursery.start_soon(use, "flood")
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(use, "quiet")
        nursery.start_soon(use, "calm")
    assert order.index("quiet") <= 4
    assert order.index("calm") <= 4


async def test_a_control_message_passes_those_who_wait_for_room(autojump_clock: trio.testing.MockClock) -> None:
    inbox = Inbox(1)
    sent: list[str] = []

    async def send(name: str, control: bool) -> None:
        await inbox.put(Request(name, "x"), control=control)
        sent.append(name)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(send, "first", False)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(send, "waits", False)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(send, "cancel", True)
        await trio.testing.wait_all_tasks_blocked()
        assert sent == ["first", "cancel"]
        bodies = [request.body for request in [await inbox.get() for _ in range(3)] if request is not None]
        assert bodies == ["cancel", "first", "waits"]


async def test_a_failing_close_leaves_nobody_waiting(autojump_clock: trio.testing.MockClock) -> None:
    class Broken(Actor):
        name = "broken"

        def receive(self, request: Request) -> None:
            request.settle()

        async def close(self) -> None:
            raise RuntimeError("a bug in close")

    async with open_supervisor(silent) as supervisor:
        child = await supervisor.start("broken", Broken, Restart(5))
        ref = await child.ref()
        ref.stop()
        with trio.fail_after(12):
            await ref.wait_ended()


async def test_a_crash_in_the_moment_of_a_stop_is_contained(autojump_clock: trio.testing.MockClock) -> None:
    class Late(Actor):
        name = "late"

        def receive(self, request: Request) -> None:
            self.start(request, self.work)

        async def work(self) -> None:
            try:
                await trio.sleep_forever()
            finally:
                raise RuntimeError("a bug while it unwinds")

    async with open_supervisor(silent) as supervisor:
        child = await supervisor.start("late", Late, Restart(5))
        ref = await child.ref()
        ref.tell("go")
        await trio.testing.wait_all_tasks_blocked()
        await child.stop()
        assert child.state.value == "ended"


async def test_a_supervisor_that_closes_starts_nobody(autojump_clock: trio.testing.MockClock) -> None:
    class Plain(Actor):
        def receive(self, request: Request) -> None:
            request.settle()

    async with open_supervisor(silent) as supervisor:
        pass
    try:
        await supervisor.start("late", Plain)
    except Draining:
        return
    raise AssertionError("it was started")
