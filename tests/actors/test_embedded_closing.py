"""What a session is while its agent ends, and after (spec/dsh_host §9)."""

from collections.abc import Sequence
from typing import Any

import pytest
import trio

from tapster.actors.hosts import MemorySessionLog
from tapster.engine.projection import Event
from tapster.runtime import ActorGone
from tests.support.hosts import open_rig


class SlowLog:
    """A log whose next events take a while."""

    def __init__(self) -> None:
        self.takes_s = 0.0
        self._log: Any = MemorySessionLog()

    async def append(self, session_id: str, events: Sequence[Event]) -> None:
        await trio.sleep(self.takes_s)
        await self._log.append(session_id, events)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)


async def test_while_a_session_closes_it_is_read_and_forked_from_its_log(autojump_clock: object) -> None:
    log: Any = SlowLog()
    async with open_rig(log=log) as rig:
        await rig.host.create("s")
        rig.agent().log.append("sandbox/mode", {"mode": "read-only"})
        log.takes_s = 3
        async with trio.open_nursery() as nursery:
            nursery.start_soon(rig.host.close, "s")
            await trio.sleep(1)
            assert rig.host.live == ()
            assert rig.host.agent("s") is None
            assert (await rig.host.read("s")).header.id == "s"
            assert (await rig.host.fork("s", "child")).is_live


async def test_a_session_whose_close_was_left_opens_again_when_it_is_gone(autojump_clock: object) -> None:
    log: Any = SlowLog()
    async with open_rig(log=log) as rig:
        handle = await rig.host.create("s")
        rig.agent().log.append("sandbox/mode", {"mode": "read-only"})
        log.takes_s = 3
        with trio.move_on_after(1):
            await rig.host.close("s")
        again = await rig.host.open("s")
        log.takes_s = 0
        await again.followup("hello")
        await again.when_idle()
        assert [event.type for event in (await log.read("s")).events].count("sandbox/mode") == 1
        with pytest.raises(ActorGone):
            await handle.followup("closed")


async def test_an_agent_that_has_ended_takes_nothing(autojump_clock: object) -> None:
    async with open_rig() as rig:
        handle = await rig.host.create("s")
        agent = rig.agent()
        await handle.close()
        with pytest.raises(ActorGone):
            agent.followup("nobody would write it")
