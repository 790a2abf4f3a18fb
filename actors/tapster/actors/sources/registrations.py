"""Registering sources: scoped, or for as long as all of them live.

Source: spec/assembler §4; design §4 rules 4, 12.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar

import attrs
import trio

from tapster.engine.assembly import Registration, SourceRegistry, StrategyRegistry
from tapster.engine.errors import TapsterError
from tapster.runtime import Threads, Watched

from .errors import SourceFailed, SourceTimeout
from .home import Home, SourceStatistics
from .interface import SOURCE_DEADLINE_S, deadline_of, definition_of

T = TypeVar("T")
Disposer = Callable[[], None]


@attrs.frozen(eq=False)
class Bound:
    """A source's function with the place where it runs."""

    home: Home
    function: Callable[..., object]

    def __call__(self, *arguments: object) -> object:
        """Call it on the spot; the resolver goes through the home instead."""
        return self.function(*arguments)


@attrs.define(eq=False)
class Sources:
    """All sources of a process, with a place to run for each.

    Attributes:
        registry: the registry that requests capture.
        revision: counts registrations and withdrawals; part of every lease.
        threads: where synchronous functions of plug-ins and the placing run; None runs them on the loop.
    """

    _nursery: trio.Nursery
    threads: Threads | None
    registry: SourceRegistry = attrs.field(factory=SourceRegistry)
    revision: Watched[int] = attrs.field(factory=lambda: Watched(0))
    _homes: dict[str, Home] = attrs.field(factory=dict)

    @property
    def strategies(self) -> StrategyRegistry:
        return self.registry.strategies

    def add(self, source: object) -> Disposer:
        """Register a source until all sources close; the disposer withdraws it and cancels nothing.

        Raises:
            InvalidAssembly: it doesn't fit the contract; nothing is registered.
        """
        _, dispose = self._register(source, self._nursery)
        return dispose

    @asynccontextmanager
    async def registered(self, source: object) -> AsyncIterator[Home]:
        """A source registered for the body of the ``async with``.

        Leaving it withdraws the source, cancels its calls (their requests are refused) and waits for their end.

        Raises:
            InvalidAssembly: it doesn't fit the contract; nothing is registered.
        """
        async with trio.open_nursery(strict_exception_groups=True) as nursery:
            home, dispose = self._register(source, nursery)
            try:
                yield home
            finally:
                dispose()
                home.close()

    def _register(self, source: object, nursery: trio.Nursery) -> tuple[Home, Disposer]:
        definition = definition_of(source)
        home = Home(definition.id, definition.plugin_id, deadline_of(source), self.threads, nursery)
        bound = attrs.evolve(
            definition,
            resolve=None if definition.resolve is None else Bound(home, definition.resolve),
            parse_text=None if definition.parse_text is None else Bound(home, definition.parse_text),
            render_text=_guarded(definition.id, definition.render_text),
            validate_resolved=_guarded(definition.id, definition.validate_resolved),
            module_available=_guarded(definition.id, definition.module_available),
        )
        withdraw = self.registry.register(bound)
        self._homes[definition.id] = home
        self._publish()

        def dispose() -> None:
            withdraw()
            if self._homes.get(definition.id) is home:
                del self._homes[definition.id]
            self._publish()

        return home, dispose

    def home_for(self, registration: Registration) -> Home:
        """A place for a call of a source of Tapster's own."""
        definition = registration.definition
        return Home(definition.id, definition.plugin_id, SOURCE_DEADLINE_S, self.threads, self._nursery)

    def _publish(self) -> None:
        self.revision.set(self.registry.generation + self.strategies.generation)

    def statistics(self) -> Sequence[SourceStatistics]:
        """A reading of every registered source, in order."""
        return [home.statistics() for home in self._homes.values()]

    async def run(self, function: Callable[[], T], deadline_s: float) -> T:
        """Run pure work off the loop; a caller that leaves doesn't wait for it.

        Args:
            function: what to run.
            deadline_s: how long it may run; waiting for a thread doesn't count.

        Raises:
            SourceTimeout: it ran longer; the thread is left to end by itself.
        """
        if self.threads is None:
            await trio.lowlevel.checkpoint()
            return function()
        scope = trio.CancelScope()
        token = trio.lowlevel.current_trio_token()

        def begin() -> None:
            scope.deadline = trio.current_time() + deadline_s

        def work() -> T:
            token.run_sync_soon(begin)
            return function()

        with scope:
            return await self.threads.run(work, abandon_on_cancel=True)
        raise SourceTimeout("", f"leases, strategies and renderers took over {deadline_s:g} s")

    def close(self) -> None:
        """Withdraw nothing, take no more calls, and cancel those that run."""
        for home in list(self._homes.values()):
            home.close()


def _guarded(source_id: str, hook: Callable[..., object] | None) -> Callable[..., object] | None:
    """A synchronous hook whose undeclared errors name their source."""
    if hook is None or not callable(hook):
        return hook

    def guarded(*arguments: object) -> object:
        try:
            return hook(*arguments)
        except TapsterError:
            raise
        except Exception as error:
            raise SourceFailed(source_id, f"{source_id} failed with {type(error).__name__}") from error

    return guarded


@asynccontextmanager
async def open_sources(
    threads: Threads | None = None, registry: SourceRegistry | None = None
) -> AsyncIterator[Sources]:
    """All sources, until the body of the ``async with`` ends; then their calls are cancelled and waited for.

    Args:
        threads: where synchronous plug-in functions run; None runs them on the loop (for tests and small programs).
        registry: a registry with sources already in it, such as the host's and Tavern's.
    """
    async with trio.open_nursery(strict_exception_groups=True) as nursery:
        sources = Sources(nursery, threads, registry or SourceRegistry())
        try:
            yield sources
        finally:
            sources.close()
            nursery.cancel_scope.cancel(reason="the sources close")
