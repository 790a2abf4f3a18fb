"""The registry of sources: who may contribute to a request.

Source: spec/assembler §4.
"""

import inspect
from collections.abc import Callable

import attrs

from tapster.engine.ecma import Json

from .definition import Registration, SourceDefinition, check_definition
from .errors import InvalidAssembly
from .frozen import FrozenDict
from .strategies import StrategyRegistry

Disposer = Callable[[], None]


@attrs.define(eq=False)
class SourceRegistry:
    """Registered sources in registration order, with the strategies beside them.

    Attributes:
        strategies: the ordering strategies.
        render_text: renders blocks of sources without a renderer of their own; None leaves text as it is.
        generation: counts changes, so that a lease can tell whether one happened.
    """

    strategies: StrategyRegistry = attrs.field(factory=StrategyRegistry)
    render_text: Callable[..., object] | None = None
    generation: int = 0
    _sources: dict[str, Registration] = attrs.field(factory=dict)

    version = 1
    """The source protocol's version."""

    def register(self, source: SourceDefinition) -> Disposer:
        """Make a source selectable; the returned disposer removes this registration only.

        Raises:
            InvalidAssembly: the first check that fails; then nothing is registered.
        """
        registration = check_definition(source, self._sources.__contains__)
        self._sources[source.id] = registration
        self.generation += 1

        def dispose() -> None:
            if self._sources.get(source.id) is registration:
                del self._sources[source.id]
                self.generation += 1

        return dispose

    def capture(self) -> dict[str, Registration]:
        """The registrations as they are now; a request keeps them to its end."""
        return dict(self._sources)

    def descriptors(self, session_id: str = "") -> list[dict[str, Json]]:
        """Descriptors in registration order, detached from the registry.

        Raises:
            InvalidAssembly: ``SOURCE_AVAILABILITY_RESULT`` when ``module_available`` gives no boolean at once.
        """
        return [
            {**registration.descriptor(), "moduleAvailable": module_available(registration, session_id)}
            for registration in self._sources.values()
        ]


def module_available(registration: Registration, session_id: str) -> bool:
    """Whether a source's module has something to offer; metadata, never a permission."""
    reader = registration.definition.module_available
    if not registration.supports_module or reader is None:
        return registration.supports_module
    available = reader(FrozenDict(sessionId=session_id))
    if not isinstance(available, bool):
        discard(available)
        raise InvalidAssembly(
            f"{registration.id}: moduleAvailable must return true or false at once", code="SOURCE_AVAILABILITY_RESULT"
        )
    return available


def is_awaitable(value: object) -> bool:
    """Whether a callable that must answer at once gave something to wait for."""
    return inspect.isawaitable(value)


def discard(value: object) -> None:
    """Close a coroutine nobody will await."""
    if inspect.iscoroutine(value):
        value.close()
