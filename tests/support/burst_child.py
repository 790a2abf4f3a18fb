"""A process that writes without pause and says which writes were acknowledged, until someone kills it."""

import os
import sys
from pathlib import Path
from typing import Any

import trio

from tapster.actors.store import (
    AppendEvents,
    DocumentKey,
    PutTrace,
    SessionKey,
    Store,
    StoreConfig,
    Together,
    open_store,
)
from tapster.actors.system import SystemClock

WRITERS = 12


async def write_on(store: Store, round_number: str, writer: int) -> None:
    """Append events, a trace and a document in turn; each acknowledgement is one line on standard output."""
    key = SessionKey("embedded", f"s-{round_number}-{writer}")
    await store.create_session(key, {"id": key.session})
    seq = 0
    while True:
        pad = os.urandom(600).hex()
        record = {"schemaVersion": 4, "id": str(seq), "sessionId": key.session, "pad": pad}
        events = [{"type": "note", "seq": seq, "data": pad}, {"type": "note", "seq": seq + 1, "data": pad}]
        await store.write(Together([AppendEvents(key, seq, events, seq), PutTrace(key, record)]))
        seq += 2
        await store.put_document(DocumentKey("chats", f"chat-{key.session}"), {"seq": seq, "pad": pad})
        os.write(1, f"{key.session} {seq}\n".encode())


async def main(*arguments: str) -> None:
    """Burst until killed; engine, folder and number of the round are given."""
    engine: Any
    engine, folder, round_number = arguments
    async with (
        open_store(StoreConfig(Path(folder), engine), clock=SystemClock()) as store,
        trio.open_nursery() as nursery,
    ):
        os.write(1, b"ready\n")
        for writer in range(WRITERS):
            nursery.start_soon(write_on, store, round_number, writer)


if __name__ == "__main__":
    trio.run(main, *sys.argv[1:4])
