"""The actor of one session of the embedded host: its messages, its opening, and its end.

Opening is one awaited step: the log is read (and repaired) or seeded, every ``agent/created`` hook is awaited in
order, and only then is the session stored and served. Whatever fails there fails the opening call.

Source: spec/dsh_host §9, §11 (``agent/created``); design §4 rule 6.
"""

from collections.abc import Callable
from typing import ClassVar, Final, TypeAlias, final

import attrs
import trio

from tapster.actors.hosts.port import HostError, SessionLog
from tapster.engine.ecma import Json
from tapster.engine.errors import FormatError, StoreError, TapsterError
from tapster.engine.projection import LOG_FORMAT, Event, SessionHeader, closers
from tapster.engine.projection.events import END_SEED
from tapster.runtime import Actor, Overloaded, Request, RuntimeFault

from .agent import Agent, AgentOptions, HostParts
from .history import LiveLog
from .hooks import AgentCreated, Origin
from .inbox import Target
from .turn import TurnRunner

MAX_LISTENERS: Final = 64
"""Readers of one session's live events: every tab of a household, and a bound on what an event costs."""


@attrs.frozen
class Followup:
    """Queue a message for a turn of its own and wake; answers with the message once durable."""

    message: Json


@attrs.frozen
class Steer:
    """Queue a message for the next step and wake; answers with the message once durable."""

    message: Json


@attrs.frozen
class Inject:
    """Queue a message for the next step without waking; answers with the message once durable."""

    message: Json


@attrs.frozen
class Send:
    """Steer a running turn, else begin a new one; answers with the message once durable."""

    message: Json


@attrs.frozen
class Prepend:
    """Queue a message before all others of a queue."""

    target: Target
    message: Json


@attrs.frozen
class ReplaceQueued:
    """Put a message in the place of a pending one."""

    message_id: str
    message: Json


@attrs.frozen
class RemoveQueued:
    """Take a pending message out."""

    message_id: str


@attrs.frozen
class Cancel:
    """Stop the turn under way; answers once that is durable, while the turn may still unwind."""

    cause: Json = None
    keep_inbox: bool = False


@attrs.frozen
class WhenIdle:
    """Answers when no turn is under way."""


@attrs.frozen
class Subscribe:
    """Answers with a ``Subscription``; the events after seq ``after`` come first."""

    after: int | None = None


@attrs.frozen
class ReplaceSurface:
    """Put one message in the place of a range of surface nodes; answers with the event once durable."""

    start_seq: int
    end_seq: int
    message: Json


@attrs.frozen
class AppendEvent:
    """Append a log-only event, such as ``sandbox/mode``; answers with it once durable."""

    type: str
    data: Json
    ignorable: bool = False


@attrs.frozen
class Flush:
    """Answers once everything up to now is durable, with the next seq."""


AgentMessage: TypeAlias = (
    Followup
    | Steer
    | Inject
    | Send
    | Prepend
    | ReplaceQueued
    | RemoveQueued
    | Cancel
    | WhenIdle
    | Subscribe
    | ReplaceSurface
    | AppendEvent
    | Flush
)


@attrs.frozen
class Birth:
    """How a session begins: its header and first events, or nothing when it is resumed."""

    session_id: str
    origin: Origin
    options: AgentOptions
    header: SessionHeader | None = None
    seed: tuple[Event, ...] = ()
    first_events: tuple[tuple[str, Json], ...] = ()


