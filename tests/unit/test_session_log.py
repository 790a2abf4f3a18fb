"""Session logs of every readable format, and the surface derived from them."""

import json
from pathlib import Path

import pytest

from tapster.engine.ecma import Json, stringify
from tapster.engine.errors import FormatError
from tapster.engine.projection import (
    APPEND,
    Event,
    SessionForkError,
    SessionHeader,
    Surface,
    SurfaceReplace,
    closers,
    derive_messages,
    expand,
    fork_cut,
    fork_seed,
    open_turn,
    read_log,
    surface_of,
)

SHARED = Path(__file__).resolve().parents[3] / "shared" / "hostlogs"
needs_hostlogs = pytest.mark.skipif(
    not SHARED.is_dir(), reason="the recorded host logs (shared/hostlogs) aren't beside this checkout"
)


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def message(identity: str, text: str, role: str = "user") -> Json:
    return {"id": identity, "role": role, "content": [{"type": "text", "text": text}], "source": {"kind": "user"}}


def said(seq: int, text: str) -> Event:
    return Event("user/message", seq, 1000 + seq, message(f"m-{seq}", text), APPEND)


def replaced(seq: int, start: int, end: int, text: str) -> Event:
    return Event("user/message", seq, 1000 + seq, message(f"m-{seq}", text), SurfaceReplace(start, end))


def texts(events: list[Event]) -> list[str]:
    return [item["content"][0]["text"] for item in derive_messages(events)]


@needs_hostlogs
@pytest.mark.parametrize(
    "log",
    [
        "01-tool-turn/demo-tool-turn",
        "02-cancel/demo-cancel",
        "03-steer/demo-steer",
        "04-retry/demo-retry",
    ],
)
def test_a_recorded_log_gives_the_messages_the_host_derived(log: str) -> None:
    path = SHARED / f"{log}.session.jsonl"
    hooks = [json.loads(line) for line in lines(path.parent / "hooks.jsonl")]
    derived = [hook for hook in hooks if hook["hook"] == "driver/derived"][-1]["messages"]
    assert list(derive_messages(read_log(lines(path)).events)) == derived


@needs_hostlogs
def test_a_recorded_fork_starts_with_its_parents_messages() -> None:
    child = read_log(lines(SHARED / "05-fork/demo-child.session.jsonl"))
    hooks = [json.loads(line) for line in lines(SHARED / "05-fork/hooks.jsonl")]
    at_fork = next(hook for hook in hooks if hook["hook"] == "driver/child")["derived"]
    assert list(derive_messages(child.events[:25])) == at_fork
    parent = read_log(lines(SHARED / "05-fork/demo-parent.session.jsonl"))
    assert child.events[:24] == parent.events[:24]
    assert (child.own_events[0].type, child.own_events[0].seq) == ("session/end-seed", 24)
    assert fork_cut(parent.events, 12) == 24


@needs_hostlogs
def test_every_recorded_log_is_readable_and_writes_back_the_same_events() -> None:
    found = sorted(SHARED.glob("*/*.session.jsonl"))
    assert found
    for path in found:
        logged = read_log(lines(path))
        assert [event.seq for event in logged.events] == list(range(len(logged.events)))
        again = [stringify(logged.header.to_json()), *(stringify(event.to_json()) for event in logged.events)]
        assert read_log(again) == logged


@needs_hostlogs
def test_a_packed_and_an_unpacked_recording_have_the_same_shape() -> None:
    packed = read_log(lines(SHARED / "01-tool-turn/demo-tool-turn.session.jsonl"))
    plain = read_log(lines(SHARED / "01-tool-turn/demo-tool-turn.uncompressed-unpacked.session.jsonl"))

    def bare(event: Event) -> Json:
        chunk = dict(event.data.get("chunk", {})) if event.type == "assistant/chunk" else {}
        return event.type, event.seq, chunk.get("type"), chunk.get("text"), chunk.get("argumentsDelta")

    assert [bare(event) for event in packed.events] == [bare(event) for event in plain.events]


@needs_hostlogs
def test_the_closers_of_the_killed_log_are_those_the_host_wrote() -> None:
    logged = read_log(lines(SHARED / "07-crash-resume/demo-crash.session.jsonl"))
    killed = logged.events[:26]
    made = closers(killed)
    theirs = logged.events[26:29]
    assert [(event.type, event.seq, event.time_ms) for event in made] == [
        (event.type, event.seq, event.time_ms) for event in theirs
    ]
    assert made[0].data["message"]["id"] == theirs[0].data["message"]["id"]
    assert made[0].data["error"] == theirs[0].data["error"]
    assert made[2].data == theirs[2].data
    assert closers((*killed, *made)) == ()


FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "hostlog"


def test_a_log_of_format_0_with_packed_rows_and_a_compaction() -> None:
    logged = read_log(lines(FIXTURES / "format-0.session.jsonl"))
    assert [event.seq for event in logged.events] == list(range(18))
    assert [event.data["chunk"]["text"] for event in logged.events[8:11]] == ["At ", "high ", "tide."]
    assert [event.time_ms - 1700000000000 for event in logged.events[8:11]] == [6, 7, 9]
    assert [item["id"] for item in derive_messages(logged.events[:15])] == ["u-1", "a-1"]
    assert [item["id"] for item in derive_messages(logged.events)] == ["c-1"]
    assert logged.events[17].ignorable


def test_a_log_of_format_4_with_a_seed_and_system_and_developer_messages() -> None:
    logged = read_log(lines(FIXTURES / "format-4.session.jsonl"))
    assert [item["id"] for item in derive_messages(logged.events)] == ["d-1", "s-1", "a-1"]
    assert [event.seq for event in logged.own_events] == [3, 4, 5, 6, 7]
    written = [stringify(logged.header.to_json()), *(stringify(event.to_json()) for event in logged.events)]
    assert read_log(written) == logged


def test_packed_rows_spread_their_times_and_seqs() -> None:
    row = {
        "type": "tool-call-chunks",
        "seq0": 26,
        "time0": 500,
        "data": {"turn": 1, "step": 2, "index": 2, "dt": [1, 0], "id": "c", "name": "n", "args": ["", "{", "}"]},
    }
    events = list(expand(row))
    assert [(event.seq, event.time_ms) for event in events] == [(26, 500), (27, 501), (28, 501)]
    chunk = {"type": "tool-call-delta", "index": 2, "id": "c", "name": "n", "argumentsDelta": "{"}
    assert events[1].data == {"turn": 1, "step": 2, "chunk": chunk}


@pytest.mark.parametrize(
    "data",
    [
        {"index": 0, "dt": [1], "texts": ["a"]},
        {"index": 0, "dt": [], "texts": []},
        {"dt": [], "texts": ["a"]},
        {"index": 0, "dt": ["x"], "texts": ["a", "b"]},
        None,
    ],
)
def test_a_broken_packed_row_is_refused(data: Json) -> None:
    with pytest.raises(FormatError) as caught:
        list(expand({"type": "text-chunks", "seq0": 0, "time0": 1, "data": data}))
    assert caught.value.slug == "bad-packed-row"


def test_a_replacement_takes_the_place_of_what_it_shadows() -> None:
    events = [said(0, "a"), said(1, "b"), said(2, "c"), said(3, "d"), replaced(4, 1, 2, "b and c")]
    assert texts(events) == ["a", "b and c", "d"]
    assert texts([*events, replaced(5, 0, 4, "a to c"), said(6, "e")]) == ["a to c", "d", "e"]
    surface = surface_of(events)
    assert surface.replace_generation == 1
    assert [node.seq for node in surface.snapshot()] == [0, 4, 3]


@pytest.mark.parametrize("op", [SurfaceReplace(1, 0), SurfaceReplace(0, 7), SurfaceReplace(5, 1)])
def test_a_replacement_of_what_is_not_there_is_refused(op: SurfaceReplace) -> None:
    surface = Surface([said(0, "a"), said(1, "b")])
    with pytest.raises(FormatError) as caught:
        surface.apply(Event("user/message", 2, 1, message("m", "x"), op))
    assert caught.value.slug == "bad-surface-op"
    assert [node.seq for node in surface.nodes] == [0, 1]


@pytest.mark.parametrize("op", [{"op": "replace", "start": 0, "end": 1}, {"op": "replace", "startSeq": 0, "endSeq": 1}])
def test_both_forms_of_replace_are_read(op: Json) -> None:
    value = {"type": "user/message", "seq": 2, "time": 1, "data": message("m", "x"), "surfaceOp": op}
    assert Event.from_json(value).surface_op == SurfaceReplace(0, 1)


