"""Hypercorn on trio: started ready, stopped in order, never hung on a client that stopped reading."""

import os
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any, Final, final

import attrs
import trio
from hypercorn.config import Config as HypercornConfig
from hypercorn.events import Closed, RawData
from hypercorn.trio import run, serve, tcp_server
from quart_trio import QuartTrio

from tapster.engine.errors import RequestError

SEND_LIMIT_S: Final = 10.0
"""How long a client may take to read one piece before its connection is cut."""

LAST_RESORT_EXIT: Final = 70


class BoundedServer(tcp_server.TCPServer):
    """A connection whose writes and whose closing have a deadline, and are finished by a cancelled request as well.

    Hypercorn 0.18 sends inside a shield without a deadline, so a client that stops reading would hold a shutdown for
    ever. And it closes the connection in the task of the request, which quart-trio 0.12 cancels at that very moment, so
    ``Connection: close`` would leave it open.
    """

    send_limit_s = SEND_LIMIT_S

    async def protocol_send(self, event: Any) -> None:
        """Send an event; a client that doesn't take it in time is gone."""
        if isinstance(event, RawData):
            await self._send_data(event.data)
        elif isinstance(event, Closed):
            with self._bounded_shield() as scope:
                await self._close()
            if scope.cancelled_caught:
                await trio.aclose_forcefully(self.stream)
            await self.protocol.handle(event)
        else:
            await super().protocol_send(event)

    async def _send_data(self, data: bytes) -> None:
        async with self.send_lock:
            try:
                with self._bounded_shield() as scope:
                    await self.stream.send_all(data)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                await self.protocol.handle(Closed())
                return
            if scope.cancelled_caught:
                await trio.aclose_forcefully(self.stream)
                await self.protocol.handle(Closed())

    def _bounded_shield(self) -> trio.CancelScope:
        return trio.CancelScope(shield=True, deadline=trio.current_time() + self.send_limit_s)


@contextmanager
def bounded_sends() -> Iterator[None]:
    """Put the bounded connection in hypercorn's place."""
    original = vars(run)["TCPServer"]
    setattr(run, "TCPServer", BoundedServer)  # noqa: B010 - hypercorn doesn't export the name
    try:
        yield
    finally:
        setattr(run, "TCPServer", original)  # noqa: B010


class AddressUnusable(RequestError):
    """The address to listen on is taken, or isn't one of this machine."""

    code = "ADDRESS_UNUSABLE"


def server_config(host: str, port: int, *, grace_s: float = 3.0) -> HypercornConfig:
    """Hypercorn's settings; port 0 takes a free one."""
    config = HypercornConfig()
    address = f"[{host}]" if ":" in host else host
    config.bind = [f"{address}:{port}"]
    config.include_server_header = False
    config.accesslog = None
    config.errorlog = None
    config.graceful_timeout = grace_s
    config.h11_max_incomplete_size = 64 * 1024
    return config


@final
@attrs.define(eq=False)
class Server:
    """A listening server.

    Attributes:
        urls: the addresses it listens on, with the real port.
    """

    urls: tuple[str, ...]
    _stop: trio.Event = attrs.field(factory=trio.Event)

    def stop(self) -> None:
        """Take no more connections and end those that are left within the grace."""
        self._stop.set()

    @property
    def port(self) -> int:
        """The port of the first address."""
        return int(self.urls[0].rpartition(":")[2])


@asynccontextmanager
async def open_server(app: QuartTrio, config: HypercornConfig) -> AsyncIterator[Server]:
    """Serve an app; ready when entered, all connections ended when left.

    Raises:
        AddressUnusable: it can't listen where it was told to.
    """
    stop = trio.Event()
    with bounded_sends():
        async with trio.open_nursery() as nursery:
            try:
                urls: list[str] = await nursery.start(partial(serve, app, config, shutdown_trigger=stop.wait))
            except* OSError as group:
                raise AddressUnusable(
                    f"can't listen on {config.bind[0]}: it is taken, not this machine's, or not allowed to you"
                ) from group
            server = Server(tuple(urls), stop)
            try:
                yield server
            finally:
                server.stop()


async def wait_for_stop(
    signals: AsyncIterator[int], drain: Callable[[], Awaitable[None]], *, at_once: Callable[[], None]
) -> None:
    """Drain at the first signal; a second one ends what still runs at once.

    Args:
        signals: from ``trio.open_signal_receiver``, opened before the server so that no signal is lost.
        drain: finishes live work; it is cancelled by the second signal.
        at_once: what the second signal does besides.
    """
    await anext(signals)
    async with trio.open_nursery() as nursery:

        async def second() -> None:
            await anext(signals)
            at_once()
            nursery.cancel_scope.cancel(reason="second stop signal")

        nursery.start_soon(second)
        await drain()
        nursery.cancel_scope.cancel(reason="drained")


@contextmanager
def last_resort(seconds: float) -> Iterator[None]:
    """End the process hard when what runs inside hangs, a thread stuck in fsync included."""
    timer = threading.Timer(seconds, os._exit, [LAST_RESORT_EXIT])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
