"""The embedded host: sessions created, opened, forked and delegated, each an agent of its own.

Source: spec/dsh_host §9, §14; design §4, §6.
"""

import heapq
import random
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final, final
from weakref import WeakValueDictionary

import attrs
import trio

from tapster.actors.hosts.port import (
    SessionExists,
    SessionLog,
    SessionNotFound,
)
from tapster.actors.providers import Provider, Providers
from tapster.actors.system import SystemClock, SystemIds
from tapster.engine.ecma import Json
from tapster.engine.errors import TapsterError
from tapster.engine.projection import Event, LoggedSession, SessionHeader, fork_cut, fork_seed
from tapster.runtime import (
    Child,
    Clock,
    Draining,
    Ids,
    LogSink,
    Overloaded,
    Restart,
    RuntimeFault,
    Supervisor,
    declared_leaf,
    open_supervisor,
    silent,
)

from .actor import AgentActor, Birth
from .agent import Agent, AgentOptions, HostParts
from .handle import AgentHandle
from .hooks import Cancelled, Hooks, Origin
from .prompt import PromptRegistry
from .retry import RetryPolicy
from .session import EmbeddedSession
from .tools import ToolRegistry

RESTART: Final = Restart(intensity=3, period_s=60.0, exceeded="quarantine")
"""An agent that crashes on the same log again and again stays down until someone resets it (design §4 rule 7)."""
SUBAGENT: Final = "subagent"
MAX_LIVE: Final = 2048
EVICTED_SHARE: Final = 16
"""A full house puts one in so many to sleep at once, so that looking for them is paid for once in a while."""


@asynccontextmanager
async def open_embedded_host(
    log: SessionLog,
    providers: Mapping[str, Provider],
    *,
    options: AgentOptions,
    tools: ToolRegistry | None = None,
    clock: Clock | None = None,
    ids: Ids | None = None,
    report: LogSink = silent,
    jitter: Callable[[], float] = random.random,
    idle_s: float | None = None,
    max_live: int = MAX_LIVE,
) -> AsyncIterator["EmbeddedHost"]:
    """A host for the length of a block; its turns are aborted (``disposed``) and written when it ends.

    Args:
        log: where session logs are kept.
        providers: model providers by name.
        options: provider and model of sessions that don't choose their own.
        tools: what models may call; none by default.
        clock: the wall clock of event times.
        ids: where message ids come from.
        report: takes what went wrong in hooks and writes, without any text of a prompt.
        jitter: varies the delay of retries.
        idle_s: an agent that nobody asked or listens to for so long ends; the next message brings it back. None
            keeps agents until they are closed.
        max_live: agents awake at once; one more puts those to sleep that nobody has used for longest.
    """
    hooks = Hooks(report)
    hooks.request_error.add(RetryPolicy(jitter).listen)
    parts = HostParts(
        Providers(dict(providers)),
        tools or ToolRegistry(),
        PromptRegistry(),
        hooks,
        clock or SystemClock(),
        ids or SystemIds(),
        report,
    )
    async with open_supervisor(report) as supervisor:
        host = EmbeddedHost(parts, options, log, supervisor, idle_s, max_live)
        try:
            yield host
        finally:
            host.is_closing = True


