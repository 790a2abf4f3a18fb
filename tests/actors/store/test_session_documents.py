"""A session's state by event seq on every engine: as of a seq, copied below a cut, overtaken, deleted."""

from typing import Any, TypeVar

from tapster.actors.store import (
    ANY_BASE,
    DeleteSession,
    Done,
    Engine,
    EnsureSelection,
    Keyed,
    PutDocument,
    SessionKey,
    Together,
    Write,
)
from tapster.actors.store.session_documents import InheritSession, PutSessionState, SessionStates, settings_key
from tapster.engine.ecma import Json
from tapster.engine.policy import Selection

R = TypeVar("R")
PARENT, NEIGHBOUR, CHILD = SessionKey("embedded", "a"), SessionKey("embedded", "a-1"), SessionKey("embedded", "c" * 200)


def do(engine: Engine, write: Write[R]) -> R:
    (outcome,) = engine.commit([Keyed(write)], 1_000)
    assert isinstance(outcome, Done), outcome
    answer: Any = outcome.value
    return answer  # type: ignore[no-any-return]


def state(engine: Engine, key: SessionKey, seq: int) -> Json:
    with engine.read() as tables:
        return SessionStates(tables).at(key, seq)


def keep(engine: Engine, key: SessionKey, *seqs: int) -> None:
    for seq in seqs:
        do(engine, PutSessionState(key, seq, {"seq": seq}, 1_000))


def test_a_state_holds_from_its_seq_on(engine: Engine) -> None:
    keep(engine, PARENT, 4, 9, 120)
    keep(engine, NEIGHBOUR, 1)
    assert [state(engine, PARENT, seq) for seq in (3, 4, 8, 9, 119, 5_000)] == [
        None,
        {"seq": 4},
        {"seq": 4},
        {"seq": 9},
        {"seq": 9},
        {"seq": 120},
    ]


def test_states_after_events_that_were_never_stored_go(engine: Engine) -> None:
    keep(engine, PARENT, 4, 9, 12)
    do(engine, PutSessionState(PARENT, 8, {"seq": 8}, 1_000))
    assert state(engine, PARENT, 99) == {"seq": 8}
    assert state(engine, PARENT, 5) == {"seq": 4}


def test_a_session_below_another_begins_with_what_lies_before_its_cut(engine: Engine) -> None:
    keep(engine, PARENT, 4, 9)
    do(engine, PutDocument(settings_key(PARENT), {"mode": "sillytavern"}, 1_000, ANY_BASE))
    begin = Together((InheritSession(CHILD, PARENT, 9, 1_000), EnsureSelection(CHILD, PARENT, Selection(), 1_000)))
    do(engine, begin)
    assert state(engine, CHILD, 99) == {"seq": 4}
    with engine.read() as tables:
        found = tables.documents.get(settings_key(CHILD))
        assert found is not None
        assert found.value == {"mode": "sillytavern"}
    keep(engine, PARENT, 7)
    do(engine, begin)
    assert state(engine, CHILD, 99) == {"seq": 4}, "it began before"


def test_a_deleted_session_leaves_none_of_it(engine: Engine) -> None:
    keep(engine, PARENT, 4, 9)
    keep(engine, NEIGHBOUR, 2)
    do(engine, PutDocument(settings_key(PARENT), {"mode": "tavern"}, 1_000, ANY_BASE))
    do(engine, DeleteSession(PARENT))
    assert state(engine, PARENT, 99) is None
    assert state(engine, NEIGHBOUR, 99) == {"seq": 2}
    with engine.read() as tables:
        assert tables.documents.get(settings_key(PARENT)) is None
