"""What every engine promises, run against each of them."""

from pathlib import Path
from typing import Any, TypeVar

import pytest

from tapster.actors.store import (
    ANY_BASE,
    AppendEvents,
    CreateSession,
    DeleteDocument,
    DeleteSession,
    DocumentConflict,
    DocumentKey,
    Done,
    Engine,
    EnsureSelection,
    Keyed,
    LogGap,
    MergeSelection,
    PutAudits,
    PutDocument,
    PutResource,
    PutTrace,
    Refused,
    ResourceUse,
    Retention,
    SelectionTable,
    SessionKey,
    SessionLogExists,
    SessionLogMissing,
    SetHeader,
    Tables,
    Together,
    Write,
)
from tapster.engine.ecma import stringify
from tapster.engine.errors import TapsterError
from tapster.engine.policy import Selection, SelectionLimits, SessionSelectionLimitError
from tapster.engine.trace import RetentionLimits
from tests.actors.store.conftest import open_named

R = TypeVar("R")
S1 = SessionKey("embedded", "s1")
S2 = SessionKey("embedded", "s2")
FAR = SessionKey("far", "s1")
CHAT = DocumentKey("chats", "chat-1")
NAMES = [CHAT, DocumentKey("settings", "ui-settings"), DocumentKey("strategies", "p1"), DocumentKey("mvu", "a/b", "h")]
ODD = {"9": "\ud800", "text": "火 \u2028 \x00", "number": 0.1, "none": None, "list": [1, True, {"b": 1, "a": 2}]}


def nested(depth: int) -> Any:
    value: Any = {"end": True}
    for _ in range(depth):
        value = {"in": [value]}
    return value


def do(engine: Engine, write: Write[R], key: str | None = None, now: int = 1_000) -> R:
    """Commit one write; its refusal is raised."""
    outcome = engine.commit([Keyed(write, key)], now)[0]
    if isinstance(outcome, Refused):
        raise outcome.error
    value: R = outcome.value
    return value


def event(seq: int, kind: str = "note", **data: Any) -> dict[str, Any]:
    return {"type": kind, "seq": seq, "time": seq, "data": data}


def record(identity: str, session: str = "s1", **more: Any) -> dict[str, Any]:
    return {"schemaVersion": 4, "id": identity, "sessionId": session, "turn": 1, "recordedAt": 1, **more}


@pytest.mark.parametrize("key", NAMES, ids=str)
def test_documents_come_back_as_written(engine: Engine, key: DocumentKey) -> None:
    with engine.read() as tables:
        assert tables.documents.get(key) is None
    written = do(engine, PutDocument(key, ODD, 5))
    with engine.read() as tables:
        found = tables.documents.get(key)
    assert found is not None
    assert (found.value, found.revision) == (ODD, written.revision)
    assert do(engine, DeleteDocument(key)) is True
    assert do(engine, DeleteDocument(key)) is False


def test_nesting_beyond_the_stack_is_kept(engine: Engine) -> None:
    deep = nested(1_500)
    wanted = stringify(deep)
    do(engine, PutDocument(CHAT, deep, 5))
    do(engine, PutResource("preset", "p", {"name": "p", "raw": deep}, 5))
    do(engine, CreateSession(S1, {"id": "s1"}, 5))
    do(engine, AppendEvents(S1, 0, [{"type": "deep", "seq": 0, "data": deep}], 5))
    do(engine, PutTrace(S1, record("t", extra=deep)))
    with engine.read() as tables:
        found, resource = tables.documents.get(CHAT), tables.resources.get("preset", "p")
        assert found is not None
        assert resource is not None
        trace = tables.traces.get(S1, "t")
        kept = [found.value, resource.document["raw"], tables.sessions.read(S1)[0]["data"], trace["extra"]]  # type: ignore[index]
    assert [stringify(value) == wanted for value in kept] == [True] * 4


@pytest.mark.parametrize("key", NAMES, ids=str)
def test_a_stale_base_is_refused_and_nothing_is_written(engine: Engine, key: DocumentKey) -> None:
    first = do(engine, PutDocument(key, {"n": 1}, 5, None))
    with pytest.raises(DocumentConflict, match=key.name):
        do(engine, PutDocument(key, {"n": 2}, 5, None))
    second = do(engine, PutDocument(key, {"n": 2}, 6, first.revision))
    with pytest.raises(DocumentConflict):
        do(engine, PutDocument(key, {"n": 3}, 7, first.revision))
    do(engine, DeleteDocument(key))
    with pytest.raises(DocumentConflict):
        do(engine, PutDocument(key, {"n": 3}, 7, second.revision))
    with engine.read() as tables:
        assert tables.documents.get(key) is None


