"""A process that makes one durable write and is killed at a chosen point of it; see ``store_lab``."""

import sys
from pathlib import Path

import msgspec
import trio

from tapster.actors.store import ANY_BASE, StoreConfig, open_store
from tapster.actors.system import SystemClock
from tests.support.store_documents import key_of
from tests.support.store_lab import die_at_file_limit, dying_engine


async def write() -> None:
    """Do as ordered on standard input; the acknowledgement goes to standard output."""
    name, folder, document, value, base, point = msgspec.msgpack.decode(sys.stdin.buffer.read())
    config = StoreConfig(Path(folder), name)
    async with open_store(config, clock=SystemClock(), engine=lambda: dying_engine(name, Path(folder), point)) as store:
        given = ANY_BASE if base == ["any"] else base
        await store.put_document(key_of(document), value, base=given)
        sys.stdout.write("acknowledged")
        sys.stdout.flush()


if __name__ == "__main__":
    die_at_file_limit()
    trio.run(write)
