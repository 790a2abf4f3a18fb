"""Sessions of the embedded host behind the HTTP layer's port."""

from collections.abc import Sequence
from typing import Literal, final

import attrs
import trio

from tapster.actors.admission import StreamPlace
from tapster.actors.hosts.embedded import AgentHandle, EmbeddedHost, LiveChunk, Subscription
from tapster.actors.session.embedded import embedded_key
from tapster.actors.tapster import Tapster
from tapster.engine.activation.explanations import Language
from tapster.engine.ecma import Json
from tapster.engine.projection import Event, SessionHeader, derive_messages
from tapster.engine.projection.events import TURN_END

from .explained import explain_assembled
from .ports import Notice
from .shown import preview_json


@final
@attrs.define(eq=False)
class LiveEvents:
    """A session's events and chunks as numbered notices; a chunk carries the seq of the last event, to resume after.

    It listens only within its block: between an answer that began and its body a client may leave, and nobody would
    end a subscription that was already made. Events of that moment aren't missed, for it begins after a seq.
    """

    _host: EmbeddedHost
    _session_id: str
    _seq: int
    _place: StreamPlace
    _subscription: Subscription | None = None

    def __enter__(self) -> "LiveEvents":
        self._place.__enter__()
        agent = self._host.agent(self._session_id)
        if agent is not None:
            self._subscription = agent.log.subscribe(self._seq)
        return self

    def __exit__(self, *details: object) -> None:
        if self._subscription is not None:
            self._subscription.close()
        self._place.__exit__()

    async def receive(self) -> Notice:
        """The next event or chunk.

        Raises:
            trio.EndOfChannel: the session closed, or this reader fell behind.
        """
        if self._subscription is None:
            await trio.lowlevel.checkpoint()
            raise trio.EndOfChannel
        item = await self._subscription.receive()
        if isinstance(item, LiveChunk):
            return Notice(self._seq, "chunk", {"turn": item.turn, "step": item.step, "chunk": item.chunk.to_json()})
        self._seq = item.seq
        return Notice(item.seq, "event", item.to_json())


@final
@attrs.frozen
class SessionsPort:
    """``ports.Sessions``."""

    tapster: Tapster

    async def list(self) -> Sequence[Json]:
        """The sessions, newest first."""
        return [self._shown(header) for header in await self.tapster.host.headers()]

    async def create(self, session_id: str | None) -> Json:
        """A new session, started."""
        handle = await self.tapster.create_session(session_id)
        return self._shown(await handle.session.header())

    async def get(self, session_id: str) -> Json:
        """One session with its messages and bindings."""
        session = self.tapster.host.session(session_id)
        header, inspection = await session.header(), await session.inspect()
        selection = await self.tapster.library.selections.get(embedded_key(session_id))
        return {
            **self._shown(header),
            "seq": len(inspection.events),
            "lastTurn": _last_turn(inspection.events),
            "messages": list(derive_messages(inspection.events)),
            "selection": {
                "presetId": selection.preset_id,
                "characterCardId": selection.character_card_id,
                "userId": selection.user_id,
                "worldBookIds": list(selection.world_book_ids),
            },
        }

    async def settings(self, session_id: str, patch: Json | None = None) -> Json:
        """How a session activates its world books, after a change if a patch is given."""
        return (await self.tapster.activation_settings(session_id, patch)).to_json()

    async def send(self, session_id: str, text: str, *, mode: Literal["followup", "steer", "send"]) -> Json:
        """Queue a message; durable when answered."""
        agent = self.tapster.host.agent(session_id)
        # An idle agent takes up what waits only when another message wakes it, so that one must be let in.
        if agent is None or agent.status.value == "idle":
            waiting = 0
        else:
            waiting = len(agent.queues.next_turn) + len(agent.queues.next_step)
        with self.tapster.admission.message(session_id, waiting):
            handle = await self.tapster.open_session(session_id)
            deliver = {"followup": AgentHandle.followup, "steer": AgentHandle.steer, "send": AgentHandle.send}[mode]
            return await deliver(handle, text)

    async def cancel(self, session_id: str, *, keep_inbox: bool) -> None:
        """Stop the turn under way."""
        handle = await self.tapster.open_session(session_id)
        await handle.cancel(keep_inbox=keep_inbox)

    async def preview(self, session_id: str, draft: str | None) -> Json:
        """What would be sent now."""
        with self.tapster.admission.computation(session_id):
            return preview_json(await self.tapster.preview(session_id, draft))

    async def explain(self, session_id: str, draft: str | None, language: Language) -> Json:
        """Why each prompt and entry would be in the next request or not."""
        with self.tapster.admission.computation(session_id):
            assembled = await self.tapster.preview(session_id, draft)
            return await self.tapster.ports.threads.run(explain_assembled, assembled, language, share=session_id)

    async def active(self, session_id: str) -> Json:
        """What the session would send now, without text and without claimed input."""
        with self.tapster.admission.computation(session_id):
            snapshot = (await self.tapster.preview(session_id)).snapshot
        audit, preset = snapshot.audit, snapshot.resources.preset
        return {
            "selected": None if preset is None else {"id": preset.id, "name": preset.name},
            "selection": audit["selection"],
            "sessionSelection": audit["sessionSelection"],
            "worldBookSelection": audit["worldBookSelection"],
            "resources": audit["resources"],
            "callConfig": snapshot.call_config.to_json(),
            "diagnostics": audit["diagnostics"],
            "audit": audit,
        }

    async def subscribe(self, session_id: str, after: int | None) -> "LiveEvents":
        """The session's events from now on, those after a seq first; it listens once it is entered."""
        await self.tapster.open_session(session_id)
        place = self.tapster.admission.stream(session_id)
        agent = self.tapster.host.agent(session_id)
        last = agent.log.seq - 1 if agent is not None else -1
        return LiveEvents(self.tapster.host, session_id, last if after is None else after, place)

    def _shown(self, header: SessionHeader) -> Json:
        agent = self.tapster.host.agent(header.id)
        return {
            "id": header.id,
            "createdAt": header.created_at,
            "parentSession": header.parent_session,
            "status": "asleep" if agent is None else agent.status.value,
        }


def _last_turn(events: Sequence[Event]) -> Json:
    """How the newest finished turn ended, None when none has."""
    return next((event.data["reason"] for event in reversed(events) if event.type == TURN_END), None)
