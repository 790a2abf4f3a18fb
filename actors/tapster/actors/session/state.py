"""What a session knows of its host's log: how far it has followed, the pending input, the surface, the open turn."""

from collections.abc import Mapping, Sequence

import attrs

from tapster.engine.policy import SandboxMode
from tapster.engine.projection import (
    Event,
    HistoryMessage,
    PendingInput,
    SessionHeader,
    Surface,
    end_turn,
    event_message,
    observe,
    replay,
    surface_of,
)
from tapster.engine.trace import SessionView

TURN_START = "turn/start"
TURN_END = "turn/end"
STEP_START = "step/start"
SANDBOX_MODE = "sandbox/mode"
SYSTEM_MESSAGE = "system/message"
_SANDBOXES: Mapping[str, SandboxMode] = {
    "read-only": "read-only",
    "workspace-write": "workspace-write",
    "danger-full-access": "danger-full-access",
}
_VIEWED = frozenset({"request/header", "request/assembly"})


@attrs.define(eq=False)
class Followed:
    """A host session as far as its events were applied.

    Attributes:
        seq: the next event to apply.
        open_turn: number of the turn that has begun and not ended, or None.
        sandbox: the newest ``sandbox/mode``.
    """

    header: SessionHeader
    seq: int = 0
    pending: PendingInput = attrs.field(factory=PendingInput)
    surface: Surface = attrs.field(factory=Surface)
    open_turn: int | None = None
    sandbox: SandboxMode = "workspace-write"
    _viewed: dict[str, Event] = attrs.field(factory=dict)

    @classmethod
    def rebuild(cls, header: SessionHeader, events: Sequence[Event]) -> "Followed":
        """Catch up with a log: queues are restored from own events (spec/activation §3.3).

        A claim counts only if it belongs to the step that is about to be assembled: it lies in the open turn, after
        its last ``step/start``. So a session that comes back in mid-turn still knows what was just said.
        """
        followed = cls(header, len(events), surface=surface_of(events))
        for event in events:
            followed._note(event)
        own = events[header.seed_length :]
        split = len(own) if followed.open_turn is None else _claims_from(own)
        followed.pending = replay(PendingInput(), (event.to_json() for event in own[:split]))
        for event in own[split:]:
            followed.pending, _ = observe(followed.pending, event.to_json())
        return followed

    def apply(self, event: Event) -> None:
        """Take in the next live event."""
        self.seq = event.seq + 1
        self.surface.apply(event)
        self.pending, _ = observe(self.pending, event.to_json())
        if event.type == TURN_END:
            self.pending = end_turn(self.pending)
        self._note(event)

    def history(self) -> tuple[HistoryMessage, ...]:
        """The derived messages, oldest first."""
        found = (event_message(node) for node in self.surface.nodes)
        return tuple(HistoryMessage.from_json(message) for message in found if message is not None)

    def view(self) -> SessionView:
        """The session as a trace sees it: only the events that references can point to."""
        nodes = [node for node in self.surface.nodes if _is_referable(node)]
        events = sorted((*nodes, *self._viewed.values()), key=lambda event: event.seq)
        return SessionView(
            self.header.id,
            self.header.version,
            self.header.created_at,
            self.seq,
            [event.to_json() for event in events],
            [node.seq for node in nodes],
        )

    def drop_claims(self, used: PendingInput) -> None:
        """Use up the claims that a handed-over assembly was made with; later ones stay."""
        later = self.pending.claimed[len(used.claimed) :]
        if later:
            seqs = self.pending.claim_event_seqs[len(used.claim_event_seqs) :]
            self.pending = attrs.evolve(self.pending, claimed=later, claimed_omitted_count=0, claim_event_seqs=seqs)
        else:
            self.pending = end_turn(self.pending)

    def _note(self, event: Event) -> None:
        if event.type == TURN_START:
            self.open_turn = event.data["turn"]
        elif event.type == TURN_END:
            self.open_turn = None
        elif event.type == SANDBOX_MODE:
            self.sandbox = _SANDBOXES.get(event.data["mode"], self.sandbox)
        elif event.type in _VIEWED:
            self._viewed[event.type] = event


def _claims_from(own: Sequence[Event]) -> int:
    """Index after the newest ``step/start`` or ``turn/start``."""
    starts = (index for index in range(len(own) - 1, -1, -1) if own[index].type in (STEP_START, TURN_START))
    return next(starts, len(own) - 1) + 1


def _is_referable(node: Event) -> bool:
    if node.type == SYSTEM_MESSAGE:
        return True
    message = event_message(node)
    source = message.get("source") if isinstance(message, dict) else None
    return node.type == "user/message" and isinstance(source, dict) and source.get("form") == "snapshot"