def test_a_bad_write_does_not_fail_its_batch(engine: Engine) -> None:
    good, late = PutDocument(CHAT, {"n": 1}, 1, None), PutDocument(CHAT, {"n": 3}, 1)
    bad = Together([PutDocument(DocumentKey("chats", "other"), {}, 1), PutDocument(CHAT, {"n": 2}, 1, None)])
    outcomes = engine.commit([Keyed(good), Keyed(bad), Keyed(late)], 1)
    assert [type(outcome) for outcome in outcomes] == [Done, Refused, Done]
    with engine.read() as tables:
        assert [document.key.name for document in tables.documents.items("chats")] == ["chat-1"]
        assert tables.documents.count("chats")[0] == 1


@pytest.mark.parametrize("engine_name", ["sqlite", "files"])
@pytest.mark.parametrize("name", ["\ud800", "x" * 300, "..", "../../up", ".hidden", "a/b", "CON", "é\n"])
def test_odd_names_are_stored_or_refused_alone(engine: Engine, name: str, tmp_path: Path) -> None:
    outcomes = engine.commit(
        [Keyed(PutDocument(DocumentKey("chats", name), {"n": 1}, 1)), Keyed(PutDocument(CHAT, {"n": 2}, 1))], 1
    )
    assert isinstance(outcomes[1], Done)
    with engine.read() as tables:
        assert tables.documents.get(CHAT) is not None
    if isinstance(outcomes[0], Refused):
        assert outcomes[0].error.code == "INVALID_REQUEST"
        with pytest.raises(TapsterError), engine.read() as tables:
            tables.documents.get(DocumentKey("chats", name))
    else:
        with engine.read() as tables:
            assert [item.key.name for item in tables.documents.items("chats") if item.key != CHAT] == [name]
    assert not [path for path in tmp_path.parent.iterdir() if path.name.startswith("up")]


def test_a_bug_in_a_write_undoes_the_batch(engine: Engine) -> None:
    class Buggy:
        def apply(self, tables: Tables) -> None:
            tables.documents.put(CHAT, {"n": 2}, base=ANY_BASE, now=1)
            raise ZeroDivisionError

        repeat = apply

    with pytest.raises(ZeroDivisionError):
        engine.commit([Keyed(PutDocument(CHAT, {"n": 1}, 1)), Keyed(Buggy())], 1)
    with engine.read() as tables:
        assert tables.documents.get(CHAT) is None
    assert do(engine, PutDocument(CHAT, {"n": 3}, 1, None)).value == {"n": 3}


def test_a_repeated_key_changes_nothing(engine: Engine) -> None:
    do(engine, CreateSession(S1, {"id": "s1"}, 1))
    events = [event(0), event(1)]
    assert do(engine, AppendEvents(S1, 0, events, 1), "k1") == 2
    assert do(engine, AppendEvents(S1, 0, events, 1), "k1") == 2
    with engine.read() as tables:
        assert tables.sessions.read(S1) == tuple(events)


def test_a_refused_write_does_not_use_up_its_key(engine: Engine) -> None:
    with pytest.raises(SessionLogMissing):
        do(engine, AppendEvents(S1, 0, [event(0)], 1), "k1")
    do(engine, CreateSession(S1, {}, 1))
    assert do(engine, AppendEvents(S1, 0, [event(0)], 1), "k1") == 1
    with engine.read() as tables:
        assert len(tables.sessions.read(S1)) == 1


def test_a_refused_write_leaves_the_keys_of_its_batch_alone(engine: Engine) -> None:
    stale = PutDocument(CHAT, {"n": 0}, 1, "another")
    batch = [
        Keyed(PutDocument(CHAT, {"n": 1}, 1), "a"),
        Keyed(stale, "b"),
        Keyed(PutDocument(CHAT, {"n": 2}, 1), "a"),
        Keyed(PutDocument(NAMES[1], {"n": 3}, 1), "b"),
    ]
    outcomes = engine.commit(batch, 1)
    assert [type(outcome) for outcome in outcomes] == [Done, Refused, Done, Done]
    with engine.read() as tables:
        found = [tables.documents.get(key) for key in (CHAT, NAMES[1])]
    assert [document and document.value for document in found] == [{"n": 1}, {"n": 3}]


