"""A process whose files can't grow for a while: the kernel refuses writes as on a full disk, then has room again."""

import resource
import sys
from pathlib import Path
from typing import Any

import trio

from tapster.actors.store import CommitFailed, DocumentKey, Store, StoreConfig, open_store
from tapster.actors.system import SystemClock

WRITERS = 8
TURNS = 30


async def write_on(store: Store, writer: int, acknowledged: set[str], failures: list[CommitFailed]) -> None:
    """Write documents until each is acknowledged; make room again after some failures."""
    for turn in range(TURNS):
        name = f"{writer}-{turn}"
        while name not in acknowledged:
            try:
                await store.put_document(DocumentKey("chats", name), {"pad": "x" * 2_000})
                acknowledged.add(name)
            except CommitFailed as error:
                failures.append(error)
                if len(failures) > 40:
                    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


async def main(*arguments: str) -> None:
    """Fill the disk in mid-burst, and go on in the same process once there is room."""
    engine: Any = arguments[0]
    folder = Path(arguments[1])
    acknowledged: set[str] = set()
    failures: list[CommitFailed] = []
    async with open_store(StoreConfig(folder, engine), clock=SystemClock()) as store:
        await store.put_document(DocumentKey("chats", "first"), {"n": 1})
        limit = 1_000 if engine == "files" else 200_000
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        async with trio.open_nursery() as nursery:
            for writer in range(WRITERS):
                nursery.start_soon(write_on, store, writer, acknowledged, failures)
        stored = {document.key.name for document in await store.documents("chats")}
        problems = await store.check()
    print(len(failures) > 0, stored == acknowledged | {"first"}, problems == (), failures[0].message)


if __name__ == "__main__":
    trio.run(main, *sys.argv[1:3])
