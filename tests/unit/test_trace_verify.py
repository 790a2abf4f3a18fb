"""Reading references: each way in which history can differ gives its own error (spec/trace §8)."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from tapster.engine.trace import (
    AssemblyPart,
    Begin,
    CaptureState,
    HostEventLogged,
    Inspection,
    NoHistory,
    ObservedRequest,
    OfficialAssembly,
    SessionView,
    StreamObserved,
    digest,
    needs_history,
    step,
    verified_detail,
)

Json = Any
SYSTEM = {"id": "m1", "role": "system", "content": [{"type": "text", "text": "One\n\n两😀"}]}
SNAPSHOT = {
    "id": "m2",
    "role": "user",
    "content": [{"type": "text", "text": "Now: dusk"}],
    "source": {"kind": "runtime-context", "form": "snapshot", "sections": [{"name": "clock", "text": "dusk"}]},
}
FAILURE = {"turn": 4, "reason": {"kind": "error", "error": {"code": "E", "message": "broke"}}}
EVENTS: list[Json] = [
    {"seq": 0, "type": "system/message", "data": {"message": SYSTEM}},
    {"seq": 1, "type": "user/message", "data": SNAPSHOT},
    {"seq": 2, "type": "request/assembly", "data": {"messages": [SYSTEM, SNAPSHOT], "metadata": {}}},
    {"seq": 3, "type": "turn/end", "data": FAILURE},
]
META = {"id": "s", "version": 3, "createdAt": 5}


def record(*, with_failure: bool = False) -> Json:
    assembly = OfficialAssembly(
        (AssemblyPart("a", "One"), AssemblyPart("b", "{{two}}")), (AssemblyPart("clock", "dusk"),), {"two": "两😀"}
    )
    state = step(CaptureState(), Begin("c", "s", 4, 0, 1, 1, assembly)).state
    view = SessionView("s", 3, 5, 3, EVENTS[:3], (0, 1))
    observed = step(state, StreamObserved(ObservedRequest([SYSTEM, SNAPSHOT]), view))
    if with_failure:
        event = HostEventLogged(EVENTS[3], SessionView("s", 3, 5, 4, EVENTS, (0, 1)))
        return step(observed.state, event).records[-1].to_json()
    return observed.records[-1].to_json()


def history(change: Callable[[list[Json]], None] | None = None, **meta: Json) -> Inspection:
    events = copy.deepcopy(EVENTS)
    if change:
        change(events)
    return Inspection({**META, **meta}, events)


def errors(detail: Json) -> Json:
    return [part.get("referenceError") for part in (*detail["sections"], *detail["contexts"])]


def test_everything_is_proved() -> None:
    detail = verified_detail(record(with_failure=True), history())
    assert [part["text"] for part in detail["sections"]] == ["One", "两😀"]
    assert detail["contexts"][0]["text"] == "dusk"
    assert detail["systemMessages"] == ["One\n\n两😀"]
    assert detail["failure"] == {"code": "E", "message": "broke"}
    assert detail["requestAssembly"] == EVENTS[2]["data"]
    assert detail["contentStatus"] == detail["failureStatus"] == detail["requestContentStatus"] == "available"


def test_a_detail_never_changes_the_record() -> None:
    stored = record(with_failure=True)
    before = copy.deepcopy(stored)
    verified_detail(stored, history())
    assert stored == before


def edit_text(events: list[Json]) -> None:
    events[0]["data"]["message"]["content"][0]["text"] = "Two"


def edit_id(events: list[Json]) -> None:
    events[0]["data"]["message"]["id"] = "m9"


def edit_type(events: list[Json]) -> None:
    events[0]["type"] = "user/message"


def drop_event(events: list[Json]) -> None:
    del events[0]


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (edit_text, "hash-mismatch"),
        (edit_id, "identity-mismatch"),
        (edit_type, "event-unavailable"),
        (drop_event, "event-unavailable"),
    ],
)
def test_a_changed_system_message(change: Callable[[list[Json]], None], error: str) -> None:
    detail = verified_detail(record(), history(change))
    assert errors(detail) == [error, error, None]
    assert detail["contentStatus"] == "partially-available"


def rename_section(events: list[Json]) -> None:
    events[1]["data"]["source"]["sections"][0]["name"] = "other"


def edit_section(events: list[Json]) -> None:
    events[1]["data"]["source"]["sections"][0]["text"] = "dawn"


def edit_section_type(events: list[Json]) -> None:
    events[1]["data"]["source"]["sections"][0]["text"] = 3


def edit_form(events: list[Json]) -> None:
    events[1]["data"]["source"]["form"] = "message"


def edit_snapshot(events: list[Json]) -> None:
    events[1]["data"]["content"][0]["text"] = "Now: dawn"


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (rename_section, "identity-mismatch"),
        (edit_section, "hash-mismatch"),
        (edit_section_type, "event-unavailable"),
        (edit_form, "identity-mismatch"),
        (edit_snapshot, "hash-mismatch"),
    ],
)
def test_a_changed_context(change: Callable[[list[Json]], None], error: str) -> None:
    assert errors(verified_detail(record(), history(change))) == [None, None, error]


@pytest.mark.parametrize(
    ("looked", "error"),
    [
        (history(version=2), "format-mismatch"),
        (history(id="t"), "session-mismatch"),
        (history(createdAt=6), "session-mismatch"),
        (Inspection(META, EVENTS[:2]), "cut-unavailable"),
        (Inspection(META, []), "cut-unavailable"),
        (NoHistory(), "history-unavailable"),
        (NoHistory("history-read-failed"), "history-read-failed"),
    ],
)
def test_an_overall_error(looked: Inspection | NoHistory, error: str) -> None:
    detail = verified_detail(record(), looked)
    assert detail["referenceError"] == error
    assert errors(detail) == [error] * 3
    assert detail["contentStatus"] == "reference-unavailable"


@pytest.mark.parametrize(
    ("span", "error"),
    [
        ({"startUtf16": 1, "endUtf16": 0}, "range-mismatch"),
        ({"startUtf16": -1, "endUtf16": 2}, "range-mismatch"),
        ({"startUtf16": 0, "endUtf16": 99}, "range-mismatch"),
        ({"startUtf16": 0, "endUtf16": 2.5}, "range-mismatch"),
        ({"startUtf16": 0, "endUtf16": 2}, "hash-mismatch"),
        (None, "range-mismatch"),
    ],
)
def test_a_bad_range(span: Json, error: str) -> None:
    stored = record()
    stored["sections"][0]["reference"]["range"] = span
    assert errors(verified_detail(stored, history()))[0] == error


@pytest.mark.parametrize(
    ("reference", "error"),
    [
        ({"eventSeq": 3}, "event-unavailable"),
        ({"eventSeq": "0"}, "event-unavailable"),
        ({"kind": "guess"}, "identity-mismatch"),
        ({"kind": "request-header-system"}, "identity-mismatch"),
    ],
)
def test_a_bad_reference(reference: Json, error: str) -> None:
    stored = record()
    stored["sections"][0]["reference"] |= reference
    assert errors(verified_detail(stored, history()))[0] == error


def set_failure_turn(events: list[Json]) -> None:
    events[3]["data"]["turn"] = 5


def set_failure_text(events: list[Json]) -> None:
    events[3]["data"]["reason"]["error"]["message"] = "other"


@pytest.mark.parametrize(
    ("looked", "error"),
    [
        (history(set_failure_turn), "identity-mismatch"),
        (history(set_failure_text), "hash-mismatch"),
        (history(id="t"), "session-mismatch"),
        (history(version=4), "format-mismatch"),
        (Inspection(META, EVENTS[:3]), "cut-unavailable"),
        (NoHistory(), "history-unavailable"),
    ],
)
def test_a_failure_that_is_not_proved(looked: Inspection | NoHistory, error: str) -> None:
    detail = verified_detail(record(with_failure=True), looked)
    assert detail["failureStatus"] == "reference-unavailable"
    assert detail["failureReferenceError"] == error
    assert "failure" not in detail


def test_a_failure_outlives_a_trimmed_prompt_cut_only_by_its_own_cut() -> None:
    stored = record(with_failure=True)
    stored["sessionRef"]["logCutSeq"] = 9
    detail = verified_detail(stored, history())
    assert detail["referenceError"] == "cut-unavailable"
    assert detail["failureStatus"] == "available"


def test_records_without_references_ask_for_no_history() -> None:
    stored = record()
    del stored["sessionRef"]
    assert not needs_history(stored)
    assert verified_detail(stored, NoHistory())["referenceError"] == "unverified"
    assert not needs_history({"schemaVersion": 3, "id": "x", "sections": []})


def test_a_changed_request_assembly_is_left_out() -> None:
    def change(events: list[Json]) -> None:
        events[2]["data"]["metadata"] = {"x": 1}

    detail = verified_detail(record(), history(change))
    assert "requestAssembly" not in detail
    assert digest(EVENTS[2]["data"]) == record()["requestAssemblyRef"]["hash"]