def test_resources_keep_document_original_and_cover(engine: Engine) -> None:
    document = {"id": "c1", "name": "艾莉", "source": {"raw": ODD}}
    head = do(engine, PutResource("character", "c1", document, 7, b"\x89PNG", b"cover"))
    assert (head.name, head.has_cover) == ("艾莉", True)
    changed = do(engine, PutResource("character", "c1", {**document, "name": "Elly"}, 9))
    with engine.read() as tables:
        found = tables.resources.get("character", "c1")
        assert found is not None
        assert (found.document["source"]["raw"], found.head.revision) == (ODD, changed.revision)
        assert tables.resources.original("character", "c1") == b"\x89PNG"
        assert tables.resources.cover("character", "c1") == b"cover"
        assert [head.name for head in tables.resources.heads("character")] == ["Elly"]
        assert tables.resources.heads("preset") == ()
        assert tables.resources.revision("character", "c1", head.revision) is None


def test_dropping_a_cover_and_deleting(engine: Engine) -> None:
    do(engine, PutResource("character", "c1", {"name": "a"}, 7, b"file", b"cover"))

    class DropCover:
        def apply(self, tables: Tables) -> None:
            tables.resources.drop_cover("character", "c1")

        repeat = apply

    class Delete:
        def apply(self, tables: Tables) -> bool:
            return tables.resources.delete("character", "c1")

        repeat = apply

    do(engine, DropCover())
    with engine.read() as tables:
        head = tables.resources.head("character", "c1")
        assert head is not None
        assert not head.has_cover
        assert tables.resources.cover("character", "c1") is None
    assert do(engine, Delete()) is True
    assert do(engine, Delete()) is False
    with engine.read() as tables:
        assert tables.resources.get("character", "c1") is None
        assert tables.resources.original("character", "c1") is None


def test_a_revision_stays_while_a_trace_names_it(engine_name: str, tmp_path: Path) -> None:
    engine = open_named(engine_name, tmp_path, Retention(RetentionLimits(max_records=1)))
    old = do(engine, PutResource("preset", "p", {"name": "old"}, 1))
    do(engine, PutTrace(S1, record("t1"), [ResourceUse("preset", "p", old.revision)]))
    do(engine, PutResource("preset", "p", {"name": "new"}, 2))
    with engine.read() as tables:
        assert tables.resources.revision("preset", "p", old.revision) == {"name": "old"}
    do(engine, PutTrace(S1, record("t2")))
    with engine.read() as tables:
        assert tables.resources.revision("preset", "p", old.revision) is None
        assert [item["id"] for item in tables.traces.of_session(S1)] == ["t2"]
    engine.close()


def test_a_log_is_contiguous_and_append_only(engine: Engine) -> None:
    with pytest.raises(SessionLogMissing):
        do(engine, SetHeader(S1, {}, 1))
    do(engine, CreateSession(S1, {"id": "s1"}, 1))
    with pytest.raises(SessionLogExists):
        do(engine, CreateSession(S1, {}, 1))
    assert do(engine, AppendEvents(S1, 0, [event(0), event(1, "turn/start")], 2)) == 2
    for first, events in ((3, [event(3)]), (2, [event(7)])):
        with pytest.raises(LogGap) as caught:
            do(engine, AppendEvents(S1, first, events, 3))
        assert caught.value.details["expectedSeq"] == 2
    do(engine, AppendEvents(S1, 2, [event(2), event(3, "turn/start"), event(4)], 4))
    assert do(engine, SetHeader(S1, {"id": "s1", "title": "x"}, 5)).next_seq == 5
    with engine.read() as tables:
        assert [item["seq"] for item in tables.sessions.read(S1)] == [0, 1, 2, 3, 4]
        assert [item["seq"] for item in tables.sessions.read(S1, 1, 2)] == [1, 2]
        assert [item["seq"] for item in tables.sessions.read(S1, 4)] == [4]
        assert tables.sessions.read(S1, 5) == ()
        assert tables.sessions.read(S2) == ()
        assert tables.sessions.latest(S1, "turn/start") == event(3, "turn/start")
        assert tables.sessions.latest(S1, "turn/start", 3) == event(1, "turn/start")
        assert tables.sessions.latest(S1, "nothing") is None
        head = tables.sessions.head(S1)
    assert head is not None
    assert (head.header, head.next_seq, head.created_at, head.updated_at) == ({"id": "s1", "title": "x"}, 5, 1, 5)


def test_stored_events_are_passed_over_and_others_are_not(engine: Engine) -> None:
    do(engine, CreateSession(S1, {}, 1))
    do(engine, AppendEvents(S1, 0, [event(0), event(1)], 2))
    assert do(engine, AppendEvents(S1, 1, [event(1), event(2)], 2)) == 3
    with pytest.raises(TapsterError) as caught:
        do(engine, AppendEvents(S1, 1, [event(1, "other"), event(2)], 2))
    assert caught.value.code == "LOG_DIVERGED"
    with engine.read() as tables:
        assert [item["type"] for item in tables.sessions.read(S1)] == ["note"] * 3