@final
@attrs.define(eq=False)
class EmbeddedHost:
    """Sessions, and what all of them share; made by ``open_embedded_host``.

    Attributes:
        parts: hooks, prompt registry, tools and providers, for those who listen in.
        is_closing: whether it starts no more agents.
    """

    parts: HostParts
    options: AgentOptions
    _log: SessionLog
    _supervisor: Supervisor
    _idle_s: float | None = None
    _max_live: int = MAX_LIVE
    is_closing: bool = False
    _live: dict[str, AgentHandle] = attrs.field(factory=dict)
    _handles: WeakValueDictionary[str, AgentHandle] = attrs.field(factory=WeakValueDictionary)
    """A session's only handle, as long as it lives or somebody holds it."""
    _actors: dict[str, AgentActor] = attrs.field(factory=dict)
    _opening: dict[str, trio.Lock] = attrs.field(factory=dict)
    _coming: set[str] = attrs.field(factory=set)

    def __attrs_post_init__(self) -> None:
        self.parts.hooks.cancelled.add(self._cancel_children)

    @property
    def hooks(self) -> Hooks:
        """The hooks of every session."""
        return self.parts.hooks

    @property
    def prompt(self) -> PromptRegistry:
        """Sections, contexts and variables of every session."""
        return self.parts.prompt

    @property
    def tools(self) -> ToolRegistry:
        """The tools of every session."""
        return self.parts.tools

    @property
    def live(self) -> tuple[AgentHandle, ...]:
        """The sessions that are open."""
        return tuple(handle for handle in self._live.values() if handle.is_live)

    async def create(
        self,
        session_id: str | None = None,
        *,
        cwd: str | None = None,
        options: AgentOptions | None = None,
        first_events: Sequence[tuple[str, Json]] = (),
    ) -> AgentHandle:
        """Begin a session.

        Raises:
            SessionExists: the id is taken.
            TapsterError: its start failed; nothing of it was stored.
        """
        header = self._header(session_id or self.parts.ids.uuid(), cwd=cwd)
        return await self._begin(header, "new", options, first_events=first_events)

    async def open(self, session_id: str, *, options: AgentOptions | None = None) -> AgentHandle:
        """The live session of that id, resumed from its log if need be; opened once for all who wait.

        Raises:
            SessionNotFound: no such session.
            TapsterError: its start failed.
        """
        async with self._lock(session_id):
            handle = self._live.get(session_id)
            if handle is not None and handle.is_live:
                return handle
            await self._wait_gone(session_id)
            return await self._start(Birth(session_id, "resume", options or self.options))

    async def fork(
        self,
        parent_id: str,
        session_id: str | None = None,
        *,
        at_seq: int | None = None,
        cut: int | None = None,
        options: AgentOptions | None = None,
    ) -> AgentHandle:
        """Begin a session with a copy of another's events.

        Args:
            parent_id: whose events are copied.
            session_id: the child's id, else a new one.
            at_seq: fork at the end of the turn at or after this event.
            cut: the exact last event to copy; it must not lie in an open turn.
            options: provider and model of the child.

        Raises:
            SessionNotFound: no such parent.
            SessionForkError: ``OPEN_TURN`` or ``FORK_OUT_OF_RANGE``.
            TapsterError: its start failed; nothing of it was stored.
        """
        parent = await self.read(parent_id)
        place = fork_cut(parent.events, at_seq) if cut is None else cut
        seed = fork_seed(parent.events, place)
        header = attrs.evolve(
            self._header(session_id or self.parts.ids.uuid(), cwd=parent.header.cwd),
            parent_session=parent_id,
            seed_length=len(seed),
            is_seeded=True,
            delegation_depth=parent.header.delegation_depth,
            origin=parent.header.origin,
        )
        return await self._begin(header, "fork", options, seed=seed)

    async def delegate(
        self, parent_id: str, session_id: str | None = None, *, options: AgentOptions | None = None
    ) -> AgentHandle:
        """Begin a subagent's session below another; cancelling the parent cancels it too.

        Raises:
            SessionNotFound: no such parent.
            TapsterError: its start failed; nothing of it was stored.
        """
        parent = (await self._log.read(parent_id, limit=0)).header
        header = attrs.evolve(
            self._header(session_id or self.parts.ids.uuid(), cwd=parent.cwd),
            parent_session=parent_id,
            delegation_depth=parent.delegation_depth + 1,
            origin=SUBAGENT,
        )
        return await self._begin(header, "delegate", options)

    async def close(self, session_id: str) -> None:
        """End a live session; its log stays and it can be opened again."""
        async with self._lock(session_id):
            handle = self._handles.pop(session_id, None) or self._live.get(session_id)
            if handle is not None:
                await handle.end()

    async def read(self, session_id: str) -> LoggedSession:
        """A session's stored log, with everything a live one has appended so far.

        Raises:
            SessionNotFound: no such session.
        """
        handle = self._live.get(session_id)
        if handle is not None and handle.is_live:
            await handle.flush()
        return await self._log.read(session_id)

    async def headers(self) -> tuple[SessionHeader, ...]:
        """The headers of all sessions, newest first."""
        return await self._log.headers()

    def session(self, session_id: str) -> "EmbeddedSession":
        """A session as the host port shows it, live or not; it is looked up when asked."""
        return EmbeddedSession(session_id, self._log, self.parts.providers, lambda: self.agent(session_id))

    def agent(self, session_id: str) -> Agent | None:
        """The live agent of a session, for those who read its state in step with its hooks."""
        handle = self._live.get(session_id)
        actor = self._actors.get(session_id)
        return actor.agent if handle is not None and handle.is_live and actor is not None else None

    def _header(self, session_id: str, *, cwd: str | None) -> SessionHeader:
        return SessionHeader(session_id, self.parts.clock.now_ms(), cwd=cwd)

    async def _begin(
        self,
        header: SessionHeader,
        origin: Origin,
        options: AgentOptions | None,
        *,
        seed: tuple[Event, ...] = (),
        first_events: Sequence[tuple[str, Json]] = (),
    ) -> AgentHandle:
        async with self._lock(header.id):
            live = self._live.get(header.id)
            if live is not None and live.is_live:
                raise SessionExists(header.id)
            await self._wait_gone(header.id)
            await self._check_free(header.id)
            chosen = options or self.options
            return await self._start(Birth(header.id, origin, chosen, header, seed, tuple(first_events)))

    async def _wait_gone(self, session_id: str) -> None:
        """Wait for the end of an agent that is being closed: a log has one writer at a time."""
        handle = self._live.get(session_id)
        if handle is not None:
            await handle.child.wait_gone()

    async def _check_free(self, session_id: str) -> None:
        try:
            await self._log.read(session_id, limit=0)
        except SessionNotFound:
            return
        raise SessionExists(session_id)

    async def _start(self, birth: Birth) -> AgentHandle:
        if self.is_closing:
            raise Draining
        self._coming.add(birth.session_id)
        try:
            await self._make_room()
            return await self._start_actor(birth)
        finally:
            self._coming.discard(birth.session_id)

    async def _start_actor(self, birth: Birth) -> AgentHandle:
        births = [birth]

        def make() -> AgentActor:
            now = births.pop() if births else Birth(birth.session_id, "resume", birth.options)
            actor = self._actors[birth.session_id] = AgentActor(
                now, self.parts, self._log, self._idle_s, self._forget_actor
            )
            return actor

        def forget(child: Child) -> None:
            known = self._live.get(birth.session_id)
            if known is not None and known.child is child:
                del self._live[birth.session_id]

        try:
            child = await self._supervisor.start(f"agent:{birth.session_id}", make, RESTART, on_gone=forget)
        except BaseExceptionGroup as group:
            raise declared_leaf(group, (TapsterError, RuntimeFault)) from group
        handle = self._handles.setdefault(birth.session_id, AgentHandle(birth.session_id, self, child))
        handle.child = child
        self._live[birth.session_id] = handle
        return handle

    async def _make_room(self) -> None:
        """Put the longest unused agents to sleep when the house is full.

        Raises:
            Overloaded: every agent is at work or listened to.
        """
        if self._house <= self._max_live:
            return
        unused = [actor for actor in self._actors.values() if actor.is_unused]
        count = max(self._house - self._max_live, self._max_live // EVICTED_SHARE)
        for actor in heapq.nsmallest(count, unused, key=lambda actor: actor.used_at):
            if await actor.may_sleep():
                actor.finish()
                handle = self._live.get(actor.session_id)
                if handle is not None:
                    await handle.child.wait_gone()
        if self._house > self._max_live:
            raise Overloaded("the house of live sessions")

    @property
    def _house(self) -> int:
        """Agents awake, with those that are about to be."""
        return len(self._actors.keys() | self._coming)

    def _forget_actor(self, actor: AgentActor) -> None:
        if self._actors.get(actor.session_id) is actor:
            del self._actors[actor.session_id]

    def _lock(self, session_id: str) -> trio.Lock:
        for known, lock in tuple(self._opening.items()):
            if not lock.locked() and known != session_id:
                del self._opening[known]
        return self._opening.setdefault(session_id, trio.Lock())

    def _cancel_children(self, cancelled: Cancelled) -> None:
        for session_id in tuple(self._live):
            child = self.agent(session_id)
            if child is not None and _is_subagent(child.header, cancelled.agent.id):
                child.cancel({"kind": "parent"})


def _is_subagent(header: SessionHeader, parent_id: str) -> bool:
    return header.origin == SUBAGENT and header.parent_session == parent_id
