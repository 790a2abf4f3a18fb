"""Pending input: the host's inbox rebuilt from its splices, and the batch claimed since the last request.

The state is a frozen value; ``observe`` is its step function. Replaying a session's own events before serving it
restores the queues but never a claim: what was claimed before anyone watched belongs to no request of ours.

Source: spec/activation §3.
"""

from collections.abc import Iterable, Mapping
from typing import Literal

import attrs

from tapster.engine import limits
from tapster.engine.ecma import Json, is_safe_integer

from .limits import ProjectionLimits
from .messages import InputMessage, materialise

SPLICED = "agent/inbox/spliced"
Target = Literal["next-turn", "next-step"]


@attrs.frozen
class InboxQueue:
    """One inbox queue; messages past the cap are only counted."""

    items: tuple[InputMessage, ...] = ()
    omitted_tail_count: int = 0

    @property
    def length(self) -> int:
        """How many messages the host has in it."""
        return len(self.items) + self.omitted_tail_count


@attrs.frozen
class PendingInput:
    """Everything a projection knows of one session."""

    limits: ProjectionLimits = attrs.field(factory=ProjectionLimits)
    next_turn: InboxQueue = attrs.field(factory=InboxQueue)
    next_step: InboxQueue = attrs.field(factory=InboxQueue)
    claimed: tuple[InputMessage, ...] = ()
    claimed_omitted_count: int = 0
    claim_event_seqs: tuple[int, ...] = ()
    invalid_events: int = 0

    @property
    def retained_characters(self) -> int:
        """Code units held in both queues."""
        return sum(item.units for queue in (self.next_turn, self.next_step) for item in queue.items)

    def queue(self, target: Target) -> InboxQueue:
        """The queue a splice names."""
        return self.next_turn if target == "next-turn" else self.next_step

    def with_queue(self, target: Target, queue: InboxQueue) -> "PendingInput":
        """The state with one queue replaced."""
        if target == "next-turn":
            return attrs.evolve(self, next_turn=queue)
        return attrs.evolve(self, next_step=queue)


@attrs.frozen
class Splice:
    """A valid inbox splice."""

    target: Target
    start: int
    removed: int
    inserted: tuple[Json, ...]
    canceled: bool
    seq: int | None

    @property
    def is_claim(self) -> bool:
        """Whether the driver took messages out for a step: an edit, a cancel or an insert is none."""
        return self.removed > 0 and not self.inserted and not self.canceled


def replay(state: PendingInput, events: Iterable[Mapping[str, Json]], *, before: int | None = None) -> PendingInput:
    """The state after a session's earlier own events: queues are kept, claims are not.

    Args:
        state: a new state.
        events: the session's own events, without the inherited ones.
        before: the ``seq`` of the event about to be observed; it and later ones are not replayed.
    """
    for event in events:
        seq: Json = event.get("seq")
        if before is None or not is_safe_integer(seq) or seq < before:
            state, _ = observe(state, event, live=False)
    return state


def observe(state: PendingInput, event: Mapping[str, Json], *, live: bool = True) -> tuple[PendingInput, bool]:
    """The state after one session event, and whether it was a valid splice.

    Args:
        state: what was known before.
        event: ``{type, seq, data}`` as the host logs it.
        live: False while catching up, so that nothing is taken for a claim.
    """
    if event.get("type") != SPLICED:
        return state, False
    splice = _read_splice(state, event)
    if splice is None:
        return attrs.evolve(state, invalid_events=state.invalid_events + 1), False
    state, removed, unseen = _remove(state, splice)
    if live and splice.is_claim:
        state = _claim(state, removed, unseen, splice.seq)
    return _insert(state, splice), True


def end_turn(state: PendingInput) -> PendingInput:
    """The state with its claimed batch dropped: at the end of a turn, or once a request used it."""
    return attrs.evolve(state, claimed=(), claimed_omitted_count=0, claim_event_seqs=())


def _read_splice(state: PendingInput, event: Mapping[str, Json]) -> Splice | None:
    data = event.get("data")
    if not isinstance(data, dict) or data.get("target") not in ("next-turn", "next-step"):
        return None
    start: Json = data.get("start")
    removed: Json = data.get("removedCount", 0)
    inserted = data.get("inserted")
    if not _is_count(start) or not _is_count(removed) or not isinstance(inserted, list):
        return None
    if "outcome" in data and data["outcome"] != "canceled":
        return None
    if start + removed > state.queue(data["target"]).length:
        return None
    seq: Json = event.get("seq")
    return Splice(
        data["target"],
        int(start),
        int(removed),
        tuple(inserted),
        "outcome" in data,
        int(seq) if is_safe_integer(seq) else None,
    )


def _is_count(value: Json) -> bool:
    return is_safe_integer(value) and value >= 0


def _remove(state: PendingInput, splice: Splice) -> tuple[PendingInput, tuple[InputMessage, ...], int]:
    queue = state.queue(splice.target)
    kept = max(0, min(splice.removed, len(queue.items) - splice.start))
    unseen = splice.removed - kept
    removed = queue.items[splice.start : splice.start + kept]
    items = queue.items[: splice.start] + queue.items[splice.start + kept :]
    queue = InboxQueue(items, max(0, queue.omitted_tail_count - unseen))
    return state.with_queue(splice.target, queue), removed, unseen


def _claim(state: PendingInput, removed: tuple[InputMessage, ...], unseen: int, seq: int | None) -> PendingInput:
    claimed = state.claimed + removed
    surplus = max(0, len(claimed) - state.limits.max_scan_messages)
    seqs = state.claim_event_seqs if seq is None else (*state.claim_event_seqs, seq)
    return attrs.evolve(
        state,
        claimed=claimed[surplus:],
        claimed_omitted_count=state.claimed_omitted_count + unseen + surplus,
        claim_event_seqs=seqs[-limits.KEPT_CLAIM_SEQS :],
    )


def _insert(state: PendingInput, splice: Splice) -> PendingInput:
    queue = state.queue(splice.target)
    if splice.start > len(queue.items):
        queue = attrs.evolve(queue, omitted_tail_count=queue.omitted_tail_count + len(splice.inserted))
        return state.with_queue(splice.target, queue)
    room = max(0, state.limits.max_queued_characters - state.retained_characters)
    fresh: list[InputMessage] = []
    for message in splice.inserted:
        fresh.append(materialise(message, room))
        room -= fresh[-1].units
    items = queue.items[: splice.start] + tuple(fresh) + queue.items[splice.start :]
    surplus = max(0, len(items) - state.limits.max_queued_messages)
    kept = InboxQueue(items[: len(items) - surplus], queue.omitted_tail_count + surplus)
    return state.with_queue(splice.target, kept)
