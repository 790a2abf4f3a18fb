"""Who is alive: every actor and every supervised child that was opened inside a roster, for introspection."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, final

import attrs

if TYPE_CHECKING:
    from .actor import Ref
    from .supervisor import Child
    from .threads import Threads

_CURRENT: ContextVar[Roster | None] = ContextVar("tapster_roster", default=None)


@attrs.frozen
class ActorReading:
    """One actor: its state, inbox depth, open requests, age in seconds of the oldest, messages taken, restarts."""

    name: str
    state: str
    queued: int
    open: int
    oldest_s: float
    handled: int
    restarts: int


@final
@attrs.define(eq=False)
class Roster:
    """The live actors and children of one runtime, which come and go by themselves, and its pools of threads."""

    _refs: dict[Ref, None] = attrs.field(factory=dict)
    _children: dict[Child, None] = attrs.field(factory=dict)
    pools: list[Threads] = attrs.field(factory=list)

    def add(self, ref: Ref) -> None:
        """An actor is ready."""
        self._refs[ref] = None

    def remove(self, ref: Ref) -> None:
        """An actor is gone."""
        self._refs.pop(ref, None)

    def add_child(self, child: Child) -> None:
        """A supervisor keeps a child."""
        self._children[child] = None

    def remove_child(self, child: Child) -> None:
        """A child has ended for good."""
        self._children.pop(child, None)

    def __len__(self) -> int:
        return len(self._refs)

    def readings(self) -> Iterator[ActorReading]:
        """Every actor that lives, and every child that is down for now."""
        supervised = {child.current: child for child in self._children if child.current is not None}
        for ref in tuple(self._refs):
            child = supervised.get(ref)
            reading = ref.statistics()
            yield ActorReading(
                reading.name,
                ("running" if ref.is_alive else "stopping") if child is None else child.state.value,
                reading.queued,
                reading.open,
                reading.oldest_s,
                reading.handled,
                0 if child is None else child.restarts,
            )
        for child in tuple(self._children):
            if child.current is None:
                yield ActorReading(child.name, child.state.value, 0, 0, 0.0, 0, child.restarts)


def current_roster() -> Roster | None:
    """The roster that this task's actors are entered in, if there is one."""
    return _CURRENT.get()


@contextmanager
def open_roster() -> Iterator[Roster]:
    """A roster for everything that is opened in the block, and by tasks that are started in it."""
    roster = Roster()
    token = _CURRENT.set(roster)
    try:
        yield roster
    finally:
        _CURRENT.reset(token)
