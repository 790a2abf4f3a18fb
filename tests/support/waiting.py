"""Waiting for the real world in tests: sockets and threads that finish in their own time."""

from collections.abc import Callable

import trio


async def until(condition: Callable[[], bool], limit_s: float = 12.0) -> None:
    """Wait until a condition holds; fail after a limit."""
    with trio.fail_after(limit_s):
        while True:
            await trio.sleep(0.002)
            if condition():
                return
