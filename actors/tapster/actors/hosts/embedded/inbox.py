"""The two inbox queues and the splices that change them; pure.

Source: spec/dsh_host §4.
"""

from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

import attrs

from tapster.engine import limits
from tapster.engine.ecma import Json
from tapster.engine.errors import RequestError
from tapster.engine.projection import Event

Target: TypeAlias = Literal["next-turn", "next-step"]


class InboxError(RequestError):
    """A queue can't take a message or doesn't have it; ``code`` says which."""

    code = "INBOX_FULL"
    status = 409


@attrs.frozen
class Splice:
    """One normalised change of one queue; canceled when messages left without being claimed."""

    target: Target
    start: int
    removed: int = 0
    inserted: tuple[Json, ...] = ()
    canceled: bool = False

    def to_json(self) -> Json:
        """The data of an ``agent/inbox/spliced`` event."""
        value: Json = {"target": self.target, "start": self.start}
        if self.removed:
            value["removedCount"] = self.removed
        value["inserted"] = list(self.inserted)
        if self.canceled:
            value["outcome"] = "canceled"
        return value


@attrs.frozen
class Queues:
    """What waits: messages for the next turn and for the next step."""

    next_turn: tuple[Json, ...] = ()
    next_step: tuple[Json, ...] = ()

    def of(self, target: Target) -> tuple[Json, ...]:
        """The queue a splice names."""
        return self.next_turn if target == "next-turn" else self.next_step

    def removed_by(self, splice: Splice) -> tuple[Json, ...]:
        """The messages a splice takes out."""
        return self.of(splice.target)[splice.start : splice.start + splice.removed]

    def apply(self, splice: Splice) -> "Queues":
        """The queues after a splice."""
        queue = self.of(splice.target)
        after = queue[: splice.start] + splice.inserted + queue[splice.start + splice.removed :]
        return Queues(after, self.next_step) if splice.target == "next-turn" else Queues(self.next_turn, after)

    def find(self, message_id: str) -> tuple[Target, int]:
        """Where a pending message is.

        Raises:
            InboxError: ``MESSAGE_NOT_PENDING``.
        """
        targets: Sequence[Target] = ("next-step", "next-turn")
        for target in targets:
            for index, message in enumerate(self.of(target)):
                if message["id"] == message_id:
                    return target, index
        raise InboxError(f"message {message_id!r} isn't pending", code="MESSAGE_NOT_PENDING", status=404)

    def insertion(self, target: Target, message: Json, *, first: bool = False) -> Splice:
        """The splice that queues a message last or first.

        Raises:
            InboxError: ``INBOX_FULL``, or ``DUPLICATE_MESSAGE`` for an id that is pending already.
        """
        self.check_new(message)
        if len(self.next_turn) + len(self.next_step) >= limits.HOST_MAX_PENDING_MESSAGES:
            raise InboxError(f"{limits.HOST_MAX_PENDING_MESSAGES} messages are waiting already", status=503)
        return Splice(target, 0 if first else len(self.of(target)), inserted=(message,))

    def check_new(self, message: Json, *, but: str | None = None) -> None:
        """Refuse a message whose id is pending already.

        Raises:
            InboxError: ``DUPLICATE_MESSAGE``.
        """
        pending = {item["id"] for item in (*self.next_turn, *self.next_step)} - {but}
        if message["id"] in pending:
            raise InboxError(f"message {message['id']!r} is pending already", code="DUPLICATE_MESSAGE")

    def replacement(self, message_id: str, message: Json) -> Splice:
        """The splice that puts a message in the place of another."""
        target, index = self.find(message_id)
        self.check_new(message, but=message_id)
        return Splice(target, index, 1, (message,), canceled=True)

    def removal(self, message_id: str) -> Splice:
        """The splice that takes a message out."""
        target, index = self.find(message_id)
        return Splice(target, index, 1, canceled=True)

    def claim(self, *, new_turn: bool) -> tuple[Splice, ...]:
        """The splices by which a step takes its input: all of next-step, and one of next-turn for a new turn."""
        splices = [Splice("next-step", 0, len(self.next_step))] if self.next_step else []
        if new_turn and self.next_turn:
            splices.append(Splice("next-turn", 0, 1))
        return tuple(splices)

    def clearing(self) -> tuple[Splice, ...]:
        """The splices of a cancel: everything of next-step, then of next-turn."""
        targets: Sequence[Target] = ("next-step", "next-turn")
        return tuple(Splice(each, 0, len(self.of(each)), canceled=True) for each in targets if self.of(each))


def replay(events: Iterable[Event]) -> Queues:
    """The queues after a session's own events."""
    queues = Queues()
    for event in events:
        if event.type == "agent/inbox/spliced":
            data = event.data
            inserted = tuple(data.get("inserted") or ())
            queues = queues.apply(Splice(data["target"], data["start"], data.get("removedCount") or 0, inserted))
    return queues
