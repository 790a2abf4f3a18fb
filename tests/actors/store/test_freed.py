"""What a write held is freed when it is answered: nothing of it waits for a collection of cycles."""

import gc
import weakref
from pathlib import Path

from tapster.actors.store import DocumentKey, PutDocument, StoreConfig, open_store
from tapster.actors.system import SystemClock


async def test_what_was_written_is_freed_without_a_collection(tmp_path: Path) -> None:
    class Patch(dict[str, int]):
        """A value that can be watched."""

    async with open_store(StoreConfig(tmp_path), clock=SystemClock()) as store:
        key = DocumentKey("settings", "s")
        gc.collect()
        gc.disable()
        try:
            value = Patch(a=1)
            watched = weakref.ref(value)
            await store.write(PutDocument(key, value, 0))
            del value
            # The actor's loop holds on to the last message until the next one.
            await store.write(PutDocument(key, {"a": 2}, 0))
            assert watched() is None
        finally:
            gc.enable()
