"""Sources that installed packages offer in the entry-point group ``tapster.sources``.

A plug-in that can't be loaded is reported and left out; the others work.
"""

from collections.abc import Callable, Iterable
from importlib import metadata

import attrs

from tapster.engine.assembly import InvalidAssembly
from tapster.engine.ecma import Json
from tapster.engine.errors import TapsterError

from .interface import SourcePlugin
from .registrations import Sources

GROUP = "tapster.sources"


@attrs.frozen
class LoadedPlugin:
    """What became of one entry point."""

    name: str
    package: str
    version: str
    source_ids: tuple[str, ...] = ()
    strategy_ids: tuple[str, ...] = ()
    presets: tuple[Json, ...] = ()
    error: str | None = None


def installed_plugins() -> tuple[metadata.EntryPoint, ...]:
    """The entry points of installed packages, by name."""
    return tuple(sorted(metadata.entry_points(group=GROUP), key=lambda point: point.name))


def load_plugins(sources: Sources, points: Iterable[metadata.EntryPoint] | None = None) -> tuple[LoadedPlugin, ...]:
    """Load entry points and register what they offer, each one whole or not at all."""
    return tuple(_load(sources, point) for point in (installed_plugins() if points is None else points))


def _load(sources: Sources, point: metadata.EntryPoint) -> LoadedPlugin:
    package = point.dist.name if point.dist is not None else point.module
    version = point.dist.version if point.dist is not None else ""
    try:
        plugin = read_plugin(point.load())
        source_ids, strategy_ids = _register(sources, plugin)
    except Exception as error:  # noqa: BLE001 - a broken package must not keep the others out; it is reported
        code = error.code if isinstance(error, TapsterError) else type(error).__name__
        return LoadedPlugin(point.name, package, version, error=f"{code}: {error}")
    return LoadedPlugin(point.name, package, version, source_ids, strategy_ids, tuple(plugin.presets))


def read_plugin(value: object) -> SourcePlugin:
    """A plug-in from what an entry point names: a plug-in, a source, its class, or a function that gives one."""
    if isinstance(value, SourcePlugin):
        return value
    if hasattr(value, "plugin_id") and not isinstance(value, type):
        return SourcePlugin(sources=(value,))
    if callable(value):
        return read_plugin(value())
    raise InvalidAssembly(f"{type(value).__name__} is no source", code="SOURCE_IDENTITY_INVALID")


def _register(sources: Sources, plugin: SourcePlugin) -> tuple[tuple[str, ...], tuple[str, ...]]:
    disposers: list[Callable[[], None]] = []
    try:
        for source in plugin.sources:
            disposers.append(sources.add(source))  # noqa: PERF401 - those registered so far must be undone
        for strategy in plugin.strategies:
            disposers.append(sources.strategies.register(strategy))  # noqa: PERF401
    except BaseException:
        for dispose in disposers:
            dispose()
        raise
    ids = tuple(str(getattr(source, "id", "")) for source in plugin.sources)
    return ids, tuple(strategy.id for strategy in plugin.strategies)
