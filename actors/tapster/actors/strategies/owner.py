"""The actor behind each kind of state here: its changes are messages, made durable one after the other."""

from collections.abc import Awaitable, Callable
from typing import Any, ClassVar, TypeVar, final

import attrs

from tapster.engine.errors import TapsterError
from tapster.runtime import Actor, Ref, Request

T = TypeVar("T")


@final
@attrs.frozen
class Change:
    """Work of an owner, and what it's given."""

    work: Callable[..., Awaitable[Any]]
    arguments: tuple[Any, ...] = ()


@final
class OwnerActor(Actor):
    """Runs changes as tasks of its own."""

    declared: ClassVar[tuple[type[Exception], ...]] = (TapsterError,)

    def __init__(self, name: str) -> None:
        self.name = name

    def receive(self, request: Request) -> None:
        """Start the change in the order of arrival."""
        change: Change = request.body
        self.start(request, change.work, *change.arguments)


async def ask(ref: Ref, work: Callable[..., Awaitable[T]], *arguments: Any) -> T:
    """Have an owner do a change, and wait for it."""
    answer: T = await ref.ask(Change(work, arguments))
    return answer
