"""A whole session log read from its lines, and the questions asked of one.

Source: spec/dsh_host §5, §9.
"""

from collections.abc import Iterable, Sequence

import attrs

from tapster.engine.ecma import Json, parse_json
from tapster.engine.errors import FormatError, RequestError

from .events import TURN_END, TURN_START, Event, SessionHeader
from .packed import expand, is_packed


class SessionForkError(RequestError):
    """A fork was asked for where none may start; code ``OPEN_TURN`` or ``FORK_OUT_OF_RANGE``."""

    code = "OPEN_TURN"
    kind = "Error"
    status = 409


@attrs.frozen
class LoggedSession:
    """A session's header and events: all of them, or those from some seq on."""

    header: SessionHeader
    events: tuple[Event, ...]

    @property
    def own_events(self) -> tuple[Event, ...]:
        """The events after what a fork copied from its parent."""
        return tuple(event for event in self.events if event.seq >= self.header.seed_length)


def read_log(lines: Iterable[str]) -> LoggedSession:
    """A session from the text lines of its log; packed rows are spread out.

    A last line cut short by a crash isn't read here: the store gives whole lines.

    Raises:
        FormatError: a line isn't JSON, a seq leaves a gap, or an event is unknown and not ignorable.
    """
    values = (parse_json(line) for line in lines if line.strip())
    first = next(values, None)
    header = SessionHeader.from_json(first)
    return LoggedSession(header, check_contiguous(_events(values)))


def _events(values: Iterable[Json]) -> Iterable[Event]:
    for value in values:
        if is_packed(value):
            yield from expand(value)
        else:
            yield Event.from_json(value)


def check_contiguous(events: Iterable[Event], first: int = 0) -> tuple[Event, ...]:
    """The events, once their seqs are known to count up from ``first``.

    Raises:
        FormatError: slug ``seq-gap``.
    """
    checked = tuple(events)
    for expected, event in enumerate(checked, first):
        if event.seq != expected:
            raise FormatError("seq-gap", f"event {event.seq} stands where {expected} belongs")
    return checked


def open_turn(events: Sequence[Event]) -> int | None:
    """The number of the turn that is still open at the end, or None.

    A turn that was never ended but has a later one begun counts as over (a poisoned log).
    """
    for event in reversed(events):
        if event.type == TURN_END:
            return None
        if event.type == TURN_START:
            return int(event.data["turn"])
    return None


def last_turn(events: Sequence[Event]) -> int:
    """The highest turn number so far, 0 before the first."""
    return next((int(event.data["turn"]) for event in reversed(events) if event.type == TURN_START), 0)


def fork_seed(events: Sequence[Event], cut: int) -> tuple[Event, ...]:
    """The events a fork copies: everything up to and including seq ``cut``.

    Raises:
        SessionForkError: the cut lies in an open turn, or outside the log.
    """
    if not -1 <= cut < len(events):
        raise SessionForkError(f"the log has no event {cut} to fork at", code="FORK_OUT_OF_RANGE", status=400)
    seed = tuple(events[: cut + 1])
    turn = open_turn(seed)
    if turn is not None:
        raise SessionForkError(f"event {cut} lies inside open turn {turn}; fork at the end of a turn")
    return seed


def fork_cut(events: Sequence[Event], at_seq: int | None = None) -> int:
    """The seq to fork at: the end of the turn at or after ``at_seq``, and what follows it before the next turn.

    Without ``at_seq`` it is the end of the log, or of the last ended turn when one is open.

    Raises:
        SessionForkError: no turn ends at or after ``at_seq``.
    """
    if at_seq is None:
        if open_turn(events) is None:
            return len(events) - 1
        return max(index for index, event in enumerate(events) if event.type == TURN_START) - 1
    ends = (index for index in range(max(0, at_seq), len(events)) if events[index].type == TURN_END)
    cut = next(ends, None)
    if cut is None:
        raise SessionForkError(f"no turn ends at or after event {at_seq}")
    while cut + 1 < len(events) and events[cut + 1].type != TURN_START:
        cut += 1
    return cut
