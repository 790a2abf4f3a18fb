"""The API as commands use it: over HTTP to the server that has the data folder, else in this process."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, TypeVar, final
from urllib.parse import quote

import attrs
import click
import httpx2
import trio

from tapster.actors.tapster import open_tapster
from tapster.api.app import create_app
from tapster.api.backing import Backing
from tapster.api.config import Config
from tapster.api.logs import open_logs
from tapster.api.running import tapster_config
from tapster.api.running_file import find_server
from tapster.engine.ecma import Json, stringify, utf8
from tapster.engine.errors import SourceError

from .main import read_config

CONTRACT: Final = "/pmp-dsh-tavern/api"
OWN: Final = "/tapster/api/v1"
IN_PROCESS: Final = "http://localhost"
T = TypeVar("T")


class ApiRefused(SourceError):
    """The API answered with an error; ``code`` is its code."""

    code = "REFUSED"


class ServerUnreachable(SourceError):
    """The server that has the data folder doesn't answer."""

    code = "SERVER_UNREACHABLE"


@final
@attrs.frozen
class Api:
    """Calls of both roots; every answer is JSON."""

    client: httpx2.AsyncClient
    origin: str
    token: str | None = attrs.field(default=None, repr=False)

    @property
    def is_in_process(self) -> bool:
        """Whether this command itself is the server."""
        return self.origin == IN_PROCESS

    async def call(
        self, method: str, path: str, body: Json = None, *, data: bytes | None = None, media_type: str = ""
    ) -> Json:
        """One request.

        Raises:
            ApiRefused: the API says no; the message and code are its own.
            ServerUnreachable: nothing answers.
        """
        headers = {"Origin": self.origin, "Content-Type": media_type or "application/json"}
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        try:
            # The client's own JSON can't hold lone surrogates, and a terminal may give some.
            content = data if data is not None else utf8(stringify({} if body is None else body))
            response = await self.client.request(method, path, content=content, headers=headers)
        except httpx2.TransportError as error:
            raise ServerUnreachable(f"{self.origin} doesn't answer: {error}") from error
        return _checked(response)

    async def get(self, path: str) -> Json:
        """A GET.

        Raises:
            ApiRefused, ServerUnreachable: as ``call``.
        """
        return _checked(await self._fetch(path))

    async def download(self, path: str) -> bytes:
        """The bytes of an attachment.

        Raises:
            ApiRefused, ServerUnreachable: as ``call``.
        """
        response = await self._fetch(path)
        if response.status_code >= 400:
            _checked(response)
        return response.content

    async def save(self, path: str, target: Path) -> int:
        """Write an attachment to a file piece by piece; its bytes.

        Raises:
            ApiRefused, ServerUnreachable: as ``call``.
            OSError: the file can't be written.
        """
        headers = {} if self.token is None else {"Authorization": f"Bearer {self.token}"}
        size = 0
        try:
            async with self.client.stream("GET", path, headers=headers, timeout=None) as response:
                if response.status_code >= 400:
                    await response.aread()
                    _checked(response)
                descriptor = os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
                with open(descriptor, "wb") as file:  # noqa: ASYNC230 - a command has one task and nobody else waits
                    async for piece in response.aiter_bytes():
                        size += file.write(piece)  # noqa: ASYNC232
                    file.flush()  # noqa: ASYNC232
                    os.fsync(file.fileno())  # noqa: ASYNC232
        except httpx2.TransportError as error:
            raise ServerUnreachable(f"{self.origin} doesn't answer: {error}") from error
        return size

    async def _fetch(self, path: str) -> httpx2.Response:
        headers = {} if self.token is None else {"Authorization": f"Bearer {self.token}"}
        try:
            return await self.client.get(path, headers=headers)
        except httpx2.TransportError as error:
            raise ServerUnreachable(f"{self.origin} doesn't answer: {error}") from error


def _checked(response: httpx2.Response) -> Json:
    try:
        body = response.json()
    except ValueError:
        raise ApiRefused(f"the answer with status {response.status_code} isn't JSON") from None
    if response.status_code < 400:
        return body
    error = body.get("error")
    if isinstance(error, Mapping):
        raise ApiRefused(str(error.get("message")), code=str(error.get("code")), status=response.status_code)
    message = body.get("message") or error or f"status {response.status_code}"
    raise ApiRefused(str(message), code=str(body.get("code") or "REFUSED"), status=response.status_code)


@asynccontextmanager
async def open_api(config: Config) -> AsyncIterator[Api]:
    """The API over a data folder, whether or not a server has it open.

    Raises:
        StoreError: no server runs and the data can't be used.
    """
    url = find_server(config.data_dir)
    if url is not None:
        async with httpx2.AsyncClient(base_url=url, trust_env=False, timeout=60) as client:
            yield Api(client, url, config.token)
        return
    with open_logs(sys.stderr, "error"):
        async with _open_in_process(config) as api:
            yield api


@asynccontextmanager
async def _open_in_process(config: Config) -> AsyncIterator[Api]:
    async with open_tapster(tapster_config(config)) as tapster:
        # Quart's and the client's words for an ASGI application differ in their types only.
        app: Any = create_app(Backing(tapster))
        transport = httpx2.ASGITransport(app=app, client=("127.0.0.1", 1))
        async with httpx2.AsyncClient(transport=transport, base_url=IN_PROCESS) as client:
            yield Api(client, IN_PROCESS)


def run(context: click.Context, work: Callable[[Api], Awaitable[T]]) -> T:
    """Run a command's work over the API of the configured data folder."""
    config = read_config(context)

    async def main() -> T:
        async with open_api(config) as api:
            return await work(api)

    return trio.run(main)


def segment(value: str) -> str:
    """An id as a part of a path."""
    return quote(utf8(value), safe="")
