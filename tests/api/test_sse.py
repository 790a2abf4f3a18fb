"""Server-sent events: nobody waits for a slow reader, and a reader that comes back misses nothing it could have."""

import math

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from tapster.api.ports import Notice
from tapster.api.sse import CONNECTED, KEEP_ALIVE, EventStream, Feed, frame, last_event_id


async def drain(feed: Feed, after_seq: int | None) -> list[Notice]:
    """What a subscriber that reads only at the end gets."""
    got: list[Notice] = []
    with feed.subscribe(after_seq) as subscription:
        feed.end()
        with pytest.raises(trio.EndOfChannel):
            while True:
                got.append(await subscription.receive())
    return got


@pytest.mark.parametrize(("after", "seqs"), [(None, []), (4, []), (2, [3, 4]), (-1, [0, 1, 2, 3, 4]), (9, ["reset"])])
async def test_resuming(after: int | None, seqs: list[object]) -> None:
    feed = Feed()
    for number in range(5):
        feed.publish("step", number)
    got = await drain(feed, after)
    assert [notice.event if notice.event == "reset" else notice.seq for notice in got] == seqs


async def test_what_is_gone_is_said() -> None:
    feed = Feed(kept=2)
    for number in range(5):
        feed.publish("step", number)
    assert [notice.event for notice in await drain(feed, 1)] == ["reset"]
    assert [notice.seq for notice in await drain(feed, 2)] == [3, 4]


async def test_a_slow_reader_is_ended_and_gets_what_it_had_room_for() -> None:
    feed = Feed(slots=3)
    with feed.subscribe() as slow, feed.subscribe() as fast:
        for number in range(5):
            feed.publish("step", number)
            assert (await fast.receive()).data == number
        assert feed.subscribers == 1
        assert [(await slow.receive()).seq for _ in range(3)] == [0, 1, 2]
        with pytest.raises(trio.EndOfChannel):
            await slow.receive()
    assert feed.subscribers == 0


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 30), st.integers(1, 8), st.integers(-1, 35))
def test_a_resumed_stream_has_no_gap(published: int, kept: int, after: int) -> None:
    async def check() -> None:
        feed = Feed(kept=kept)
        for number in range(published):
            feed.publish("step", number)
        got = await drain(feed, after)
        if got and got[0].event != "reset":
            assert [notice.seq for notice in got] == list(range(after + 1, published))

    trio.run(check)


async def test_a_stream_on_the_wire(autojump_clock: trio.testing.MockClock) -> None:
    feed = Feed()
    async with EventStream(feed.subscribe) as stream:
        assert await anext(stream) == CONNECTED
        assert await anext(stream) == KEEP_ALIVE
        assert trio.current_time() == pytest.approx(15, abs=0.1)
        feed.publish("chat", {"text": "你好\nB"})
        assert await anext(stream) == 'id: 0\nevent: chat\ndata: {"text":"你好\\nB"}\n\n'.encode()
        feed.end()
        with pytest.raises(StopAsyncIteration):
            await anext(stream)
    assert feed.subscribers == 0


async def test_a_cancelled_stream_unsubscribes(autojump_clock: trio.testing.MockClock) -> None:
    feed = Feed()
    with trio.move_on_after(3):
        async with EventStream(feed.subscribe, math.inf) as stream:
            async for _ in stream:
                assert feed.subscribers == 1
    assert feed.subscribers == 0


@pytest.mark.parametrize(
    ("value", "seq"),
    [("0", 0), ("41", 41), ("-1", -1), ("-2", None), ("x", None), ("", None), (None, None), ("9" * 20, None)],
)
def test_last_event_id(value: str | None, seq: int | None) -> None:
    assert last_event_id(value) == seq


def test_frames_are_one_line_of_data() -> None:
    assert frame(Notice(3, "e", "a\r\nb")).count(b"\n") == 4
