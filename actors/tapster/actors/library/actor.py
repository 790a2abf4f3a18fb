"""The library actor: every change of the library is one of its messages."""

from collections.abc import Awaitable, Callable
from typing import Any, ClassVar, final

import attrs

from tapster.engine.errors import TapsterError
from tapster.runtime import Actor, Request


@final
@attrs.frozen
class Change:
    """Work on the library: a method of one of its parts, and what it's given."""

    work: Callable[..., Awaitable[Any]]
    arguments: tuple[Any, ...] = ()


@final
class LibraryActor(Actor):
    """Runs changes as tasks of its own; two changes of one resource follow each other (see ``LibraryCore.alone``)."""

    name = "library"
    capacity = 128
    declared: ClassVar[tuple[type[Exception], ...]] = (TapsterError,)

    def receive(self, request: Request) -> None:
        """Start the change in the order of arrival."""
        change: Change = request.body
        self.start(request, change.work, *change.arguments)
