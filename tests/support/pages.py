"""The page over a whole Tapster in process, and a client that keeps cookies and fills in forms as a browser does."""

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import attrs
import trio

from tapster.actors.store.files.traces import LegacyTraces
from tapster.actors.store.opening import EngineName
from tapster.api.config import Config
from tapster.api.page import add_page
from tests.support.asgi import Reply
from tests.support.contract import Served, open_contract
from tests.support.waiting import until

FORM = "application/x-www-form-urlencoded"
BOUNDARY = "----pages"


@attrs.define
class Visitor:
    """Somebody with a browser, with or without the page's script."""

    served: Served
    cookies: dict[str, str] = attrs.field(factory=dict)
    has_script: bool = True

    async def get(self, target: str, **headers: str) -> Reply:
        """Open an address."""
        return self._keep(await self.served.client.send("GET", target, headers=self._headers(headers)))

    async def text(self, target: str) -> str:
        """The HTML of an address that answers well."""
        reply = await self.get(target)
        assert reply.status == 200, reply.body
        return reply.body.decode()

    async def post(self, target: str, form: Mapping[str, Any] | None = None, **headers: str) -> Reply:
        """Send a form; a list is a field with several values."""
        data = urlencode(form or {}, doseq=True).encode()
        return await self._send(target, data, {"content-type": FORM, **headers})

    async def upload(self, *uploads: tuple[str, bytes]) -> Reply:
        """Import files."""
        parts = [
            f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="files"; filename="{name}"\r\n\r\n'.encode() + data
            for name, data in uploads
        ]
        body = b"\r\n".join([*parts, f"--{BOUNDARY}--\r\n".encode()])
        return await self._send("/library/import", body, {"content-type": f"multipart/form-data; boundary={BOUNDARY}"})

    async def _send(self, target: str, data: bytes, headers: dict[str, str]) -> Reply:
        asked = {"hx-request": "true", **headers} if self.has_script else headers
        return self._keep(await self.served.client.send("POST", target, data=data, headers=self._headers(asked)))

    def _headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        jar = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        return {"cookie": jar, **named}

    def _keep(self, reply: Reply) -> Reply:
        name, _, value = reply.headers.get("set-cookie", "").partition(";")[0].partition("=")
        if name:
            self.cookies[name] = value
        return reply


@asynccontextmanager
async def open_page(
    folder: Path,
    *,
    engine: EngineName = "memory",
    running: Iterable[str] = (),
    sample: bool = False,
    legacy: LegacyTraces | None = None,
    **config: Any,
) -> AsyncIterator[Visitor]:
    """A visitor of the page over a data folder, with the sample library or with nothing in it."""
    async with open_contract(folder, engine=engine, running=running) as served:
        add_page(served.app, served.tapster, Config(data_dir=folder, **{"locale": "en", **config}), legacy)
        if sample:
            for file in files("tapster.api.sample").iterdir():
                if not file.name.endswith((".py", "__pycache__")):
                    await served.tapster.library.imports.import_file(file.name, file.read_bytes())
        yield Visitor(served)


@attrs.define(eq=False)
class Listener:
    """A client of an event stream."""

    received: bytes = b""
    status: int | None = None
    gone: trio.Event = attrs.field(factory=trio.Event)
    ended: trio.Event = attrs.field(factory=trio.Event)

    def leave(self) -> None:
        """Close the tab."""
        self.gone.set()

    async def until(self, text: bytes) -> bytes:
        """Everything up to now, once it holds a text."""
        await until(lambda: text in self.received)
        return self.received

    async def send(self, message: dict[str, Any]) -> None:
        """Take a piece from the server."""
        await trio.lowlevel.checkpoint()
        self.status = message.get("status", self.status)
        self.received += message.get("body", b"")


@asynccontextmanager
async def listening(visitor: Visitor, path: str, query: str = "", **headers: str) -> AsyncIterator[Listener]:
    """An open event stream; the tab is closed at the end of the block."""
    client = visitor.served.client
    named = {"host": client.host, **{name.replace("_", "-"): value for name, value in headers.items()}}
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in named.items()],
        "client": ("127.0.0.1", 50000),
        "server": ("127.0.0.1", 7788),
        "state": {},
        "extensions": {},
    }
    listener = Listener()
    asked = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> dict[str, Any]:
        if asked:
            await trio.lowlevel.checkpoint()
            return asked.pop()
        await listener.gone.wait()
        return {"type": "http.disconnect"}

    async def run() -> None:
        await client.app(scope, receive, listener.send)  # type: ignore[arg-type]
        listener.ended.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        yield listener
        listener.leave()
        with trio.fail_after(12):
            await listener.ended.wait()
