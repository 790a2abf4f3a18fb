"""Pending input as a pure state: claims, edits, caps, and what a request may scan."""

from typing import Any

import pytest

from tapster.engine import limits
from tapster.engine.projection import (
    ActivationContext,
    ContextMetadata,
    HistoryMessage,
    PendingInput,
    ProjectionLimits,
    activate,
    end_turn,
    observe,
    replay,
)

Json = Any


def text_message(text: str, *more: str, id: str = "m", role: str = "user") -> Json:
    return {"id": id, "role": role, "content": [{"type": "text", "text": each} for each in (text, *more)]}


def splice(seq: int, start: int, *inserted: Json, removed: int | None = None, target: str = "next-turn") -> Json:
    data: dict[str, Json] = {"target": target, "start": start, "inserted": list(inserted)}
    if removed is not None:
        data["removedCount"] = removed
    return {"type": "agent/inbox/spliced", "seq": seq, "data": data}


def run(*events: Json, limits: ProjectionLimits | None = None) -> PendingInput:
    state = PendingInput(limits=limits or ProjectionLimits())
    for event in events:
        state, accepted = observe(state, event)
        assert accepted
    return state


def scanned(state: PendingInput, *history: HistoryMessage) -> ActivationContext:
    return activate(state, history)[0]


def test_a_claim_is_used_once() -> None:
    state = run(splice(1, 0, text_message("hello")), splice(2, 0, removed=1))
    context, after = activate(state, [])
    assert context.text == "hello"
    assert context.metadata.claim_event_seqs == (2,)
    assert activate(after, [])[0].text == ""


def test_replay_restores_queues_without_claims() -> None:
    state = replay(PendingInput(), [splice(1, 0, text_message("a"), text_message("b")), splice(2, 0, removed=1)])
    assert scanned(state).text == ""
    state, _ = observe(state, splice(3, 0, removed=1))
    assert scanned(state).text == "b"


def test_replay_stops_before_the_event_at_hand() -> None:
    events = [splice(1, 0, text_message("a")), splice(2, 0, removed=1)]
    state, _ = observe(replay(PendingInput(), events, before=2), events[1])
    assert scanned(state).text == "a"


def test_the_end_of_a_turn_drops_the_batch() -> None:
    assert scanned(end_turn(run(splice(1, 0, text_message("a")), splice(2, 0, removed=1)))).text == ""


@pytest.mark.parametrize(
    "data",
    [
        {"target": "other", "start": 0, "inserted": []},
        {"target": "next-turn", "start": -1, "inserted": []},
        {"target": "next-turn", "start": True, "inserted": []},
        {"target": "next-turn", "start": 0, "inserted": None},
        {"target": "next-turn", "start": 0, "removedCount": None, "inserted": []},
        {"target": "next-turn", "start": 0, "removedCount": 1, "inserted": []},
        {"target": "next-turn", "start": 0, "inserted": [], "outcome": None},
        None,
    ],
)
def test_an_invalid_splice_changes_only_the_count(data: Json) -> None:
    state, accepted = observe(PendingInput(), {"type": "agent/inbox/spliced", "seq": 1, "data": data})
    assert not accepted
    assert state == PendingInput(invalid_events=1)


def test_messages_past_the_cap_are_counted_and_claimable() -> None:
    small = ProjectionLimits(max_queued_messages=1)
    state = run(splice(1, 0, text_message("a"), text_message("b")), splice(2, 2, text_message("c")), limits=small)
    assert state.next_turn.length == 3
    state, accepted = observe(state, splice(3, 0, removed=3))
    assert accepted
    context = scanned(state)
    assert (context.text, context.metadata.pending_message_count, context.metadata.truncated) == ("a", 3, True)


def test_a_long_message_keeps_its_last_blocks_whole() -> None:
    state = run(splice(1, 0, text_message("abc", "def", "gh")), limits=ProjectionLimits(max_queued_characters=6))
    assert state.next_turn.items[0].text == "def\ngh"
    state = run(splice(1, 0, text_message("abc", "gh")), limits=ProjectionLimits(max_queued_characters=3))
    assert (state.next_turn.items[0].text, state.next_turn.items[0].truncated) == ("gh", True)


def test_other_roles_keep_their_place_without_text() -> None:
    state = run(splice(1, 0, text_message("secret", role="tool"), text_message("b")))
    assert [item.text for item in state.next_turn.items] == ["", "b"]


def test_scan_keeps_the_newest_characters_and_whole_pairs_of_the_count() -> None:
    history = [HistoryMessage(None, "user", "🦊🦊"), HistoryMessage(None, "assistant", "end")]
    context = activate(PendingInput(limits=ProjectionLimits(max_scan_characters=6)), history)[0]
    assert context.metadata.scanned_characters == 6
    assert context.text == "🦊\nend"
    assert context.messages[0].truncated


def test_options_fall_back_and_are_clamped() -> None:
    chosen = ProjectionLimits.from_options({"maxScanMessages": 0, "maxScanCharacters": 1e9, "maxQueuedMessages": "9"})
    assert chosen == ProjectionLimits(max_scan_characters=limits.MAX_SCAN_CHARACTERS)


def test_metadata_without_a_context() -> None:
    value = ContextMetadata.of_plain_text("🦊 text").to_json()
    assert value["kind"] == "durable-history-only"
    assert value["scannedCharacters"] == 7
    assert "inputCharacters" not in value
