"""Settings, mode, messages and the operation log as the contract takes and shows them (spec/http §5.4, §6, §7, §10)."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapster.engine.contract import (
    ABSENT,
    Chrome,
    ConversationSettings,
    Coordinates,
    OperationLog,
    UiSettings,
    changed_mode,
    check_chrome,
    check_conversation_settings,
    check_coordinates,
    check_ui_settings,
    coordinates_of,
    has_incomplete_turn,
    messages_of_events,
    project_messages,
    read_conversation_settings,
    read_ui_settings,
    session_title,
    settings_text,
)
from tapster.engine.errors import RequestError

Json = Any


@pytest.mark.parametrize("scale", [0.75, 0.8, 1.05, 1.1, 1.15, 1.35, 1.5, 1.1 + 1e-10])
def test_scales_of_the_grid(scale: float) -> None:
    assert check_ui_settings({"locale": "en", "scale": scale}).scale == round(scale, 2)


@pytest.mark.parametrize(
    "scale", [0.7, 1.55, 1.01, 1.1 + 1e-6, float("inf"), True, None, "1", 0.75 - 1e-10, 1.5 + 1e-10]
)
def test_scales_off_the_grid(scale: object) -> None:
    with pytest.raises(RequestError):
        check_ui_settings({"locale": "en", "scale": scale})


@pytest.mark.parametrize("body", [{"textScale": 1}, {"textScale": 1, "actionScale": 1, "x": 1}, [], None])
def test_conversation_settings_are_whole(body: Json) -> None:
    with pytest.raises(RequestError):
        check_conversation_settings(body)


@pytest.mark.parametrize("data", [None, b"", b"[]", b"{", b'{"schemaVersion":2,"locale":"en","scale":1}', b" " * 2000])
def test_unusable_files_give_the_defaults(data: bytes | None) -> None:
    assert read_ui_settings(data) == UiSettings()
    assert read_conversation_settings(data) == ConversationSettings()


def test_settings_come_back_from_their_file() -> None:
    settings = UiSettings("en", 1.25, rp_follow_character=False)
    assert read_ui_settings(settings_text(settings.to_json()).encode()) == settings
    sizes = ConversationSettings(1.5, 0.75)
    assert read_conversation_settings(settings_text(sizes.to_json()).encode()) == sizes


def test_the_same_mode_keeps_its_revision() -> None:
    play = changed_mode(Chrome(), check_chrome({"mode": "play", "revision": "sent"}), "new")
    assert play == Chrome("play", "new")
    assert changed_mode(play, check_chrome({"mode": "play"}), "newer") is play


USER = {"id": "u", "role": "user", "content": []}


@pytest.mark.parametrize(
    ("message", "kind", "origin"),
    [
        (USER, "user/message", {"kind": "user"}),
        ({**USER, "source": {"kind": "user"}}, "user/message", {"kind": "user"}),
        (USER, "steering/message", {"kind": "steering"}),
        ({**USER, "role": "assistant"}, "steering/message", {"kind": "assistant"}),
        (
            {**USER, "source": {"kind": "k" * 300, "form": 5}},
            "user/message",
            {"kind": "context", "producer": "k" * 200, "form": None, "summary": None},
        ),
    ],
)
def test_where_a_message_comes_from(message: Json, kind: str, origin: Json) -> None:
    (shown,) = project_messages([message], [{"seq": 3, "type": kind, "data": message}])
    assert (shown["seq"], shown["origin"]) == (3, origin)


def test_messages_of_a_log() -> None:
    events = [
        {"seq": 0, "type": "turn/start", "data": {}},
        {"seq": 1, "type": "user/message", "data": USER},
        {"seq": 2, "type": "assistant/message", "data": {"message": {"id": "a"}}},
        {"seq": 3, "type": "assistant/message", "data": None},
    ]
    assert [message["id"] for message in messages_of_events(events)] == ["u", "a"]
    assert has_incomplete_turn(events)
    assert not has_incomplete_turn([])


def test_a_title() -> None:
    assert session_title(" 灯 ", "2026-12-31T23:59:59.999Z") == "灯 2026-12-31 23:59"


def test_an_operation_ends_once_and_tells_no_text() -> None:
    log = OperationLog("o" * 200, "session.create", 100)
    fields = {"sessionId": "s\n", "text": "SECRET", "result": "forged", "path": 5}
    start = log.start(fields)
    assert start is not None
    assert start.payload == {
        "operationId": "o" * 128,
        "operation": "session.create",
        "stage": "start",
        "sessionId": "s�",
    }
    done = log.success(90, fields, "committed", 201)
    assert done is not None
    assert list(done.payload) == ["operationId", "operation", "stage", "result", "status", "durationMs", "sessionId"]
    assert (done.payload["durationMs"], done.payload["result"]) == (0, "committed")
    assert log.failure(120, {}) is None
    assert log.stage("late", {}) is None
    failed = OperationLog("o", "x", 0).failure(3, {}, code="")
    assert failed is not None
    assert failed.payload["errorCode"] == "UNKNOWN_ERROR"


@given(st.lists(st.integers(0, 1000), min_size=1))
def test_a_duration_never_shrinks(readings: list[int]) -> None:
    log = OperationLog("o", "x", 500)
    elapsed = [log._elapsed(reading) for reading in readings]
    assert elapsed == sorted(elapsed)
    assert elapsed[0] >= 0


@pytest.mark.parametrize("given_version", [-1, 1.5, "3", True, [], 2**53])
def test_versions_that_are_none(given_version: Json) -> None:
    with pytest.raises(RequestError) as refusal:
        check_coordinates(given_version, Coordinates(None, is_migrated=False))
    assert (refusal.value.status, refusal.value.code) == (400, "PLAY_COORDINATES_INVALID")


@pytest.mark.parametrize(
    ("requested", "session", "is_accepted"),
    [
        (0, Coordinates(0, is_migrated=False), True),
        (0, Coordinates(None, is_migrated=True), True),
        (3, Coordinates(4, is_migrated=False), False),
        (4, Coordinates(4, is_migrated=True), True),
        (ABSENT, Coordinates(None, is_migrated=False), True),
        (ABSENT, Coordinates(0, is_migrated=False), True),
        (ABSENT, Coordinates(None, is_migrated=True), False),
        (ABSENT, Coordinates(5, is_migrated=False), False),
    ],
)
def test_coordinates(requested: Json, session: Coordinates, is_accepted: bool) -> None:
    if is_accepted:
        check_coordinates(requested, session)
        return
    with pytest.raises(RequestError) as refusal:
        check_coordinates(requested, session)
    assert refusal.value.code == "PLAY_COORDINATES_MIGRATION_REQUIRED"


@pytest.mark.parametrize(
    "text", ["{}", '{"meta":{"version":"3"},"events":[{"type":"system/message","data":5}]}', "null"]
)
def test_coordinates_of_odd_inspections(text: str) -> None:
    assert coordinates_of(json.loads(text)) == Coordinates(None, is_migrated=False)