@final
class AgentActor(Actor):
    """Owns one session's inbox, log and turns.

    Attributes:
        agent: the session's live state, None before it is open.
        used_at: when the last message came, by trio's clock.
    """

    capacity: ClassVar[int] = 64
    declared: ClassVar[tuple[type[Exception], ...]] = (TapsterError,)
    close_grace_s: ClassVar[float] = 5.0

    def __init__(
        self,
        birth: Birth,
        parts: HostParts,
        store: SessionLog,
        idle_s: float | None = None,
        on_gone: Callable[["AgentActor"], None] = lambda actor: None,
    ) -> None:
        self.name = f"agent:{birth.session_id}"
        self.session_id = birth.session_id
        self.used_at = 0.0
        self._on_gone = on_gone
        self._birth = birth
        self._parts = parts
        self._store = store
        self._idle_s = idle_s
        self._is_driving = False
        self._begun: Agent | None = None
        self.agent: Agent | None = None

    async def open(self) -> None:
        """Bring the session to where it may serve.

        Raises:
            TapsterError: reading, seeding, a hook or the store failed; a hook's own exception is its cause.
        """
        agent = await (self._resumed() if self._birth.header is None else self._seeded(self._birth.header))
        agent.on_wake = self._wake
        # From here on others know it, whether or not the start succeeds.
        self._begun = agent
        created = AgentCreated(agent, "resume" if self._birth.origin == "resume" else "startup", self._birth.origin)
        await self._start_session(created)
        if self._birth.header is None:
            await agent.log.flush()
        else:
            await agent.log.begin()
        self._parts.hooks.session_start.emit(created)
        self.agent = agent

    async def _start_session(self, created: AgentCreated) -> None:
        try:
            await self._parts.hooks.agent_created.run(created)
        except (TapsterError, RuntimeFault):
            raise
        except Exception as error:
            message = f"session {created.agent.id!r} couldn't start: {type(error).__name__}: {error}"
            raise HostError(message, code="SESSION_START_FAILED") from error

    async def _seeded(self, header: SessionHeader) -> Agent:
        agent = self._agent(header)
        agent.log.load(self._birth.seed, 0)
        if header.is_seeded:
            agent.log.append(END_SEED, {})
        for kind, data in self._birth.first_events:
            agent.log.append(kind, data)
        return agent

    async def _resumed(self) -> Agent:
        stored = await self._store.read(self._birth.session_id)
        if stored.header.version != LOG_FORMAT:
            raise FormatError(
                "unknown-log-format",
                f"session {stored.header.id!r} has log format {stored.header.version}; only {LOG_FORMAT} is written to",
            )
        agent = self._agent(stored.header)
        agent.log.load((*stored.events, *closers(stored.events)), len(stored.events))
        agent.log.append(END_SEED, {})
        agent.rebuild_inbox()
        return agent

    def _agent(self, header: SessionHeader) -> Agent:
        log = LiveLog(header, self._store, self._parts.clock, lambda event: agent.publish(event))
        options = self._birth.options
        agent = Agent(self._parts, attrs.evolve(options, cwd=header.cwd or options.cwd), log)
        return agent

    async def close(self) -> None:
        """Write what is left and tell everyone that the session is gone."""
        self._on_gone(self)
        agent = self._begun
        if agent is None:
            return
        self._parts.hooks.disposed.emit(agent)
        agent.end()
        if self.agent is None:
            # Nothing is kept of a start that failed.
            return
        try:
            await agent.log.flush()
        except (StoreError, RuntimeFault) as error:
            self._parts.log("error", "host.log_not_durable", session=agent.id, code=error.code)

    def begin(self) -> None:
        """Watch for idleness from the first moment on, whether or not anybody ever asks."""
        self.used_at = trio.current_time()
        if self._idle_s is not None:
            self.start_background(self._passivate, self._served(), self._idle_s)

    def receive(self, request: Request) -> None:
        """Do what a message says; answers that promise durability wait for the store."""
        agent = self._served()
        self.used_at = trio.current_time()
        match request.body:
            case WhenIdle():
                self.start(request, agent.status.wait_value, lambda status: status == "idle")
            case Subscribe(after):
                if agent.log.subscriber_count >= MAX_LISTENERS:
                    raise Overloaded(f"the list of listeners of {self.name}")
                request.settle(agent.log.subscribe(after))
            case _:
                self.start(request, self._durable, _act(agent, request.body))

    def _served(self) -> Agent:
        if self.agent is None:
            raise HostError(f"{self.name} isn't open")
        return self.agent

    async def _durable(self, value: object) -> object:
        await self._served().log.flush()
        return value

    async def _passivate(self, agent: Agent, idle_s: float) -> None:
        used = (-1, -1)
        while used != (self._handled, agent.seq) or not await self.may_sleep():
            used = (self._handled, agent.seq)
            await trio.sleep(idle_s)
        self.finish()

    async def may_sleep(self) -> bool:
        """Whether nobody would notice, and everything is durable; a log that can't be written keeps it awake."""
        if self.is_unused and self.agent is not None and self.agent.log.durable < self.agent.seq:
            try:
                await self.agent.log.flush()
            except (TapsterError, RuntimeFault) as error:
                self._parts.log("warning", "host.kept_awake", session=self.agent.id, code=error.code)
                return False
        return self.is_unused

    @property
    def is_unused(self) -> bool:
        """Whether no turn is under way, no question is open or waits, and nobody listens."""
        agent = self.agent
        return (
            agent is not None
            and agent.status.value == "idle"
            and not self._is_driving
            and not self.is_asked
            and not agent.log.subscriber_count
            and not any(is_used(agent) for is_used in self._parts.hooks.in_use)
        )

    def _wake(self) -> None:
        if not self._is_driving:
            self._is_driving = True
            self.start_background(self._drive)

    async def _drive(self) -> None:
        agent = self._served()
        try:
            await TurnRunner(agent).drive()
        finally:
            self._is_driving = False


def _act(agent: Agent, message: AgentMessage) -> object:
    match message:
        case Followup(body):
            return agent.followup(body)
        case Steer(body):
            return agent.steer(body)
        case Inject(body):
            return agent.inject(body)
        case Send(body):
            return agent.send(body)
        case Prepend(target, body):
            return agent.prepend(target, body)
        case ReplaceQueued(message_id, body):
            return agent.replace(message_id, body)
        case RemoveQueued(message_id):
            agent.remove(message_id)
            return None
        case Cancel(cause, keep_inbox):
            agent.cancel(cause, keep_inbox=keep_inbox)
            return None
        case ReplaceSurface(start_seq, end_seq, body):
            return agent.replace_surface(start_seq, end_seq, body)
        case AppendEvent(kind, data, ignorable):
            return agent.log.append(kind, data, ignorable=ignorable)
        case _:
            return agent.seq