def test_system_text_of_format_4_is_on_the_surface() -> None:
    system = Event(
        "system/message", 0, 1, {"turn": 1, "step": 1, "message": message("s", "Be kind.", "system")}, APPEND
    )
    surface = surface_of([system, said(1, "hello")])
    assert surface.system_node() == system
    assert [item["role"] for item in surface.messages()] == ["system", "user"]


@pytest.mark.parametrize(
    ("value", "slug"),
    [
        ({"type": "user/message", "seq": -1, "time": 1, "data": {}}, "bad-event"),
        ({"type": "user/message", "seq": 0, "time": "soon", "data": {}}, "bad-event"),
        ({"type": "weather/report", "seq": 0, "time": 1, "data": {}}, "unknown-event"),
        ({"type": "tool/result", "seq": 0, "time": 1, "data": {}, "sourceEventSeqs": ["a"]}, "bad-event"),
        ({"type": "user/message", "seq": 0, "time": 1, "data": {}, "surfaceOp": {"op": "swap"}}, "bad-surface-op"),
        ([], "bad-event"),
    ],
)
def test_an_unusable_event_is_refused(value: Json, slug: str) -> None:
    with pytest.raises(FormatError) as caught:
        Event.from_json(value)
    assert caught.value.slug == slug


def test_an_unknown_event_that_may_be_ignored_is_kept() -> None:
    value = {"type": "weather/report", "seq": 0, "time": 1, "data": {"sky": "grey"}, "ignorable": True}
    assert Event.from_json(value).to_json() == value


@pytest.mark.parametrize("version", range(5))
def test_headers_of_every_format_are_read(version: int) -> None:
    value = {"type": "session", "version": version, "id": "s", "createdAt": 7, "seedLength": 3, "agentPreset": "x"}
    header = SessionHeader.from_json(value)
    assert (header.seed_length, header.is_seeded, header.extra) == (3, True, {"agentPreset": "x"})
    assert SessionHeader.from_json(header.to_json()) == header


def test_an_unknown_log_format_is_refused() -> None:
    with pytest.raises(FormatError) as caught:
        read_log(['{"type":"session","version":5,"id":"s","createdAt":1}'])
    assert caught.value.slug == "unknown-log-format"


def test_a_gap_in_the_seqs_is_refused() -> None:
    header = SessionHeader("s", 1)
    with pytest.raises(FormatError) as caught:
        read_log([stringify(header.to_json()), stringify(said(1, "a").to_json())])
    assert caught.value.slug == "seq-gap"


def turn(start: int, number: int, *, ended: bool = True) -> list[Event]:
    events = [Event("turn/start", start, 1, {"turn": number}), said(start + 1, f"turn {number}")]
    return [*events, Event("turn/end", start + 2, 1, {"turn": number})] if ended else events


def test_a_fork_is_cut_between_turns_only() -> None:
    events = [*turn(0, 1), said(3, "between"), *turn(4, 2), *turn(7, 3, ended=False)]
    assert open_turn(events) == 3
    assert [fork_cut(events, seq) for seq in (0, 2, 3, 5)] == [3, 3, 6, 6]
    assert fork_cut(events) == 6
    assert fork_seed(events, 3) == tuple(events[:4])
    for cut, code in ((1, "OPEN_TURN"), (5, "OPEN_TURN"), (8, "OPEN_TURN"), (9, "FORK_OUT_OF_RANGE")):
        with pytest.raises(SessionForkError) as caught:
            fork_seed(events, cut)
        assert caught.value.code == code
    with pytest.raises(SessionForkError):
        fork_cut(events, 7)


def test_a_crash_before_dispatch_closes_each_call() -> None:
    call = {"type": "tool-call", "id": "c-1", "name": "look", "arguments": "{}"}
    answer = {"turn": 1, "step": 1, "message": {"id": "a", "role": "assistant", "content": [call]}}
    events = [
        Event("turn/start", 0, 5, {"turn": 1}),
        Event("step/start", 1, 6, {"turn": 1, "step": 1}),
        Event("assistant/message", 2, 7, answer, APPEND),
    ]
    made = closers(events)
    assert [event.type for event in made] == ["tool/call", "tool/result", "step/end", "turn/end"]
    assert made[1].data["error"]["code"] == "TOOL_ABORTED_BEFORE_DISPATCH"
    assert made[1].source_event_seqs == (3,)
    assert closers(events[:1])[0].data == {"turn": 1, "reason": {"kind": "interrupted"}}
