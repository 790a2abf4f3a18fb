"""Small real parts for tests of hosts: counting ids, a clock on trio's time, and a host that is ready to go."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import attrs
import trio

from tapster.actors.hosts import MemorySessionLog, SessionLog
from tapster.actors.hosts.embedded import Agent, AgentOptions, EmbeddedHost, ToolRegistry, open_embedded_host
from tapster.actors.providers import ScriptedProvider
from tapster.engine.ecma import Json
from tapster.engine.projection import Event

OPTIONS = AgentOptions("prov", "mod")


@attrs.define
class CountingIds:
    """Ids that count: ``m-1``, ``m-2``, ..."""

    last: int = 0

    def uuid(self) -> str:
        self.last += 1
        return f"m-{self.last}"

    def token(self, size_bytes: int) -> str:
        self.last += 1
        return f"{self.last:0{2 * size_bytes}x}"


class TrioClock:
    """Epoch milliseconds from trio's clock, so that virtual time shows in events."""

    def now_ms(self) -> int:
        return round(trio.current_time() * 1000)


@attrs.define
class Rig:
    """A host with everything it stands on."""

    host: EmbeddedHost
    provider: ScriptedProvider
    log: SessionLog
    reports: list[tuple[str, str, dict[str, object]]]

    def agent(self, session_id: str = "s") -> Agent:
        agent = self.host.agent(session_id)
        assert agent is not None
        return agent

    def events(self, session_id: str = "s") -> list[Event]:
        return list(self.agent(session_id).log.events)

    def types(self, session_id: str = "s", since: int = 0) -> list[str]:
        return [event.type for event in self.events(session_id)[since:]]

    def last_end(self, session_id: str = "s") -> Json:
        ends = [event for event in self.events(session_id) if event.type == "turn/end"]
        return ends[-1].data["reason"]


@asynccontextmanager
async def open_rig(
    provider: ScriptedProvider | None = None,
    log: SessionLog | None = None,
    tools: ToolRegistry | None = None,
    *,
    first_id: int = 0,
    idle_s: float | None = None,
) -> AsyncIterator[Rig]:
    """An embedded host over a scripted provider and a memory log."""
    provider = provider or ScriptedProvider()
    log = log or MemorySessionLog()
    reports: list[tuple[str, str, dict[str, object]]] = []

    def report(level: str, event: str, **fields: object) -> None:
        reports.append((level, event, fields))

    async with open_embedded_host(
        log,
        {"prov": provider},
        options=OPTIONS,
        tools=tools,
        clock=TrioClock(),
        ids=CountingIds(first_id),
        report=report,
        jitter=lambda: 0.5,
        idle_s=idle_s,
    ) as host:
        yield Rig(host, provider, log, reports)
