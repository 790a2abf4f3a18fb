"""The outbox of trace records: sessions take turns, and one that floods it loses only its own."""

from collections.abc import Sequence
from typing import Any, cast

import attrs
import trio

from tapster.actors.store import SessionKey, Store
from tapster.actors.traces.outbox import CAPACITY, WRITERS, open_trace_outbox
from tapster.engine.ecma import Json


@attrs.define(eq=False)
class GatedStore:
    """Takes records in the order in which they are asked to be written, once it is opened."""

    gate: trio.Event = attrs.field(factory=trio.Event)
    written: list[tuple[str, str]] = attrs.field(factory=list)

    async def put_trace(self, key: SessionKey, record: Json, uses: Sequence[Any]) -> None:
        self.written.append((key.session, record["id"]))
        await self.gate.wait()

    def of(self, session_id: str) -> list[str]:
        return [record_id for name, record_id in self.written if name == session_id]


def key(session_id: str) -> SessionKey:
    return SessionKey("h", session_id)


async def test_a_session_with_one_record_is_not_behind_a_thousand_of_another(
    autojump_clock: trio.testing.MockClock,
) -> None:
    store = GatedStore()
    async with open_trace_outbox(cast(Store, store), lambda *_, **__: None) as outbox:
        for number in range(500):
            outbox.put(key("flood"), {"id": f"f{number}"})
        await trio.testing.wait_all_tasks_blocked()
        outbox.put(key("other"), {"id": "o"})
        store.gate.set()
        await trio.testing.wait_all_tasks_blocked()
    assert store.written.index(("other", "o")) <= 2 * WRITERS
    assert store.of("flood") == [f"f{number}" for number in range(500)]


async def test_a_flood_loses_its_own_newest_and_the_newcomer_none(autojump_clock: trio.testing.MockClock) -> None:
    store = GatedStore()
    dropped: list[Any] = []

    def log(level: str, event: str, **fields: object) -> None:
        if event == "trace.dropped":
            dropped.append(fields["session"])

    async with open_trace_outbox(cast(Store, store), log) as outbox:
        for number in range(CAPACITY + 50):
            outbox.put(key("flood"), {"id": f"f{number}"})
        for number in range(10):
            outbox.put(key("other"), {"id": f"o{number}"})
        assert outbox.statistics().waiting == CAPACITY
        assert outbox.statistics().dropped == len(dropped) == 60
        store.gate.set()
    assert store.of("other") == [f"o{number}" for number in range(10)]
    assert store.of("flood") == [f"f{number}" for number in range(CAPACITY - 10)]
    assert set(dropped) == {str(key("flood"))}


async def test_a_newer_state_follows_one_that_is_being_written(autojump_clock: trio.testing.MockClock) -> None:
    store = GatedStore()
    async with open_trace_outbox(cast(Store, store), lambda *_, **__: None) as outbox:
        outbox.put(key("s"), {"id": "a"})
        await trio.testing.wait_all_tasks_blocked()
        outbox.put(key("s"), {"id": "a"})
        outbox.put(key("s"), {"id": "b"})
        await trio.testing.wait_all_tasks_blocked()
        assert store.of("s") == ["a", "b"], "two writes of one record are never under way at once"
        store.gate.set()
    assert store.of("s") == ["a", "b", "a"]