def test_a_fork_copies_events_and_selection_in_one_change(engine: Engine) -> None:
    do(engine, CreateSession(S1, {}, 1, defaults=Selection(preset_id="p")))
    do(engine, AppendEvents(S1, 0, [event(0), event(1), event(2)], 2))
    do(engine, MergeSelection(S1, {"userId": "u"}, Selection(), 3))
    head = do(engine, CreateSession(S2, {"parentSession": "s1"}, 4, S1, 1, Selection(preset_id="other")))
    assert head.next_seq == 2
    do(engine, AppendEvents(S2, 2, [event(2, "own")], 5))
    with engine.read() as tables:
        assert [item["type"] for item in tables.sessions.read(S2)] == ["note", "note", "own"]
        assert SelectionTable(tables).find(S2) == Selection(preset_id="p", user_id="u")
        assert [head.key for head in tables.sessions.heads("embedded")] == [S2, S1]
    with pytest.raises(LogGap):
        do(engine, CreateSession(FAR, {}, 6, S1, 9, Selection()))
    with engine.read() as tables:
        assert tables.sessions.head(FAR) is None
        assert SelectionTable(tables).find(FAR) is None
    assert do(engine, DeleteSession(S2)) is True
    with engine.read() as tables:
        assert (tables.sessions.head(S2), SelectionTable(tables).find(S2)) == (None, None)


def test_two_hosts_may_have_the_same_session(engine: Engine) -> None:
    for key in (S1, FAR):
        do(engine, CreateSession(key, {"host": key.host}, 1, defaults=Selection(preset_id=key.host)))
        do(engine, PutTrace(key, record("t", host=key.host)))
    with engine.read() as tables:
        for key in (S1, FAR):
            head = tables.sessions.head(key)
            assert head is not None
            assert head.header == {"host": key.host}
            assert SelectionTable(tables).find(key) == Selection(preset_id=key.host)
            assert [item["host"] for item in tables.traces.of_session(key)] == [key.host]
        assert {head.key for head in tables.sessions.heads()} == {S1, FAR}


def test_selections_are_merged_frozen_cleared_and_bounded(engine: Engine) -> None:
    assert do(engine, EnsureSelection(S1, None, Selection(preset_id="p"), 1)) == (Selection(preset_id="p"), True)
    assert do(engine, EnsureSelection(S1, None, Selection(), 1)) == (Selection(preset_id="p"), False)
    merged, changed = do(engine, MergeSelection(S1, {"worldBookIds": ["a", "b"]}, Selection(), 2))
    assert (merged, changed) == (Selection(preset_id="p", world_book_ids=("a", "b")), True)
    assert do(engine, MergeSelection(S1, {}, Selection(), 2)) == (merged, False)
    do(engine, EnsureSelection(FAR, None, Selection(world_book_ids=("b",)), 1))
    with pytest.raises(SessionSelectionLimitError):
        do(engine, EnsureSelection(S2, None, Selection(), 1, SelectionLimits(max_sessions=2)))
    with pytest.raises(SessionSelectionLimitError) as caught:
        do(engine, EnsureSelection(S2, None, Selection(), 1, SelectionLimits(max_state_bytes=300)))
    assert caught.value.code == "SESSION_SELECTION_STORAGE_LIMIT_REACHED"

    class Clear:
        def apply(self, tables: Tables) -> tuple[SessionKey, ...]:
            return SelectionTable(tables).clear("world-book", "b", 3)

        repeat = apply

    assert set(do(engine, Clear())) == {S1, FAR}
    with engine.read() as tables:
        assert SelectionTable(tables).find(S1) == Selection(preset_id="p", world_book_ids=("a",))
        assert SelectionTable(tables).find(S2) is None


