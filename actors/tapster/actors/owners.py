"""Owners of state that is in memory and in the store: a change is a message, and after a crash the state is read anew.

Source: design §4 rule 7.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, ClassVar, Final, TypeVar, final

import attrs
import trio

from tapster.actors.store import Store
from tapster.engine.errors import StoreError, TapsterError
from tapster.runtime import Actor, Child, LogSink, Request, Restart, RuntimeFault, open_supervisor

RESTART: Final = Restart(intensity=3, period_s=60.0)
"""Beyond it the process ends: whoever started it has more to go by than what is left of it."""
READ_AGAIN_S: Final = 1.0
"""Between two tries to read the state after a crash."""
READS: Final = 5
"""Tries before that counts as another crash: nobody waits forever for a disk."""
T = TypeVar("T")


class StateInDoubt(RuntimeFault):
    """The store crashed: it may hold changes that its owner was never told of, so the owner reads everything anew."""

    code = "STATE_IN_DOUBT"

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} doesn't know what became of its last changes")
        self.name = name


@final
@attrs.frozen
class Change:
    """Work of an owner, and what it's given."""

    work: Callable[..., Awaitable[Any]]
    arguments: tuple[Any, ...] = ()


@final
class OwnerActor(Actor):
    """Runs changes as tasks of its own, begun in the order of arrival."""

    capacity = 128
    declared: ClassVar[tuple[type[Exception], ...]] = (TapsterError,)

    def __init__(self, name: str, store: Store, read: Callable[[], Awaitable[None]]) -> None:
        self.name = name
        self._store = store
        self._read = read
        self._known_since = store.restarts

    async def open(self) -> None:
        """Know what is stored."""
        await self._read()

    def begin(self) -> None:
        """Don't outlive the store's memory of what was written."""
        self.start_background(self._end_with_the_store)

    async def _end_with_the_store(self) -> None:
        await self._store.wait_restart(self._known_since)
        raise StateInDoubt(self.name)

    def receive(self, request: Request) -> None:
        """Start the change in the order of arrival."""
        change: Change = request.body
        self.start(request, change.work, *change.arguments)


@final
@attrs.frozen
class Owner:
    """An owner over all its incarnations."""

    child: Child

    async def ask(self, work: Callable[..., Awaitable[T]], *arguments: Any) -> T:
        """Have it do a change, and wait for it.

        Raises:
            ActorGone: it crashed on the way; what became of the change is in what is stored.
        """
        answer: T = await self.child.ask(Change(work, arguments))
        return answer


@asynccontextmanager
async def open_owner(
    name: str, store: Store, read: Callable[[], Awaitable[None]], log: LogSink
) -> AsyncIterator[Owner]:
    """An owner for the length of a block.

    Args:
        read: takes the state from the store, in the place of whatever is in memory.

    Raises:
        StoreError: the state can't be read at the start.
        RestartLimit: it crashed too often.
    """
    await read()
    is_known = True

    async def read_if_needed() -> None:
        nonlocal is_known
        tries = 0
        while not is_known:
            try:
                await read()
                is_known = True
            except StoreError as error:
                tries += 1
                log("error", "owner.unread", owner=name, code=error.code, reason=error.message)
                if tries == READS:
                    raise
                await trio.sleep(READ_AGAIN_S)
        is_known = False

    async with open_supervisor(log) as supervisor:
        yield Owner(await supervisor.start(name, lambda: OwnerActor(name, store, read_if_needed), RESTART))
