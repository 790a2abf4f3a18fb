"""What a request brought is freed when it is answered: nothing of it waits for a collection of cycles."""

import gc
import weakref
from pathlib import Path
from typing import Any

import quart
import trio

from tests.support.contract import open_contract

PATHS = ("/tapster/api/v1/sessions", "/pmp-dsh-tavern/api/v1/presets", "/healthz", "/tapster/api/v1/nothing")


async def test_a_request_is_freed_when_it_is_answered(tmp_path: Path) -> None:
    seen: list[weakref.ref[Any]] = []

    async def watch() -> None:
        await trio.lowlevel.checkpoint()
        held: Any = quart.request
        seen.append(weakref.ref(held._get_current_object()))

    async with open_contract(tmp_path) as served:
        # Before the hook that answers for the roots.
        served.app.before_request_funcs[None].insert(0, watch)
        gc.collect()
        gc.disable()
        try:
            for path in PATHS:
                await served.client.send("GET", path)
            assert [ref() for ref in seen] == [None] * len(PATHS)
        finally:
            gc.enable()
