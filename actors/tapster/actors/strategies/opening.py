"""Everything that requests by a strategy need, opened in order and closed in reverse."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import EntryPoint
from typing import Final, final

import attrs

from tapster.actors.owners import RESTART
from tapster.actors.scripts import SCRIPT_THREADS, Scripts, ScriptWorker
from tapster.actors.sources import LoadedPlugin, Sources, load_plugins, open_sources
from tapster.actors.store import Store
from tapster.engine.assembly import Capabilities, InvalidAssembly, register_host_sources
from tapster.engine.assembly.tavern import register_tavern_sources, templates_source, variables_source
from tapster.engine.errors import StoreError
from tapster.engine.text.ports import RegexEngine
from tapster.runtime import Ids, LogSink, Threads, open_supervisor

from .draws import RequestDraws
from .library import Changes, Strategies, open_strategies
from .stored_templates import StoredTemplates, open_stored_templates
from .templates import TavernTemplates
from .variables import Variables, open_variables

SOURCE_THREADS: Final = 2
"""Threads for placing requests and for synchronous functions of plug-ins; one that hangs costs its own deadline."""


@final
@attrs.frozen(eq=False)
class Workshop:
    """Sources, strategies and what they read, for all sessions of a process.

    Attributes:
        plugins: what became of each installed plug-in.
    """

    strategies: Strategies
    sources: Sources
    variables: Variables
    templates: StoredTemplates
    scripts: Scripts
    draws: RequestDraws
    plugins: tuple[LoadedPlugin, ...] = ()
    capabilities: Capabilities = attrs.field(factory=lambda: Capabilities(core=True, core_installed=True))


@asynccontextmanager
async def open_workshop(
    store: Store,
    ids: Ids,
    counters: Changes,
    regex: RegexEngine,
    log: LogSink,
    *,
    plugins: Sequence[EntryPoint] | None = None,
) -> AsyncIterator[Workshop]:
    """Sources and strategies over an open store, for the length of a block.

    Args:
        counters: told when a session's strategy changes.
        plugins: entry points to load; None takes those of the installed packages.

    Raises:
        StoreError: what is stored isn't valid.
    """
    draws = RequestDraws()
    async with (
        open_supervisor(log) as supervisor,
        open_sources(Threads("sources", SOURCE_THREADS)) as sources,
        open_strategies(store, ids, counters, log) as strategies,
        open_variables(store, log) as variables,
        open_stored_templates(store, regex, variables, draws, log) as templates,
    ):
        for problem in (strategies.problem, templates.problem):
            if problem is not None:
                log("warning", "store.unreadable", code=problem.code, reason=problem.message)
        pool = Threads("scripts", SCRIPT_THREADS)
        scripts = Scripts(await supervisor.start("scripts", lambda: ScriptWorker(threads=pool), RESTART))
        runtime = TavernTemplates(scripts, draws)
        register_host_sources(sources.registry)
        register_tavern_sources(sources.registry, draws, lambda: runtime)
        # Variables answer at once; templates run JavaScript, so they go through a thread like a plug-in's source.
        sources.registry.register(variables_source(variables))
        sources.add(templates_source(templates))
        loaded = load_plugins(sources, plugins)
        for plugin in loaded:
            _announce(plugin, strategies, log)
        yield Workshop(strategies, sources, variables, templates, scripts, draws, loaded)


def _announce(plugin: LoadedPlugin, strategies: Strategies, log: LogSink) -> None:
    """Offer a plug-in's presets, and say what couldn't be used; the others work."""
    if plugin.error is not None:
        log("warning", "sources.plugin-left-out", plugin=plugin.name, package=plugin.package)
        return
    if plugin.presets:
        try:
            strategies.offer(plugin.package, list(plugin.presets))
        except (InvalidAssembly, StoreError) as error:
            log("warning", "sources.presets-left-out", plugin=plugin.name, code=error.code)
