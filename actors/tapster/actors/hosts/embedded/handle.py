"""The handle on one session of the embedded host: every way to talk to it.

Source: spec/dsh_host §3, §4; design §4 rules 7, 10.
"""

from typing import TYPE_CHECKING, Any, final

import attrs

from tapster.engine.ecma import Json
from tapster.engine.projection import Event
from tapster.runtime import ActorGone, Child, Ref

from .actor import (
    AppendEvent,
    Cancel,
    Flush,
    Followup,
    Inject,
    Prepend,
    RemoveQueued,
    ReplaceQueued,
    ReplaceSurface,
    Send,
    Steer,
    Subscribe,
    WhenIdle,
)
from .history import Subscription
from .inbox import Target
from .session import EmbeddedSession

if TYPE_CHECKING:
    from .host import EmbeddedHost


@final
@attrs.define(eq=False)
class AgentHandle:
    """The public handle on one live session."""

    id: str
    _host: "EmbeddedHost"
    child: Child
    _is_closed: bool = False

    @property
    def is_live(self) -> bool:
        """Whether it still serves, or will again after a restart."""
        return not self._is_closed and self.child.state.value != "ended"

    @property
    def session(self) -> "EmbeddedSession":
        """The session as the host port shows it."""
        return self._host.session(self.id)

    async def followup(self, message: Json) -> Json:
        """Queue a message (a text, or ``{content, id?, source?}``) for a turn of its own; durable when answered."""
        return await self._ask(Followup(message))

    async def steer(self, message: Json) -> Json:
        """Queue a message for the next step of the running turn; wakes an idle agent."""
        return await self._ask(Steer(message))

    async def inject(self, message: Json) -> Json:
        """Queue a message for the next step, whenever that comes."""
        return await self._ask(Inject(message))

    async def send(self, message: Json) -> Json:
        """Steer a running turn, else begin a new one."""
        return await self._ask(Send(message))

    async def prepend(self, target: Target, message: Json) -> Json:
        """Queue a message before all others of a queue."""
        return await self._ask(Prepend(target, message))

    async def replace(self, message_id: str, message: Json) -> Json:
        """Put a message in the place of a pending one."""
        return await self._ask(ReplaceQueued(message_id, message))

    async def remove(self, message_id: str) -> None:
        """Take a pending message out."""
        await self._ask(RemoveQueued(message_id))

    async def cancel(self, cause: Json = None, *, keep_inbox: bool = False) -> None:
        """Stop the turn under way and drop what waits (unless kept); the turn may still unwind afterwards."""
        await self._ask(Cancel(cause, keep_inbox), control=True)

    async def when_idle(self) -> None:
        """Wait until no turn is under way."""
        await self._ask(WhenIdle())

    async def subscribe(self, after: int | None = None) -> Subscription:
        """Events (those after seq ``after`` first) and live chunks, until closed or fallen behind."""
        subscription: Subscription = await self._ask(Subscribe(after))
        return subscription

    async def replace_surface(self, start_seq: int, end_seq: int, message: Json) -> Event:
        """Put one message in the place of a range of the model's history, as a compaction does."""
        event: Event = await self._ask(ReplaceSurface(start_seq, end_seq, message))
        return event

    async def append(self, kind: str, data: Json, *, ignorable: bool = False) -> Event:
        """Append a log-only event, such as ``sandbox/mode``."""
        event: Event = await self._ask(AppendEvent(kind, data, ignorable))
        return event

    async def flush(self) -> int:
        """Make everything durable; the next seq."""
        seq: int = await self._ask(Flush())
        return seq

    async def fork(self, session_id: str | None = None, *, at_seq: int | None = None) -> "AgentHandle":
        """As ``EmbeddedHost.fork`` of this session."""
        return await self._host.fork(self.id, session_id, at_seq=at_seq)

    async def close(self) -> None:
        """End the session; it can be opened again, by the host."""
        await self._host.close(self.id)

    async def end(self) -> None:
        """Stop the agent and wait until it is gone; this handle doesn't bring it back."""
        self._is_closed = True
        await self.child.stop()

    async def _ask(self, body: Any, *, control: bool = False) -> Any:
        """Ask the agent; one that passivated comes back, and a message it never took is sent once more."""
        ref = await self._ref()
        try:
            return await ref.ask(body, control=control)
        except ActorGone as gone:
            if gone.taken or self._is_closed:
                raise
        await ref.wait_ended()
        while self.child.state.value == "running" and await self.child.ref() is ref:
            await self.child.state.wait_transition()
        return await (await self._ref()).ask(body, control=control)

    async def _ref(self) -> Ref:
        while not self._is_closed:
            if not self.is_live:
                self.child = (await self._host.open(self.id)).child
            try:
                return await self.child.ref()
            except ActorGone:
                if self.is_live:
                    raise
        return await self.child.ref()
