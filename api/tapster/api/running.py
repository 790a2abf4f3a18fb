"""A whole Tapster with its server: opened from a configuration, drained in order (design §4 rule 9)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

import attrs
import trio

from tapster.actors.admission import AdmissionLimits
from tapster.actors.providers import OpenAiSettings
from tapster.actors.store.files.traces import LegacyTraces
from tapster.actors.system import SystemIds
from tapster.actors.tapster import Tapster, TapsterConfig, open_tapster
from tapster.runtime import Phase, full_collections_when_quiet, responsive_process

from .app import AppOptions, create_app
from .backing import Backing
from .config import Config
from .logs import log_sink
from .page import add_page
from .running_file import announced
from .serving import Server, open_server, server_config
from .storing import store_config

SERVER_GRACE_S: Final = 3.0
REQUEST_TOKEN_BYTES: Final = 32
"""Of the token that the embedded page asks for; new with each process (spec/http §1)."""


@attrs.frozen(eq=False)
class Running:
    """What ``tapster serve`` has open."""

    config: Config
    tapster: Tapster
    server: Server


def tapster_config(config: Config) -> TapsterConfig:
    """What the runtime needs of a configuration."""
    provider = None
    if config.provider_url is not None:
        provider = OpenAiSettings(config.provider_url, config.provider_key)
    return TapsterConfig(
        store_config(config),
        provider,
        config.model,
        session_mode=config.session_mode,
        max_live_sessions=config.max_live_sessions,
        idle_s=config.idle_s or None,
        admission=AdmissionLimits(
            config.session_pending, config.max_pending, config.session_streams, config.max_streams
        ),
    )


def app_options(config: Config) -> AppOptions:
    """What HTTP needs of a configuration."""
    return AppOptions(
        allowed_hosts=frozenset(config.allowed_hosts),
        allow_remote_clients=config.allow_remote,
        token=config.token,
        request_token=SystemIds().token(REQUEST_TOKEN_BYTES),
    )


async def open_legacy(config: Config) -> LegacyTraces:
    """The read-only trace files that an older data folder may hold, or that came with an import.

    An unreadable one stops nothing but the answers that need it.
    """
    read = partial(LegacyTraces, config.data_dir, must_read=False)
    legacy = await trio.to_thread.run_sync(read, limiter=trio.CapacityLimiter(1))
    for warning in legacy.warnings:
        log_sink("warning", "traces.legacy-unread", reason=warning)
    return legacy


@asynccontextmanager
async def open_running(config: Config) -> AsyncIterator[Running]:
    """Everything open and listening, for the length of a block.

    Raises:
        StoreError: the data can't be used.
        AddressUnusable: the address is taken.
    """
    with responsive_process():
        async with _open(config) as running:
            yield running


@asynccontextmanager
async def _open(config: Config) -> AsyncIterator[Running]:
    async with open_tapster(tapster_config(config), log=log_sink) as tapster:
        legacy = await open_legacy(config)
        app = create_app(Backing(tapster, legacy), app_options(config))
        add_page(app, tapster, config, legacy)
        server_settings = server_config(config.host, config.port, grace_s=SERVER_GRACE_S)
        async with (
            open_server(app, server_settings, config.max_connections) as server,
            full_collections_when_quiet(),
            announced(config.data_dir, server.urls[0], log_sink),
        ):
            yield Running(config, tapster, server)


async def drain(running: Running, grace_s: float) -> None:
    """Take nothing new, end live streams, and let turns under way finish within the grace."""
    running.tapster.lifecycle.advance(Phase.DRAINING)
    for handle in running.tapster.host.live:
        agent = running.tapster.host.agent(handle.id)
        if agent is not None:
            agent.log.end_subscribers()
    with trio.move_on_after(grace_s):
        async with trio.open_nursery() as nursery:
            for handle in running.tapster.host.live:
                nursery.start_soon(handle.when_idle)
