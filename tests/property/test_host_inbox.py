"""The host's queues and the projection that follows their splices always agree."""

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tapster.actors.hosts.embedded.inbox import InboxError, Queues, Splice, replay
from tapster.engine.ecma import Json
from tapster.engine.projection import Event, PendingInput, observe

Move = Callable[[Queues, Json], tuple[Splice, ...]]
MOVES: dict[str, Move] = {
    "followup": lambda queues, message: (queues.insertion("next-turn", message),),
    "steer": lambda queues, message: (queues.insertion("next-step", message),),
    "first": lambda queues, message: (queues.insertion("next-step", message, first=True),),
    "replace": lambda queues, message: (queues.replacement(pick(queues, message), message),),
    "remove": lambda queues, message: (queues.removal(pick(queues, message)),),
    "turn": lambda queues, message: queues.claim(new_turn=True),
    "step": lambda queues, message: queues.claim(new_turn=False),
    "cancel": lambda queues, message: queues.clearing(),
}


def pick(queues: Queues, message: Json) -> str:
    pending = [*queues.next_step, *queues.next_turn]
    return str(pending[message["pick"] % len(pending)]["id"]) if pending else "nobody"


def message(number: int, choice: int) -> Json:
    content = [{"type": "text", "text": f"text {number}"}]
    return {"id": f"m-{number}", "role": "user", "content": content, "source": {"kind": "user"}, "pick": choice}


@given(st.lists(st.tuples(st.sampled_from(sorted(MOVES)), st.integers(0, 9)), max_size=40))
def test_the_projection_follows_the_host(program: list[tuple[str, int]]) -> None:
    queues, state = Queues(), PendingInput()
    events: list[Event] = []
    for number, (name, choice) in enumerate(program):
        try:
            splices = MOVES[name](queues, message(number, choice))
        except InboxError:
            assert name in ("replace", "remove")
            continue
        for splice in splices:
            event = Event("agent/inbox/spliced", len(events), number, splice.to_json())
            events.append(event)
            expected = queues.removed_by(splice)
            queues = queues.apply(splice)
            before = state
            state, is_valid = observe(state, event.to_json())
            assert is_valid
            claimed = state.claimed[len(before.claimed) :]
            assert ids(claimed) == (message_ids(expected) if name in ("turn", "step") else [])
        assert ids(state.next_turn.items) == message_ids(queues.next_turn)
        assert ids(state.next_step.items) == message_ids(queues.next_step)
    assert replay(events) == queues
    assert state.invalid_events == 0


def ids(items: Any) -> list[str]:
    return [item.id for item in items]


def message_ids(messages: Any) -> list[str]:
    return [item["id"] for item in messages]
