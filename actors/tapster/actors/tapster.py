"""The root: opens everything in order, hands out what programs need, and closes in reverse.

Source: design §4; style §1 "an application is a context manager of context managers".
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final, final

import attrs
import trio

from tapster.actors.admission import Admission, AdmissionLimits
from tapster.actors.hosts.embedded import (
    AgentHandle,
    AgentOptions,
    EmbeddedHost,
    ToolRegistry,
    open_embedded_host,
)
from tapster.actors.hosts.port import HostSession, Inspection, SessionExists, SessionNotFound
from tapster.actors.hosts.stored_log import StoredSessionLog
from tapster.actors.library import Library, open_library
from tapster.actors.providers import OpenAiSettings, Provider, open_configured_provider
from tapster.actors.scripts import open_regex_engine
from tapster.actors.session import (
    Assembled,
    EmbeddedTavern,
    Preview,
    RequestRp,
    RpAnswer,
    SessionPorts,
    Sessions,
)
from tapster.actors.session.alerts import RpAlerts
from tapster.actors.session.cold import cold_preview
from tapster.actors.session.embedded import embedded_key
from tapster.actors.session.requests import SessionRequests
from tapster.actors.session.strategy import Made
from tapster.actors.sources import Sources
from tapster.actors.sources.embedded import EmbeddedAssembler
from tapster.actors.store import Engine, SessionKey, Store, StoreConfig, WriteUnknown, open_store
from tapster.actors.strategies import Strategies, Variables, Workshop, open_workshop
from tapster.actors.system import SystemClock, SystemIds
from tapster.actors.traces import TraceOutbox, open_trace_outbox
from tapster.engine.activation import ActivationMode, ActivationSettings
from tapster.engine.assembly import AssemblyPreset
from tapster.engine.ecma import Json
from tapster.engine.errors import RequestError, StoreError, TapsterError
from tapster.engine.policy import (
    RpIntent,
    Selection,
    card_bound_intent,
    command_intent,
    commit_rp,
    intent_of,
    required_session_id,
)
from tapster.runtime import (
    ActorGone,
    Clock,
    Ids,
    Lifecycle,
    LogSink,
    LoopMeter,
    Phase,
    Roster,
    RuntimeFault,
    Threads,
    metered_loop,
    open_roster,
    open_supervisor,
    silent,
)

ENGINE_THREADS: Final = 2
"""Assemblies computed at once: the interpreter lets one run at a time, the second overlaps its native scans."""
PROVIDER: Final = "default"


class AgentRunning(RequestError):
    """A selection can't be changed while its agent runs; ``code`` names the resource's kind."""

    code = "AGENT_RUNNING"
    kind = "Error"
    status = 409


@attrs.frozen
class TapsterConfig:
    """What a program decides when it opens Tapster.

    Attributes:
        provider: the model server; None means every request fails until one is set.
        model: what to ask it for.
        session_mode: how new sessions activate world books, unless whoever makes one says otherwise.
        max_live_sessions: sessions awake at once; one more puts the longest unused to sleep.
        idle_s: a session that nobody uses for so long is put to sleep; None keeps it awake.
        admission: how much may be under way at the borders, for one session and for all.
    """

    store: StoreConfig
    provider: OpenAiSettings | None = None
    model: str = "default"
    session_mode: ActivationMode = "sillytavern"
    max_live_sessions: int = 2048
    idle_s: float | None = 900.0
    admission: AdmissionLimits = attrs.Factory(AdmissionLimits)

    @classmethod
    def in_directory(cls, directory: Path) -> TapsterConfig:
        """The defaults over a data folder."""
        return cls(StoreConfig(directory))


@asynccontextmanager
async def open_tapster(
    config: TapsterConfig,
    *,
    clock: Clock | None = None,
    ids: Ids | None = None,
    log: LogSink = silent,
    tools: ToolRegistry | None = None,
    provider: Provider | None = None,
    engine: Callable[[], Engine] | None = None,
    jitter: Callable[[], float] = random.random,
) -> AsyncIterator[Tapster]:
    """Tapster for the length of a block.

    Args:
        provider: takes the place of the configured model server.
        engine: opens another storage engine than the configured one.
        jitter: varies the delay of retries.

    Raises:
        StoreError: the data can't be used; the message names it.
    """
    clock, ids, regex = clock or SystemClock(), ids or SystemIds(), open_regex_engine()
    with open_roster() as roster, metered_loop() as meter:
        async with (
            open_store(config.store, clock=clock, engine=engine, log=log) as store,
            open_library(store, clock=clock, ids=ids, log=log) as library,
            open_trace_outbox(store, log) as outbox,
            open_workshop(store, ids, library.counters, regex, log) as workshop,
            open_supervisor(log) as supervisor,
            open_configured_provider(config.provider, provider) as model,
            open_embedded_host(
                StoredSessionLog(store),
                {PROVIDER: model},
                options=AgentOptions(PROVIDER, config.model, cwd=str(config.store.directory)),
                tools=tools,
                clock=clock,
                ids=ids,
                report=log,
                jitter=jitter,
                idle_s=config.idle_s,
                max_live=config.max_live_sessions,
            ) as host,
        ):
            ports = SessionPorts(
                library.sessions, outbox, regex, Threads("engine", ENGINE_THREADS), clock, ids, workshop
            )
            sessions = Sessions(supervisor, ports, max_live=config.max_live_sessions)
            requests = SessionRequests(host, sessions, ports)
            assembler = EmbeddedAssembler(host, requests, workshop.sources.strategies, workshop.capabilities)
            requests.assembler = assembler
            tavern = EmbeddedTavern(host, sessions, RpAlerts(clock, ids), log, assembler)
            tavern.attach()
            tapster = Tapster(
                config, store, library, outbox, sessions, host, tavern, ports, roster, meter, workshop, requests
            )
            tapster.lifecycle.advance(Phase.READY)
            for warning in store.warnings:
                log("warning", "store.started-without", code=warning.code, subject=warning.subject)
            try:
                yield tapster
            finally:
                tapster.lifecycle.advance(Phase.STOPPING)


@final
@attrs.define(eq=False)
class Tapster:
    """The open runtime; made by ``open_tapster``."""

    config: TapsterConfig
    store: Store
    library: Library
    outbox: TraceOutbox
    sessions: Sessions
    host: EmbeddedHost
    tavern: EmbeddedTavern
    ports: SessionPorts
    roster: Roster
    meter: LoopMeter
    workshop: Workshop
    requests: SessionRequests
    lifecycle: Lifecycle = attrs.field(factory=Lifecycle)
    admission: Admission = attrs.field(init=False)
    opened_at: float = attrs.field(factory=trio.current_time)

    def __attrs_post_init__(self) -> None:
        self.admission = Admission(self.config.admission, ENGINE_THREADS)

    async def open_session(self, session_id: str) -> AgentHandle:
        """The session, woken if it sleeps.

        Raises:
            SessionNotFound: there is none of that id.
            Draining: a shutdown has begun.
            TapsterError: a part of its start failed.
        """
        self.lifecycle.admit()
        return await self.host.open(session_id)

    async def create_session(self, session_id: str | None = None, *, mode: ActivationMode | None = None) -> AgentHandle:
        """A new session.

        Args:
            mode: how it activates world books, None for the configured mode.

        Raises:
            SessionExists: the id is taken.
            Draining: a shutdown has begun.
            TapsterError: a part of its start failed; no log of it is kept unless it is ``WriteUnknown``.
        """
        self.lifecycle.admit()
        session_id = required_session_id(session_id or self.ports.ids.uuid())
        key = embedded_key(session_id)
        if await self.store.session_head(key) is not None:
            return await self.host.create(session_id)
        # First, so that no session is ever there without its mode, whatever becomes of the second write.
        await self.library.activation.change(key, {"mode": mode or self.config.session_mode})
        try:
            return await self.host.create(session_id)
        except (WriteUnknown, SessionExists):
            raise
        except (TapsterError, RuntimeFault):
            await self._forget_unborn(key)  # noqa: ASYNC120 - whoever is cancelled needs no other error
            raise

    async def _forget_unborn(self, key: SessionKey) -> None:
        """Leave nothing of a session that couldn't be created, unless somebody else has created it."""
        # What can't be removed now is a line that nobody reads.
        with suppress(StoreError, RuntimeFault):
            if self.host.agent(key.session) is None and await self.store.session_head(key) is None:
                await self.library.activation.remove(key)

    async def activation_settings(self, session_id: str, patch: Json | None = None) -> ActivationSettings:
        """How a session activates its world books, after a change if a patch is given.

        Raises:
            SessionNotFound: there is none of that id.
            RequestError: a member of the patch doesn't fit; nothing was written.
        """
        await self.host.session(session_id).header()
        if patch is None:
            return await self.library.activation.settings(embedded_key(session_id))
        return await self.library.activation.change(embedded_key(session_id), patch)

    async def preview(self, session_id: str, draft: str | None = None) -> Assembled:
        """What a session would send now (with a draft message, if one is given); nothing is recorded or changed.

        A session that sleeps isn't woken, and one that the host doesn't know is taken as empty.
        """
        self.lifecycle.admit()
        key = embedded_key(session_id)
        agent = self.host.agent(session_id)
        if agent is not None:
            try:
                answer: Assembled = await self.sessions.ask(key, agent.session, Preview(draft))
                return answer
            except ActorGone as gone:
                # Put to sleep in this very moment: then it is looked at as it sleeps.
                if gone.taken:
                    raise
        with self.requests.reading(session_id):
            return await cold_preview(key, await self._cold(session_id), self.ports, draft)

    @property
    def sources(self) -> Sources:
        """The sources of requests; ``async with tapster.sources.registered(source)`` adds one for a block."""
        return self.workshop.sources

    @property
    def strategies(self) -> Strategies:
        """The strategies, and which one each session has applied."""
        return self.workshop.strategies

    @property
    def variables(self) -> Variables:
        """The variables of sessions."""
        return self.workshop.variables

    async def apply_strategy(self, session_id: str, preset_id: str | None) -> AssemblyPreset | None:
        """Copy a strategy, as it is now, to a session; None is deliberately off. A session may be begun later.

        Raises:
            AgentRunning: the session's agent is at work.
            AssemblyRefused: there is no such strategy (404), or it can't run here (409).
        """
        self._refuse_running(session_id, {})
        return await self.requests.apply(session_id, preset_id)

    async def preview_request(
        self, session_id: str, draft: str | None = None, preset: AssemblyPreset | None = None
    ) -> Made:
        """What a session would send now by its strategy, or by another one; nothing is recorded or changed.

        A session that sleeps isn't woken, and one that the host doesn't know is taken as empty; neither has official
        sections.

        Raises:
            NoStrategy: the session has none, and none is given.
            TapsterError: the request would be refused.
        """
        self.lifecycle.admit()
        return await self.requests.preview(session_id, draft, preset)

    async def history(self, session_id: str) -> Inspection:
        """One cold look at a session's log; it wakes nobody.

        Raises:
            SessionNotFound: the history is gone.
        """
        return await self.host.session(session_id).inspect()

    async def select(self, session_id: str, patch: Mapping[str, Json]) -> Selection:
        """Bind resources to a session; a card that comes or goes may switch RP mode.

        Raises:
            AgentRunning: the session's agent is at work.
            ResourceNotFound: something named doesn't exist; nothing was written.
        """
        self._refuse_running(session_id, patch)
        key = embedded_key(session_id)
        before = await self.library.selections.get(key)
        after = await self.library.selections.select(key, patch)
        await self._follow_card(session_id, before, after)
        return after

    async def roleplay(self, session_id: str, active: bool | None = None) -> RpAnswer:
        """RP mode of a session; a bool switches it as ``/rp`` and ``/rp off`` do."""
        wanted = None if active is None else command_intent(on=active)
        return await self._request_rp(session_id, wanted)

    def is_running(self, session_id: str) -> bool:
        """Whether the session's agent is at work."""
        agent = self.host.agent(session_id)
        return agent is not None and agent.status.value == "running"

    def _refuse_running(self, session_id: str, patch: Mapping[str, Json]) -> None:
        if not self.is_running(session_id):
            return
        kinds = (
            ("presetId", "PRESET"),
            ("characterCardId", "CHARACTER"),
            ("character", "CHARACTER"),
            ("userId", "USER"),
            ("worldBookIds", "WORLD_BOOK"),
        )
        kind = next((word for member, word in kinds if member in patch), "SESSION")
        raise AgentRunning(
            f"session {session_id} is answering; wait until it is idle or cancel it", code=f"{kind}_AGENT_RUNNING"
        )

    async def _follow_card(self, session_id: str, before: Selection, after: Selection) -> None:
        with self.requests.reading(session_id) as key:
            bound = await self.library.sessions.bound(key)
        intent = card_bound_intent(
            after.rp,
            previous=before.character_card_id,
            card=after.character_card_id,
            follow=bound.follow_character,
        )
        if intent is not None:
            await self._request_rp(session_id, intent)

    async def _request_rp(self, session_id: str, wanted: RpIntent | None) -> RpAnswer:
        key = embedded_key(session_id)
        agent = self.host.agent(session_id)
        if agent is None:
            return await self._stored_rp(session_id, wanted)
        answer: RpAnswer = await self.sessions.ask(key, agent.session, RequestRp(wanted))
        if answer.sandbox is not None:
            handle = await self.host.open(session_id)
            await handle.append("sandbox/mode", {"mode": answer.sandbox})
        return answer

    async def _stored_rp(self, session_id: str, wanted: RpIntent | None) -> RpAnswer:
        """Without a live agent the stored state is written directly."""
        key = embedded_key(session_id)
        stored = (await self.library.selections.get(key)).rp
        if wanted is None or intent_of(stored) == wanted:
            return RpAnswer("noop", stored)
        commit = commit_rp(stored, wanted, None)
        await self.library.selections.save_rp(key, commit.state)
        return RpAnswer("committed", commit.state)

    async def _cold(self, session_id: str) -> HostSession | None:
        session = self.host.session(session_id)
        try:
            await session.header()
        except SessionNotFound:
            return None
        return session
