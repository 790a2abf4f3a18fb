"""The data as a whole: how it fares, whether it is sound, a copy of it."""

from types import TracebackType
from typing import BinaryIO, Final, final

import attrs
import trio
from quart import Response
from quart.wrappers.response import ResponseBody

from tapster.api.answers import Answer
from tapster.engine.contract import SECURITY_HEADERS

from .routing import OwnCall, OwnRoute, own_route

ROUTES: list[OwnRoute] = []
PIECE_BYTES: Final = 256 * 1024
FILE_TYPE: Final = "application/octet-stream"


@own_route(ROUTES, "GET", "/store", "Engine, place, durability, and what writes meet now", "store", while_draining=True)
async def facts(call: OwnCall) -> Answer:
    found = await call.tapster.upkeep.facts()
    warnings = [{"code": code, "subject": subject, "message": message} for code, subject, message in found.warnings]
    return Answer({**attrs.asdict(found), "warnings": warnings})


@own_route(ROUTES, "GET", "/store/check", "Check the integrity of all data", "store")
async def check(call: OwnCall) -> Answer:
    problems = await call.tapster.upkeep.check()
    return Answer({"ok": not problems, "problems": list(problems)})


@own_route(
    ROUTES, "GET", "/store/backup", "A complete copy of the data, made while serving", "store", media_type=FILE_TYPE
)
async def backup(call: OwnCall) -> Response:
    response = Response(FileBody(await call.tapster.upkeep.backup()), 200, content_type=FILE_TYPE)
    response.headers.update(SECURITY_HEADERS)
    response.timeout = None
    return response


@final
class FileBody(ResponseBody):
    """A response body read from a file piece by piece; the file is closed when the response ends."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._threads = trio.CapacityLimiter(1)

    async def __aenter__(self) -> "FileBody":
        await trio.lowlevel.checkpoint()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_value: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._file.close()

    def __aiter__(self) -> "FileBody":
        return self

    async def __anext__(self) -> bytes:
        piece = await trio.to_thread.run_sync(self._file.read, PIECE_BYTES, limiter=self._threads)
        if not piece:
            raise StopAsyncIteration
        return piece
