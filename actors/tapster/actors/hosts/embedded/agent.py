"""An agent of the embedded host: one session's inbox, log and turn, as its hooks see it.

Everything here is synchronous and belongs to the agent's actor: hooks run inside that actor and may call it.

Source: spec/dsh_host §3, §4, §7.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, final

import attrs
import trio

from tapster.actors.providers import CallConfig, Providers, Reply
from tapster.engine.ecma import Json
from tapster.engine.errors import RequestError
from tapster.engine.projection import APPEND, Event, SessionHeader, SurfaceReplace
from tapster.engine.projection.events import (
    ASSISTANT_MESSAGE,
    INBOX_SPLICED,
    STEP_END,
    SYSTEM_MESSAGE,
    TOOL_CALL,
    TOOL_RESULT,
    TURN_END,
    TURN_START,
)
from tapster.engine.projection.repair import ABORTED_BEFORE_DISPATCH, ABORTED_BEFORE_DISPATCH_TEXT
from tapster.runtime import Clock, Ids, LogSink, Watched

from .history import LiveLog
from .hooks import Cancelled, Hooks, InboxChange, SessionEvent, StatusChange
from .inbox import Queues, Splice, Target, replay
from .prompt import PromptRegistry
from .session import LiveSession
from .tools import ToolExecution, ToolOutput, ToolRegistry

_ABORTED_IN_BODY: Final = ToolOutput.failed(
    "this call was stopped while it ran; it may have taken effect in part",
    {"name": "ToolAbortedError", "code": "TOOL_ABORTED"},
)
_NEVER_STARTED: Final = ToolOutput(
    ({"type": "text", "text": ABORTED_BEFORE_DISPATCH_TEXT},), is_error=True, error=ABORTED_BEFORE_DISPATCH
)
USER: Final[Json] = {"kind": "user"}


@attrs.frozen
class AgentOptions:
    """What a session asks for before any request was made; ``cwd`` is a prompt variable."""

    provider: str
    model: str
    max_tokens: int | None = None
    cwd: str = ""

    def config(self) -> dict[str, Json]:
        """The first seed of a call config."""
        config: dict[str, Json] = {"provider": self.provider, "model": self.model}
        return config if self.max_tokens is None else {**config, "maxTokens": self.max_tokens}


@attrs.frozen
class HostParts:
    """What all agents of one host share."""

    providers: Providers
    tools: ToolRegistry
    prompt: PromptRegistry
    hooks: Hooks
    clock: Clock
    ids: Ids
    log: LogSink


@attrs.frozen
class RunningCall:
    """A tool call that is in the log but has no result yet."""

    call_id: str
    seq: int
    execution: ToolExecution


@final
@attrs.define(eq=False)
class Turn:
    """The turn that is open, and what must be closed when it ends early."""

    number: int
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    cause: Json = None
    step: int = 0
    step_is_open: bool = False
    reply: Reply | None = None
    waiting_calls: deque[Json] = attrs.field(factory=deque)
    running_call: RunningCall | None = None


def _stay_asleep() -> None:
    """Nobody drives the agent."""


@final
@attrs.define(eq=False)
class Agent:
    """One session's live state.

    Attributes:
        on_wake: starts the driver when it isn't running; set by the actor.
        wants_turn: whether input that wakes has arrived since it was last looked at.
    """

    parts: HostParts
    options: AgentOptions
    log: LiveLog
    queues: Queues = attrs.field(factory=Queues)
    status: Watched[str] = attrs.field(factory=lambda: Watched("idle"))
    turn: Turn | None = None
    wants_turn: bool = False
    on_wake: Callable[[], None] = _stay_asleep

    @property
    def id(self) -> str:
        """The session's id, which is the agent's too."""
        return self.log.header.id

    @property
    def header(self) -> SessionHeader:
        """The session's header."""
        return self.log.header

    @property
    def seq(self) -> int:
        """The seq the next event will get."""
        return self.log.seq

    @property
    def open_turn(self) -> int | None:
        """The number of the turn under way, or None."""
        return None if self.turn is None else self.turn.number

    @property
    def session(self) -> LiveSession:
        """The session behind the host port, read from memory."""
        return LiveSession(self.log, self.parts.providers)

    def new_id(self) -> str:
        """A fresh id for a message or event."""
        return self.parts.ids.uuid()

    def derive_messages(self) -> tuple[Json, ...]:
        """The model-visible history."""
        return self.log.surface.messages()

    def own_events(self, since: int = 0) -> tuple[Event, ...]:
        """Events after what a fork copied, from seq ``since`` on."""
        return self.log.own_events(since)

    def request_config(self) -> CallConfig:
        """The sticky seed: the last logged config without what the provider had filled in."""
        logged = self.log.request_header
        if logged is None:
            return self.options.config()
        header = logged.data["header"]
        filled = header.get("adapterDefaults") or {}
        return {name: value for name, value in header["config"].items() if name not in filled}

    # -- input

    def followup(self, message: Json) -> Json:
        """Queue a message for a turn of its own and wake."""
        return self._deliver("next-turn", message, wakes=True)

    def steer(self, message: Json) -> Json:
        """Queue a message for the next step and wake."""
        return self._deliver("next-step", message, wakes=True)

    def inject(self, message: Json) -> Json:
        """Queue a message for the next step without waking."""
        return self._deliver("next-step", message, wakes=False)

    def send(self, message: Json) -> Json:
        """Steer a running turn, else begin a new one."""
        return self.followup(message) if self.turn is None else self.steer(message)

    def prepend(self, target: Target, message: Json) -> Json:
        """Queue a message before all others of a queue."""
        message = self.whole(message)
        self._splice(self.queues.insertion(target, message, first=True))
        return message

    def replace(self, message_id: str, message: Json) -> Json:
        """Put a message in the place of a pending one."""
        message = self.whole(message)
        self._splice(self.queues.replacement(message_id, message))
        return message

    def remove(self, message_id: str) -> None:
        """Take a pending message out."""
        self._splice(self.queues.removal(message_id))

    def claim(self, *, new_turn: bool) -> tuple[Json, ...]:
        """Take the input of a step out of the inbox."""
        claimed: list[Json] = []
        for splice in self.queues.claim(new_turn=new_turn):
            claimed += self._splice(splice)
        return tuple(claimed)

    def cancel(self, cause: Json = None, *, keep_inbox: bool = False) -> None:
        """Stop the turn under way and (unless kept) drop what waits; returns at once."""
        cause = cause or dict(USER)
        if not keep_inbox:
            for splice in self.queues.clearing():
                self._splice(splice)
        self.wants_turn = False
        if self.turn is not None and self.turn.cause is None:
            self.turn.cause = cause
            self.turn.scope.cancel(reason=f"turn cancelled: {cause.get('kind')}")
        self.parts.hooks.cancelled.emit(Cancelled(self, cause))

    def whole(self, message: Json) -> Json:
        """A message with an id, role, content and source; a plain text becomes a user's message.

        Raises:
            RequestError: ``INVALID_MESSAGE``.
        """
        if isinstance(message, str):
            message = {"content": [{"type": "text", "text": message}]}
        if not isinstance(message, dict) or not isinstance(message.get("content"), list):
            raise RequestError("a message needs a list of content blocks", code="INVALID_MESSAGE")
        if message.get("role", "user") not in ("user", "assistant"):
            raise RequestError("a queued message is a user's or an assistant's", code="INVALID_MESSAGE")
        identity = message.get("id") or self.new_id()
        return {"role": "user", "source": dict(USER), **message, "id": identity}

    def _deliver(self, target: Target, message: Json, *, wakes: bool) -> Json:
        message = self.whole(message)
        is_aborting = self.turn is not None and self.turn.cause is not None
        self._splice(self.queues.insertion("next-turn" if is_aborting else target, message))
        if wakes:
            self.wants_turn = True
            self.on_wake()
        return message

    def _splice(self, splice: Splice) -> tuple[Json, ...]:
        removed = self.queues.removed_by(splice)
        self.log.append(INBOX_SPLICED, splice.to_json())
        self.queues = self.queues.apply(splice)
        is_claim = bool(splice.removed) and not splice.canceled
        hooks = self.parts.hooks
        for message in removed:
            notice = hooks.inbox_claimed if is_claim else hooks.inbox_discarded
            notice.emit(InboxChange(self, message, self.open_turn if is_claim else None))
        for message in splice.inserted:
            hooks.inbox_inserted.emit(InboxChange(self, message))
        return removed

    def rebuild_inbox(self) -> None:
        """Restore the queues from the session's own events."""
        self.queues = replay(self.own_events())

    # -- turns

    def set_status(self, status: str) -> None:
        """Become ``idle`` or ``running`` and say so."""
        if status != self.status.value:
            self.status.set(status)
            self.parts.hooks.status.emit(StatusChange(self, status))

    def begin_turn(self) -> Turn:
        """Open the next turn."""
        turn = Turn(self.log.turns + 1)
        self.turn = turn
        self.log.turns = turn.number
        self.log.append(TURN_START, {"turn": turn.number})
        return turn

    def end_turn(self, reason: Json) -> None:
        """Close whatever is open of the turn, and the turn; appends only, so no cancellation gets between."""
        turn = self.turn
        if turn is None:
            return
        if turn.step_is_open:
            self._keep_prefix(turn)
            self._close_calls(turn)
            self.log.append(STEP_END, {"turn": turn.number, "step": turn.step})
        self.turn = None
        self.log.append(TURN_END, {"turn": turn.number, "reason": reason})

    def append_reply(self, turn: Turn, reply: Reply, content: Sequence[Json], *, interrupted: bool = False) -> Event:
        """Log a reply, with its chunks, on the surface."""
        config = self.log.request_header.data["header"]["config"] if self.log.request_header else {}
        data: Json = {
            "turn": turn.number,
            "step": turn.step,
            "message": {
                "id": self.new_id(),
                "role": "assistant",
                "content": list(content),
                "source": {"kind": "model", "provider": config.get("provider"), "model": config.get("model")},
            },
            "stream": reply.stream(),
        }
        if reply.usage is not None:
            data["usage"] = reply.usage
        if interrupted:
            data["interrupted"] = True
        return self.log.append(ASSISTANT_MESSAGE, data, APPEND)

    def start_call(self, turn: Turn) -> RunningCall:
        """Log that the next waiting tool call starts; from here on it needs a result."""
        call = turn.waiting_calls.popleft()
        named = {"callId": call["id"], "name": call["name"], "arguments": call["arguments"]}
        event = self.log.append(TOOL_CALL, {"turn": turn.number, "step": turn.step, **named})
        execution = ToolExecution(self, call["id"], call["name"], call["arguments"])
        turn.running_call = RunningCall(call["id"], event.seq, execution)
        return turn.running_call

    def append_output(self, turn: Turn, call: RunningCall, output: ToolOutput) -> None:
        """Log how a tool call ended, on the surface."""
        block = {
            "type": "tool-result",
            "toolCallId": call.call_id,
            "content": list(output.content),
            "isError": output.is_error,
        }
        source = {"kind": "tool", "callId": call.call_id}
        message = {"id": self.new_id(), "role": "user", "content": [block], "source": source}
        data: Json = {"turn": turn.number, "step": turn.step, "message": message}
        data |= {name: value for name, value in (("error", output.error), ("meta", output.meta)) if value is not None}
        self.log.append(TOOL_RESULT, data, APPEND, (call.seq,))

    def _keep_prefix(self, turn: Turn) -> None:
        reply, turn.reply = turn.reply, None
        if reply is not None and (content := reply.rendered_prefix()):
            self.append_reply(turn, reply, content, interrupted=True)

    def _close_calls(self, turn: Turn) -> None:
        running, turn.running_call = turn.running_call, None
        if running is not None:
            self.append_output(turn, running, running.execution.output or _ABORTED_IN_BODY)
        while turn.waiting_calls:
            self.append_output(turn, self.start_call(turn), _NEVER_STARTED)
            turn.running_call = None

    def end(self) -> None:
        """Nothing wakes it any more and nobody listens; it is freed as soon as nobody refers to it."""
        self.on_wake = _stay_asleep
        self.log.close()

    # -- surface

    def replace_surface(self, start_seq: int, end_seq: int, message: Json) -> Event:
        """Put one message in the place of surface nodes, as a compaction does; the events stay in the log.

        Raises:
            RequestError: ``INVALID_SURFACE_RANGE`` when the range holds the system message.
            FormatError: the range isn't on the surface.
        """
        replaced = SurfaceReplace(start_seq, end_seq)
        first, last = self.log.surface.span(replaced)
        nodes = self.log.surface.nodes[first : last + 1]
        if any(node.type == SYSTEM_MESSAGE for node in nodes):
            raise RequestError("the system message can't be replaced by history", code="INVALID_SURFACE_RANGE")
        sources = tuple(node.seq for node in nodes)
        return self.log.append("user/message", self.whole(message), replaced, sources)

    def publish(self, event: Event) -> None:
        """Tell the hooks of an event."""
        self.parts.hooks.session_event.emit(SessionEvent(self, event))
