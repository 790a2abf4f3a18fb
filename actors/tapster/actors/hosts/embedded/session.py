"""A session of the embedded host behind the ``HostSession`` port: from memory while it lives, else from the store.

Nothing here asks the agent's actor (design §4 rule 11): what is appended never changes, so reading it is safe.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, final

import attrs
import trio

from tapster.actors.hosts.port import HostError, Inspection, Page, SessionLog, page_bounds
from tapster.actors.providers import CallConfig, PreparedCall, Providers
from tapster.engine.policy import SandboxMode
from tapster.engine.projection import Event, SessionHeader, closers
from tapster.runtime import ActorGone

from .history import LiveLog

if TYPE_CHECKING:
    from .agent import Agent

SANDBOX_MODE: Final = "sandbox/mode"


@final
@attrs.define(eq=False)
class LiveSession:
    """A live session, its newest events included; also usable while the session is only starting."""

    _log: LiveLog
    _providers: Providers

    @property
    def session_id(self) -> str:
        """The session's id."""
        return self._log.header.id

    async def header(self) -> SessionHeader:
        """As ``HostSession.header``.

        Raises:
            ActorGone: its agent has ended; nothing new may be built on this log.
        """
        await trio.lowlevel.checkpoint()
        if self._log.is_closed:
            raise ActorGone(f"agent:{self.session_id}", taken=False)
        return self._log.header

    async def own_events(self, since: int = 0) -> Sequence[Event]:
        """As ``HostSession.own_events``."""
        await trio.lowlevel.checkpoint()
        return self._log.own_events(since)

    async def inspect(self, through: int | None = None) -> Inspection:
        """As ``HostSession.inspect``; an open turn is shown open, for it is."""
        await trio.lowlevel.checkpoint()
        return Inspection(self._log.header.to_json(), _through(self._log.events, through))

    async def page(self, before: int | None = None, limit: int = 200) -> Page:
        """As ``HostSession.page``."""
        await trio.lowlevel.checkpoint()
        return page_of(self._log.events, before, limit)

    async def resolve_call_config(self, config: CallConfig) -> PreparedCall:
        """As ``HostSession.resolve_call_config``."""
        return await resolve(self._providers, config)

    async def set_sandbox(self, mode: SandboxMode) -> None:
        """Append ``sandbox/mode``; it is durable with the session's next checkpoint."""
        self._log.append(SANDBOX_MODE, {"mode": mode})
        await trio.lowlevel.checkpoint()


@final
@attrs.define(eq=False)
class EmbeddedSession:
    """A session of the host, live or not, looked up at each call."""

    session_id: str
    _store: SessionLog
    _providers: Providers
    _agent: Callable[[], "Agent | None"]

    async def header(self) -> SessionHeader:
        """As ``HostSession.header``."""
        agent = self._agent()
        if agent is not None:
            return await agent.session.header()
        return (await self._store.read(self.session_id, limit=0)).header

    async def own_events(self, since: int = 0) -> Sequence[Event]:
        """As ``HostSession.own_events``."""
        agent = self._agent()
        if agent is not None:
            return await agent.session.own_events(since)
        seed_length = (await self._store.read(self.session_id, limit=0)).header.seed_length
        return (await self._store.read(self.session_id, max(since, seed_length))).events

    async def inspect(self, through: int | None = None) -> Inspection:
        """As ``HostSession.inspect``; without a cut a cold one also shows what a resume would close."""
        agent = self._agent()
        if agent is not None:
            return await agent.session.inspect(through)
        stored = await self._store.read(self.session_id, limit=None if through is None else through + 1)
        is_whole = through is None or len(stored.events) <= through
        events = (*stored.events, *closers(stored.events)) if is_whole else stored.events
        return Inspection(stored.header.to_json(), _through(events, through))

    async def page(self, before: int | None = None, limit: int = 200) -> Page:
        """As ``HostSession.page``."""
        agent = self._agent()
        if agent is not None:
            return await agent.session.page(before, limit)
        return await self._store.page(self.session_id, before, limit)

    async def resolve_call_config(self, config: CallConfig) -> PreparedCall:
        """As ``HostSession.resolve_call_config``."""
        return await resolve(self._providers, config)

    async def set_sandbox(self, mode: SandboxMode) -> None:
        """As ``LiveSession.set_sandbox``.

        Raises:
            HostError: ``SESSION_NOT_LIVE``.
        """
        agent = self._agent()
        if agent is None:
            raise HostError(f"session {self.session_id!r} isn't open", code="SESSION_NOT_LIVE")
        await agent.session.set_sandbox(mode)


def page_of(events: Sequence[Event], before: int | None, limit: int) -> Page:
    """The ``limit`` events before seq ``before``, or the newest.

    Raises:
        RequestError: ``INVALID_LIMIT``.
    """
    first, end = page_bounds(len(events), before, limit)
    return Page(tuple(events[first:end]), first > 0)


async def resolve(providers: Providers, config: CallConfig) -> PreparedCall:
    """The config as its provider would send it.

    Raises:
        HostError: ``NO_ADAPTER`` when nobody serves the provider.
        ProviderError: a parameter is refused.
    """
    provider = providers.find(str(config.get("provider")))
    if provider is None:
        raise HostError(f"no provider is registered under the name {config.get('provider')!r}", code="NO_ADAPTER")
    return await provider.prepare(config)


def _through(events: Sequence[Event], through: int | None) -> tuple[Event, ...]:
    return tuple(events if through is None else events[: through + 1])
