"""Request bodies: read within a limit, parsed within a depth.

A body over its limit is read to its end (within bounds) and thrown away before the refusal goes out: a client that
sends first and reads later would otherwise find its connection reset and the answer gone.
"""

from collections.abc import Mapping

import trio
from quart.wrappers import Request

from tapster.engine.ecma import Json, parse_json
from tapster.engine.errors import RequestError

DISCARD_BYTES = 256 * 1024 * 1024
DISCARD_S = 5.0
CHUNK_S = 30.0
"""How long a client may be silent in the middle of its body."""

MAX_DEPTH = 200
"""Nested JSON beyond this is no document of this contract, and recursive code must not meet it."""


class BodyTooLarge(RequestError):
    """A body has more bytes than its route takes."""

    code = "REQUEST_BODY_TOO_LARGE"
    status = 413


class BodyTimeout(RequestError):
    """A client stopped in the middle of its body."""

    code = "REQUEST_BODY_TIMEOUT"
    kind = "Error"
    status = 408


async def read_body(request: Request, limit: int) -> bytes:
    """The body's bytes.

    Raises:
        BodyTooLarge: there are more than ``limit``.
        BodyTimeout: the client fell silent.
    """
    declared = request.headers.get("Content-Length", "")
    is_over = declared.isascii() and declared.isdigit() and int(declared) > limit
    waits_for_permission = request.headers.get("Expect", "").lower() == "100-continue"
    if is_over and waits_for_permission:
        raise BodyTooLarge(f"the body has {declared} bytes, this route takes at most {limit}")
    data = bytearray()
    while (chunk := await _next_chunk(request)) is not None:
        if is_over or len(data) + len(chunk) > limit:
            await discard_body(request)
            raise BodyTooLarge(f"the body has more than the {limit} bytes that this route takes")
        data += chunk
    return bytes(data)


async def _next_chunk(request: Request) -> bytes | None:
    """The next piece of the body, None at its end."""
    with trio.move_on_after(CHUNK_S):
        async for chunk in request.body:
            return bytes(chunk)
        return None
    raise BodyTimeout(f"nothing of the body arrived for {CHUNK_S:g} s")


async def discard_body(request: Request) -> None:
    """Read the rest of a body and throw it away, within bounds."""
    left = DISCARD_BYTES
    with trio.move_on_after(DISCARD_S):
        async for chunk in request.body:
            left -= len(chunk)
            if left < 0:
                return


def parse_body(data: bytes) -> dict[str, Json]:
    """The JSON object of a body; an empty body is ``{}``.

    Raises:
        FormatError: not JSON, or nested far too deeply.
        RequestError: not an object, or nested too deeply.
    """
    if not data:
        return {}
    value = parse_json(data.decode("utf-8", "replace"), allow_deep=False)
    if not isinstance(value, dict):
        raise RequestError("the body must be a JSON object")
    check_depth(value)
    return value


def check_depth(value: Json) -> None:
    """Refuse a value that is nested too deeply.

    Raises:
        RequestError: it is.
    """
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            child
            for item in level
            if isinstance(item, dict | list)
            for child in (item.values() if isinstance(item, Mapping) else item)
            if isinstance(child, dict | list)
        ]
        if not level:
            return
    raise RequestError(f"the body is nested more than {MAX_DEPTH} levels deep")
