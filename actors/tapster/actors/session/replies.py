"""The replies that may change variables, found while a session follows its host.

Source: spec/text_and_mvu C7; spec/loader §14 "Replies".
"""

from collections.abc import Iterator, Sequence
from typing import final

import attrs

from tapster.engine.mvu import Reply, counted_reply
from tapster.engine.projection import Event, event_message, tool_calls
from tapster.engine.projection.events import ASSISTANT_MESSAGE, TURN_END, TURN_START


@final
@attrs.define(eq=False)
class TurnReplies:
    """The replies of the open turn."""

    session_id: str
    _replies: list[Reply] = attrs.field(factory=list)

    def take(self, event: Event) -> Reply | None:
        """Take in an event; the end of a completed turn gives the reply that counts, if there is one."""
        if event.type == TURN_START:
            self._replies = []
        elif event.type == ASSISTANT_MESSAGE:
            self._replies.append(self._reply(event))
        elif event.type == TURN_END:
            replies, self._replies = self._replies, []
            reason = event.data.get("reason")
            is_completed = isinstance(reason, dict) and reason.get("kind") == "completed"
            found = counted_reply(replies, turn_completed=is_completed)
            return None if found is None else attrs.evolve(found, key=f"{found.key}:{event.seq}")
        return None

    def _reply(self, event: Event) -> Reply:
        message = event_message(event)
        blocks = message.get("content") if isinstance(message, dict) else None
        texts = [block["text"] for block in blocks or () if isinstance(block, dict) and block.get("type") == "text"]
        place = (event.data.get("turn"), event.data.get("step"))
        return Reply(
            key=":".join(map(str, (self.session_id, message.get("id"), event.seq, *place))),
            seq=event.seq,
            text="\n".join(texts),
            interrupted=event.data.get("interrupted") is True,
            has_tool_calls=bool(tool_calls(message)),
        )


def counted_replies(session_id: str, own: Sequence[Event]) -> Iterator[Reply]:
    """The replies that count among a session's own events, oldest first."""
    turns = TurnReplies(session_id)
    for event in own:
        reply = turns.take(event)
        if reply is not None:
            yield reply
