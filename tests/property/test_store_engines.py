"""Programs of writes in batches give the same answers and the same state on every engine, restarts included."""

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tapster.actors.store import (
    ANY_BASE,
    AppendEvents,
    CreateSession,
    DeleteDocument,
    DeleteSession,
    DocumentKey,
    Done,
    Engine,
    EnsureSelection,
    Keyed,
    MergeSelection,
    PutAudits,
    PutDocument,
    PutResource,
    PutTrace,
    ResourceUse,
    Retention,
    SelectionTable,
    SessionKey,
    Tables,
    Together,
)
from tapster.engine.policy import Selection
from tapster.engine.trace import RetentionLimits
from tests.actors.store.conftest import ENGINES, open_named

KEYS = [SessionKey(host, session) for host in ("embedded", "far") for session in ("a", "b")]
NAMES = [DocumentKey(collection, name) for collection in ("chats", "settings", "strategies") for name in ("x", "y")]
RETENTION = Retention(RetentionLimits(max_records=3), max_per_session=2)
keys, names = st.sampled_from(KEYS), st.sampled_from(NAMES)
values = st.dictionaries(st.sampled_from(["n", "9", "t"]), st.integers(-5, 5) | st.text(max_size=3), max_size=3)
now = st.integers(1, 9)


def trace(key: SessionKey, number: int) -> PutTrace:
    record = {"schemaVersion": 4, "id": f"t{number}", "sessionId": key.session, "recordedAt": number}
    return PutTrace(key, record, [ResourceUse("preset", "p", "0" * 64)])


def events(key: SessionKey, first: int, count: int, kind: str) -> AppendEvents:
    return AppendEvents(key, first, [{"type": kind, "seq": first + step} for step in range(count)], 1)


simple = st.one_of(
    st.builds(PutDocument, names, values, now, st.sampled_from([ANY_BASE, None, "stale"])),
    st.builds(DeleteDocument, names),
    st.builds(CreateSession, keys, values, now),
    st.builds(CreateSession, keys, values, now, keys, st.integers(-1, 3), st.just(Selection(preset_id="p"))),
    st.builds(events, keys, st.integers(0, 4), st.integers(1, 2), st.sampled_from("ab")),
    st.builds(DeleteSession, keys),
    st.builds(trace, keys, st.integers(0, 3)),
    st.builds(lambda key, number: PutAudits(key, [{"captureId": f"t{number}"}]), keys, st.integers(0, 3)),
    st.builds(PutAudits, keys, st.just([{}])),
    st.builds(EnsureSelection, keys, keys, st.just(Selection()), now),
    st.builds(lambda key, book, at: MergeSelection(key, {"worldBookIds": [book]}, Selection(), at), keys,
              st.sampled_from("xyz"), now),
    st.builds(lambda number, at: PutResource("preset", f"p{number}", {"name": "n", "n": number}, at, b"o"),
              st.integers(0, 2), now),
)  # fmt: skip
writes = simple | st.builds(Together, st.lists(simple, min_size=2, max_size=3))
keyed = st.builds(Keyed, writes, st.none() | st.sampled_from(["k1", "k2"]))
programs = st.lists(st.lists(keyed, min_size=1, max_size=4), min_size=1, max_size=6)


def answer(outcome: Any) -> Any:
    if not isinstance(outcome, Done):
        return outcome.error.code
    return plain(outcome.value)


def plain(value: Any) -> Any:
    """An answer without revisions, which are each engine's own."""
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    return type(value).__name__ if hasattr(value, "revision") else value


def state(tables: Tables) -> Any:
    documents = [tables.documents.get(name) for name in NAMES]
    return {
        "documents": [found and found.value for found in documents],
        "selections": sorted(SelectionTable(tables).all(), key=lambda item: str(item[0])),
        "sessions": {
            str(key): (tables.sessions.head(key), tables.sessions.read(key), tables.sessions.read(key, 1, 2))
            for key in KEYS
        },
        "latest": [tables.sessions.latest(key, "b") for key in KEYS],
        "traces": [tables.traces.of_session(key) for key in KEYS if key.host == "embedded"],
        "resources": sorted((head.id, head.name, head.original_sha256) for head in tables.resources.heads("preset")),
    }


def run(engine: Engine, program: list[list[Keyed]]) -> Any:
    answers = [[answer(outcome) for outcome in engine.commit(batch, 1)] for batch in program]
    with engine.read() as tables:
        return answers, state(tables)


@settings(max_examples=25, deadline=None)
@given(programs)
def test_engines_agree(program: list[list[Keyed]]) -> None:
    program = [[item for item in batch if not _is_of_far_traces(item)] for batch in program]
    results = {}
    with tempfile.TemporaryDirectory() as place:
        for name in ENGINES:
            folder = Path(place) / name
            engine = open_named(name, folder, RETENTION)
            results[name] = run(engine, program)
            engine.close()
            if name != "memory":
                again = open_named(name, folder, RETENTION)
                with again.read() as tables:
                    assert state(tables) == results[name][1]
                assert again.check() == ()
                again.close()
    assert results["sqlite"] == results["memory"]
    assert results["files"] == results["memory"]


def _is_of_far_traces(item: Keyed) -> bool:
    """The contract's records file bounds each host's traces by itself, the database bounds all together."""
    parts: Any = getattr(item.write, "writes", [item.write])
    return any(isinstance(part, PutTrace | PutAudits) and part.key.host == "far" for part in parts)
