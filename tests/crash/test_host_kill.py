"""A real process of the embedded host, killed in mid-turn; what it acknowledged is there and is repaired."""

import subprocess
import sys
from pathlib import Path

import pytest

from tapster.actors.hosts.embedded import AgentOptions, open_embedded_host
from tapster.actors.hosts.stored_log import StoredSessionLog
from tapster.actors.providers import ScriptedProvider
from tapster.actors.store import StoreConfig, open_store
from tapster.actors.system import SystemClock
from tapster.engine.projection import derive_messages

ROOT = Path(__file__).resolve().parents[2]


def kill_a_host(directory: Path, mode: str) -> None:
    command = [sys.executable, "-m", "tests.support.host_victim", str(directory), mode]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "kill me\n"
        process.kill()
        process.wait(10)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["tool", "stream"])
async def test_a_killed_host_comes_back_repaired_and_goes_on(tmp_path: Path, mode: str) -> None:
    kill_a_host(tmp_path, mode)
    provider = ScriptedProvider()
    async with (
        open_store(StoreConfig(tmp_path), clock=SystemClock()) as store,
        open_embedded_host(StoredSessionLog(store), {"p": provider}, options=AgentOptions("p", "m")) as host,
    ):
        handle = await host.open("s")
        events = (await host.read("s")).events
        assert [event.seq for event in events] == list(range(len(events)))
        assert [event.data["reason"]["kind"] for event in events if event.type == "turn/end"] == [
            "completed",
            "interrupted",
        ]
        codes = [event.data["error"]["code"] for event in events if event.type == "tool/result"]
        assert codes == (["TOOL_OUTCOME_UNKNOWN", "TOOL_ABORTED_BEFORE_DISPATCH"] if mode == "tool" else [])
        said = [message["content"][0].get("text") for message in derive_messages(events)]
        assert said[:3] == ["first", "One.", "second"]
        await handle.steer("go on")
        await handle.when_idle()
        last = provider.requests[-1].messages
        assert [message["content"][0]["text"] for message in last[-2:]] == ["go on", "still waiting"]
