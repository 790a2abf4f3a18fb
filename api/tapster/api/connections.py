"""Connections of hypercorn on trio: so many at once, and none that a client which stopped reading can hold."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, final

import attrs
import trio
from hypercorn.events import Closed, RawData
from hypercorn.trio import run, tcp_server

from tapster.engine.ecma import json_bytes
from tapster.runtime import Overloaded

from .answers import JSON_TYPE
from .errors import error_answer

SEND_LIMIT_S: Final = 10.0
"""How long a client may take to read one piece before its connection is cut."""

ENDING_S: Final = 1.0
"""How long what a client left behind may take to end."""
REFUSAL_S: Final = 0.5
"""How long a connection that is refused may still send."""


@final
@attrs.define(eq=False)
class Connections:
    """How many there may be, and are."""

    limit: int
    open: int = 0


class BoundedServer(tcp_server.TCPServer):
    """One of a bounded number of connections, whose writes and closing have a deadline and are finished by a cancelled
    request as well.

    Hypercorn 0.18 sends inside a shield without a deadline, so a client that stops reading would hold a shutdown for
    ever. It closes the connection in the task of the request, which quart-trio 0.12 cancels at that very moment, so
    ``Connection: close`` would leave it open. And with a second request behind the one it answers it doesn't notice
    that the client has gone, and would keep the connection's tasks for ever.
    """

    send_limit_s = SEND_LIMIT_S
    connections: "Connections"

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._life = trio.CancelScope()

    async def run(self) -> None:
        """Serve a connection, or say that there is no room for it."""
        if self.connections.open >= self.connections.limit:
            await self._refuse()
            return
        self.connections.open += 1
        try:
            with self._life:
                await super().run()
        finally:
            self.connections.open -= 1
            vars(self).pop("protocol", None)  # it refers to this server: in a cycle, both would wait for a collection
            await trio.aclose_forcefully(self.stream)

    async def _read_data(self) -> None:
        """Read until the client has gone; then nothing but what ends by itself is waited for, and not for long."""
        await super()._read_data()
        await self.idle_task.stop()
        self._end_soon()

    def _end_soon(self) -> None:
        self._life.deadline = min(self._life.deadline, trio.current_time() + ENDING_S)

    async def _refuse(self) -> None:
        """Answer and hear the client out for a moment: it would lose the answer if it were cut off while it sends."""
        with trio.move_on_after(REFUSAL_S):
            try:
                await self.stream.send_all(_no_room())
                await self.stream.send_eof()
                while await self.stream.receive_some():
                    pass
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                pass
        await trio.aclose_forcefully(self.stream)

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
                is_gone = scope.cancelled_caught
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                is_gone = True
            if is_gone:
                # A reader that waits for this very request to end wouldn't notice.
                self._end_soon()
                await trio.aclose_forcefully(self.stream)
                await self.protocol.handle(Closed())

    def _bounded_shield(self) -> trio.CancelScope:
        return trio.CancelScope(shield=True, deadline=trio.current_time() + self.send_limit_s)


def _no_room() -> bytes:
    answer = error_answer("own", Overloaded("Tapster"))
    body = json_bytes(answer.body)
    headers = {
        **answer.headers,
        "Connection": "close",
        "Content-Type": JSON_TYPE,
        "Content-Length": str(len(body)),
    }
    lines = [f"HTTP/1.1 {answer.status} Service Unavailable", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode() + body


@contextmanager
def bounded_connections(limit: int) -> Iterator[None]:
    """Put the bounded connection in hypercorn's place."""
    original = vars(run)["TCPServer"]
    bounded = type(BoundedServer.__name__, (BoundedServer,), {"connections": Connections(limit)})
    setattr(run, "TCPServer", bounded)  # noqa: B010 - hypercorn doesn't export the name
    try:
        yield
    finally:
        setattr(run, "TCPServer", original)  # noqa: B010
