"""The process that a crash test kills: an embedded host over a real store, stuck in a tool or streaming for ever.

Usage: python -m tests.support.host_victim DIRECTORY tool|stream; it prints a line once it may be killed.
"""

import math
import sys
from pathlib import Path

import trio

from tapster.actors.hosts.embedded import AgentOptions, Tool, ToolExecution, ToolRegistry, open_embedded_host
from tapster.actors.hosts.stored_log import StoredSessionLog
from tapster.actors.providers import Pause, ScriptedProvider
from tapster.actors.providers.scripted import calls, says
from tapster.actors.store import StoreConfig, open_store
from tapster.actors.system import SystemClock


async def main(directory: str, mode: str) -> None:
    provider = ScriptedProvider()
    script = says("The storm came over")
    tool = calls(("c-1", "read", "{}"), ("c-2", "read", "{}"))
    provider.add(says("One."), tool if mode == "tool" else [*script[:3], Pause(math.inf)])
    tools = ToolRegistry()

    all_queued = trio.Event()

    async def body(execution: ToolExecution) -> str:
        await all_queued.wait()
        print("kill me", flush=True)
        await trio.sleep_forever()

    tools.add(Tool("read", "Reads.", {"type": "object"}, body))
    async with (
        open_store(StoreConfig(Path(directory)), clock=SystemClock()) as store,
        open_embedded_host(
            StoredSessionLog(store), {"p": provider}, options=AgentOptions("p", "m"), tools=tools
        ) as host,
    ):
        handle = await host.create("s")
        await handle.followup("first")
        await handle.when_idle()
        await handle.followup("second")
        await handle.followup("still waiting")
        all_queued.set()
        if mode == "stream":
            print("kill me", flush=True)
        await trio.sleep_forever()


if __name__ == "__main__":
    trio.run(main, sys.argv[1], sys.argv[2])
