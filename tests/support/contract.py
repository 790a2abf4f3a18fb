"""The contract's routes over a whole Tapster with a scripted model."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import attrs
from quart_trio import QuartTrio

from tapster.actors.providers import Pause, ScriptedProvider
from tapster.actors.store import StoreConfig
from tapster.actors.store.opening import EngineName
from tapster.actors.tapster import Tapster, TapsterConfig, open_tapster
from tapster.api.app import AppOptions, create_app
from tapster.api.backing import Backing
from tapster.runtime import bounded_shield
from tests.support.asgi import AsgiClient
from tests.support.waiting import until

LONG_S = 3600.0


@attrs.frozen
class Served:
    """An open contract: a client, and what stands behind it."""

    client: AsgiClient
    app: QuartTrio
    tapster: Tapster
    provider: ScriptedProvider


@asynccontextmanager
async def open_contract(
    folder: Path,
    *,
    engine: EngineName = "memory",
    running: Iterable[str] = (),
    options: AppOptions | None = None,
) -> AsyncIterator[Served]:
    """The routes over a data folder, for the length of a block; the sessions of ``running`` are answering."""
    provider = ScriptedProvider()
    async with open_tapster(TapsterConfig(StoreConfig(folder, engine)), provider=provider) as tapster:
        app = create_app(Backing(tapster), options)
        handles = []
        for session_id in running:
            provider.add([Pause(LONG_S)])
            handle = await tapster.create_session(session_id)
            await handle.followup("Take your time.")
            handles.append(handle)
            await until(partial(_is_answering, provider, len(handles)))
        try:
            yield Served(AsgiClient(app), app, tapster, provider)
        finally:
            with bounded_shield(1):
                for handle in handles:
                    await handle.cancel()  # noqa: ASYNC102 - bounded_shield is the shield


def _is_answering(provider: ScriptedProvider, count: int) -> bool:
    return provider.active == count
