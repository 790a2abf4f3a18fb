"""Every place where others listen in on a turn, in the order in which a turn passes them.

Source: spec/dsh_host §2, §3.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, TypeAlias, final

import attrs

from tapster.actors.providers import CallConfig, Failure, ModelRequest, Sink
from tapster.engine.ecma import Json
from tapster.engine.projection import Event
from tapster.runtime import LogSink

from .prompt import Assembly, PromptContext
from .tools import ToolHooks
from .waterfall import Notice, Serial, Waterfall

if TYPE_CHECKING:
    from .agent import Agent

Origin = Literal["new", "fork", "resume", "delegate"]


@attrs.frozen
class AgentCreated:
    """A session is about to serve; ``source`` is the host's word, ``origin`` says more."""

    agent: "Agent"
    source: Literal["startup", "resume"]
    origin: Origin


@attrs.frozen
class SessionEvent:
    """An event that was just appended; the inbox still is as before it."""

    agent: "Agent"
    event: Event


@attrs.frozen
class StepContext:
    """Which step of which turn a hook is called for."""

    agent: "Agent"
    turn: int
    step: int


@attrs.frozen
class PreStep:
    """The messages a step is about to take."""

    messages: tuple[Json, ...]


@attrs.frozen
class Enter:
    """Begin the step with these messages."""

    messages: tuple[Json, ...]
    starts_request_series: bool | None = None


@attrs.frozen
class Reject:
    """Don't begin the step; the turn ends ``blocked``."""


PreStepDecision: TypeAlias = Enter | Reject


@attrs.frozen
class StreamCall:
    """A request about to go out, and where its chunks go; a listener may pass on a changed copy."""

    request: ModelRequest
    sink: Sink


@attrs.frozen
class RequestFailed:
    """An attempt that failed, and how many built-in retries this step has had."""

    failure: Failure
    provider: str
    retries: int
    had_output: bool


@attrs.frozen
class InboxChange:
    """A message that was inserted into, claimed from or discarded from the inbox."""

    agent: "Agent"
    message: Json
    turn: int | None = None


@attrs.frozen
class StatusChange:
    """The agent is now ``idle`` or ``running``."""

    agent: "Agent"
    status: str


@attrs.frozen
class TurnError:
    """A turn ends with an error; step 0 means before its first step."""

    agent: "Agent"
    turn: int
    step: int
    error: BaseException


@attrs.frozen
class Cancelled:
    """Someone cancelled the agent; ``cause`` is the host's cause object."""

    agent: "Agent"
    cause: Json


@final
@attrs.define(eq=False)
class Hooks:
    """The hooks of one host. Waterfalls and serial hooks are awaited, notices are contained.

    Attributes:
        agent_created: session start, awaited in order; a failure fails the opening call.
        session_event: every event, synchronously, in seq order.
        request: its value is the sticky seed, its result the call config.
        request_error: ``"retry"`` or None.
        stream: around one attempt; returns when the stream has ended.
        in_use: each says whether somebody uses a session in a way that its agent can't see; it isn't put to sleep then.
    """

    log: LogSink
    agent_created: Serial[AgentCreated] = attrs.field(init=False)
    session_start: Notice[AgentCreated] = attrs.field(init=False)
    session_event: Notice[SessionEvent] = attrs.field(init=False)
    inbox_inserted: Notice[InboxChange] = attrs.field(init=False)
    inbox_claimed: Notice[InboxChange] = attrs.field(init=False)
    inbox_discarded: Notice[InboxChange] = attrs.field(init=False)
    status: Notice[StatusChange] = attrs.field(init=False)
    assemble: Waterfall[Assembly, PromptContext, Assembly] = attrs.field(init=False)
    pre_step: Waterfall[PreStep, StepContext, PreStepDecision] = attrs.field(init=False)
    request: Waterfall[CallConfig, StepContext, CallConfig] = attrs.field(init=False)
    stream: Waterfall[StreamCall, StepContext, None] = attrs.field(init=False)
    request_error: Waterfall[RequestFailed, StepContext, Literal["retry"] | None] = attrs.field(init=False)
    tools: ToolHooks = attrs.field(factory=ToolHooks)
    turn_stopping: Serial[StepContext] = attrs.field(init=False)
    cancelled: Notice[Cancelled] = attrs.field(init=False)
    error: Notice[TurnError] = attrs.field(init=False)
    disposed: Notice["Agent"] = attrs.field(init=False)
    in_use: list[Callable[["Agent"], bool]] = attrs.field(factory=list)

    def __attrs_post_init__(self) -> None:
        self.agent_created = Serial("agent/created")
        self.session_start = Notice("agent/session-start", self.log)
        self.session_event = Notice("session/event", self.log)
        self.inbox_inserted = Notice("agent/inbox/inserted", self.log)
        self.inbox_claimed = Notice("agent/inbox/claimed", self.log)
        self.inbox_discarded = Notice("agent/inbox/discarded", self.log)
        self.status = Notice("agent/status", self.log)
        self.assemble = Waterfall("system-prompt/assemble")
        self.pre_step = Waterfall("agent/pre-step")
        self.request = Waterfall("agent/request")
        self.stream = Waterfall("llm/stream")
        self.request_error = Waterfall("agent/request-error")
        self.turn_stopping = Serial("agent/turn-stopping")
        self.cancelled = Notice("agent/cancelled", self.log)
        self.error = Notice("agent/error", self.log)
        self.disposed = Notice("agent/disposed", self.log)
