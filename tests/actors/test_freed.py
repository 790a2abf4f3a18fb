"""Sessions of every kind are freed when they end, without a collection of cycles."""

from pathlib import Path

import pytest
import trio
import trio.testing

from tapster.actors.providers.scripted import Pause
from tests.support.freed import objects_of_ours_in_cycles
from tests.support.strategies import INPUT, RULES, Stage, open_stage


async def live(stage: Stage, name: str, backend: str | None) -> None:
    """Turns, previews, a fork, a subagent and a cancelled turn; then all of them end."""
    await stage.begin(name)
    if backend is not None:
        await stage.use(backend, *RULES, INPUT, session_id=name)
    host = stage.tapster.host
    await stage.say("The harbour bell rings.", name)
    await stage.say("Again.", name)
    await stage.tapster.preview(name, "And again?")
    await (await host.fork(name, f"{name}-fork")).when_idle()
    await host.delegate(name, f"{name}-child")
    stage.provider.add([Pause(3600)])
    handle = await stage.tapster.open_session(name)
    await handle.followup("Take your time.")
    await trio.testing.wait_all_tasks_blocked(0.05)
    await handle.cancel()
    await handle.when_idle()
    for each in (name, f"{name}-fork", f"{name}-child"):
        await host.close(each)
    await trio.testing.wait_all_tasks_blocked(0.02)


@pytest.mark.parametrize("backend", [None, "native", "core"])
async def test_a_session_leaves_no_object_of_ours_to_the_collector(tmp_path: Path, backend: str | None) -> None:
    async with open_stage(tmp_path) as stage:
        await live(stage, "first", backend)
        with objects_of_ours_in_cycles() as left:
            for number in range(2):
                await live(stage, f"s-{number}", backend)
    assert not left