def test_traces_keep_write_order_audits_and_limits(engine_name: str, tmp_path: Path) -> None:
    engine = open_named(engine_name, tmp_path, Retention(RetentionLimits(max_records=3, max_record_bytes=4096)))
    do(engine, PutTrace(S1, record("a")))
    do(engine, PutTrace(S1, record("b")))
    do(engine, PutAudits(S1, [{"captureId": "a", "turn": 1}]))
    do(engine, PutTrace(S1, record("a", again=True)))
    with engine.read() as tables:
        assert [(item["id"], bool(item.get("audit"))) for item in tables.traces.of_session(S1)] == [
            ("b", False),
            ("a", True),
        ]
    big = do(engine, PutTrace(S1, record("big", extra="x" * 5000)))
    assert big["contentStatus"] == "omitted-size-limit"
    do(engine, PutTrace(S2, record("c", "s2")))
    with engine.read() as tables:
        assert [item["id"] for item in tables.traces.of_session(S1)] == ["a", "big"]
        assert tables.traces.get(S2, "c") is not None
        assert tables.traces.get(S1, "c") is None
        assert tables.traces.size()[0] == 3
    with pytest.raises(TapsterError):
        do(engine, PutTrace(S1, {"id": "x", "schemaVersion": 3}))
    with pytest.raises(TapsterError):
        do(engine, PutAudits(S1, [{"turn": 1}]))
    engine.close()


def test_retention_by_session_and_age(engine_name: str, tmp_path: Path) -> None:
    engine = open_named(engine_name, tmp_path, Retention(max_per_session=2, max_age_ms=100))
    for number in range(4):
        do(engine, PutTrace(S1, record(f"t{number}", recordedAt=1_000 + number)))
    with engine.read() as tables:
        assert [item["id"] for item in tables.traces.of_session(S1)] == ["t2", "t3"]
    do(engine, PutTrace(S2, record("new", "s2", recordedAt=2_000)))
    with engine.read() as tables:
        assert tables.traces.of_session(S1) == ()
    engine.close()


def test_values_are_never_shared(engine: Engine) -> None:
    value: dict[str, Any] = {"list": [1]}
    do(engine, PutDocument(CHAT, value, 1))
    value["list"].append(2)
    with engine.read() as tables:
        found = tables.documents.get(CHAT)
        assert found is not None
        found.value["list"].append(3)
    with engine.read() as tables:
        again = tables.documents.get(CHAT)
    assert again is not None
    assert again.value == {"list": [1]}


@pytest.mark.parametrize("engine_name", ["sqlite", "files"])
def test_everything_survives_a_restart(engine_name: str, tmp_path: Path) -> None:
    engine = open_named(engine_name, tmp_path)
    do(engine, CreateSession(S1, {"id": "s1"}, 1, defaults=Selection(preset_id="p")))
    do(engine, AppendEvents(S1, 0, [event(0), event(1)], 2))
    do(engine, PutTrace(S1, record("t")))
    do(engine, PutResource("user", "u", {"id": "u", "name": "n", "description": ""}, 3))
    do(engine, PutDocument(CHAT, {"n": 1}, 4))
    engine.close()
    engine = open_named(engine_name, tmp_path)
    assert engine.check() == ()
    with engine.read() as tables:
        assert tables.sessions.read(S1) == (event(0), event(1))
        assert SelectionTable(tables).find(S1) == Selection(preset_id="p")
        assert [item["id"] for item in tables.traces.of_session(S1)] == ["t"]
        assert [head.name for head in tables.resources.heads("user")] == ["n"]
        found = tables.documents.get(CHAT)
    assert found is not None
    assert found.value == {"n": 1}
    engine.close()


def test_strategies_and_what_sessions_applied_are_kept_apart_and_by_host(engine: Engine) -> None:
    """The kinds of ``assembly-presets.json``: null is a deliberate off, not an absence (spec/assembler §15)."""
    preset = {"id": "mine", "name": "M", "blocks": [{"id": "b"}]}
    keys = {
        DocumentKey("strategies", "mine"): preset,
        DocumentKey("strategy-selections", "s1"): None,
        DocumentKey("strategy-selections", "s2"): {**preset, "id": "tavern-default"},
        DocumentKey("strategy-selections", "s1", "far"): preset,
    }
    do(engine, Together([PutDocument(key, value, 5) for key, value in keys.items()]))
    with engine.read() as tables:
        for key, value in keys.items():
            found = tables.documents.get(key)
            assert found is not None, key
            assert found.value == value
        applied = [(item.key.name, item.key.scope) for item in tables.documents.items("strategy-selections", None)]
        assert sorted(applied) == [("s1", ""), ("s1", "far"), ("s2", "")]
        assert [item.value for item in tables.documents.items("strategies")] == [preset]
        assert {"strategies", "strategy-selections"} <= set(tables.documents.collections())
    off = DocumentKey("strategy-selections", "s1")
    with pytest.raises(DocumentConflict):
        do(engine, PutDocument(off, preset, 6, None))
    assert do(engine, DeleteDocument(off)) is True
    with engine.read() as tables:
        assert tables.documents.get(off) is None
        assert tables.documents.get(DocumentKey("strategy-selections", "s1", "far")) is not None
