"""The contract's routes over a real store and library, without a host: sessions are names, some of them running."""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import trio
from quart_trio import QuartTrio

from tapster.actors.contract import ContractView, contract_view
from tapster.actors.library import open_library
from tapster.actors.session import Assembled
from tapster.actors.store import StoreConfig, open_store
from tapster.actors.store.opening import EngineName
from tapster.actors.system import SystemClock, SystemIds
from tapster.api.app import AppOptions, create_app
from tapster.engine.errors import RequestError
from tapster.engine.policy import SandboxMode
from tests.support.asgi import AsgiClient


@attrs.define
class NamedSessions:
    """A host whose sessions exist by name only.

    Attributes:
        running: sessions with a turn under way.
        sandboxes: modes of the live ones.
    """

    running: set[str] = attrs.Factory(set)
    sandboxes: dict[str, SandboxMode] = attrs.Factory(dict)

    def is_running(self, session_id: str) -> bool:
        return session_id in self.running

    def sandbox(self, session_id: str) -> SandboxMode | None:
        return self.sandboxes.get(session_id)

    async def set_sandbox(self, session_id: str, mode: SandboxMode) -> None:
        await trio.lowlevel.checkpoint()
        self.sandboxes[session_id] = mode

    async def preview(self, session_id: str) -> Assembled:
        await trio.lowlevel.checkpoint()
        raise RequestError(f"session {session_id!r} doesn't exist", code="SESSION_NOT_FOUND", status=404)


@attrs.frozen
class Served:
    """An open contract: a client, and what stands behind it."""

    client: AsgiClient
    app: QuartTrio
    view: ContractView
    host: NamedSessions


@asynccontextmanager
async def open_contract(
    folder: Path,
    *,
    engine: EngineName = "memory",
    running: Iterable[str] = (),
    options: AppOptions | None = None,
    ids: Callable[[], SystemIds] = SystemIds,
) -> AsyncIterator[Served]:
    """The routes over a data folder, for the length of a block."""
    clock, host = SystemClock(), NamedSessions(set(running))
    async with (
        open_store(StoreConfig(folder, engine), clock=clock) as store,
        open_library(store, clock=clock, ids=ids()) as library,
    ):
        view = contract_view(library, store, host, clock=clock, ids=ids())
        app = create_app(view, options)
        yield Served(AsgiClient(app), app, view, host)
