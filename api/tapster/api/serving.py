"""Hypercorn on trio: started ready, stopped in order, never hung on a client that stopped reading."""

import os
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Final, final

import attrs
import trio
from hypercorn.config import Config as HypercornConfig
from hypercorn.trio import serve
from quart_trio import QuartTrio

from tapster.engine.errors import RequestError

from .connections import bounded_connections

MAX_CONNECTIONS: Final = 512
"""Half of the descriptors that a process usually may have."""
LAST_RESORT_EXIT: Final = 70


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
async def open_server(
    app: QuartTrio, config: HypercornConfig, max_connections: int = MAX_CONNECTIONS
) -> AsyncIterator[Server]:
    """Serve an app; ready when entered, all connections ended when left.

    Raises:
        AddressUnusable: it can't listen where it was told to.
    """
    stop = trio.Event()
    with bounded_connections(max_connections):
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
