"""Server-sent events and the OpenAI wire, piece by piece, without a network."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapster.actors.providers import Chunk, Finish, ReasoningDelta, Reply, TextDelta
from tapster.actors.providers.sse import MAX_LINE_CHARACTERS, SseDecoder
from tapster.actors.providers.wire import ChunkParser, failure_of, usage_of, wire_messages
from tapster.engine.ecma import Json
from tapster.engine.errors import SourceError


def delta(value: Json, **choice: Json) -> str:
    return json.dumps({"choices": [{"index": 0, "delta": value, **choice}]})


def run(*events: str) -> Reply:
    parser, reply = ChunkParser(), Reply()
    for event in events:
        for chunk in parser.feed(event):
            reply.take(chunk)
    for chunk in parser.close():
        reply.take(chunk)
    return reply


@pytest.mark.parametrize(
    ("data", "events"),
    [
        (b"data: a\n\ndata: b\n\n", ["a", "b"]),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", ["a", "b"]),
        (b"data: a\r\rdata: b\r\r", ["a"]),
        (b": hello\n\ndata:a\n\n", ["a"]),
        (b"event: x\nid: 3\nretry: 10\ndata: a\n\n", ["a"]),
        (b"data: a\ndata: b\n\n", ["a\nb"]),
        (b"data\n\ndata:\n\n", ["", ""]),
        (b"\xef\xbb\xbfdata: a\n\n", ["a"]),
        (b"data:  two\n\n", [" two"]),
        (b"data: a\n", []),
    ],
)
def test_events_of_every_line_ending(data: bytes, events: list[str]) -> None:
    assert SseDecoder().feed(data) == events


@given(st.lists(st.text(st.characters(exclude_characters="\r\n"), min_size=1), max_size=5), st.data())
def test_events_do_not_depend_on_how_the_bytes_arrive(texts: list[str], data: st.DataObject) -> None:
    ending = data.draw(st.sampled_from(["\n", "\r\n"]))
    whole = "".join(f"data: {text}{ending}{ending}" for text in texts).encode("utf-8", "surrogatepass")
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    decoder = SseDecoder()
    found: list[str] = []
    for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
        found += decoder.feed(whole[start:end])
    assert found == SseDecoder().feed(whole)
    assert len(found) == len(texts)


def test_an_endless_line_is_refused() -> None:
    with pytest.raises(SourceError):
        SseDecoder().feed(b"x" * (MAX_LINE_CHARACTERS + 1))


def test_reasoning_text_and_calls_become_blocks_in_order() -> None:
    reply = run(
        delta({"role": "assistant", "content": ""}),
        delta({"reasoning_content": "The log "}),
        delta({"reasoning_content": "holds it."}),
        delta({"content": "Let me "}),
        delta({"content": "look."}),
        delta({"tool_calls": [{"index": 0, "id": "c-1", "function": {"name": "log", "arguments": '{"a"'}}]}),
        delta({"tool_calls": [{"index": 1, "id": "c-2", "function": {"name": "log", "arguments": "{}"}}]}),
        delta({"tool_calls": [{"index": 0, "function": {"arguments": ": 1}"}}]}),
        delta({}, finish_reason="tool_calls"),
        '{"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":20,"prompt_tokens_details":{"cached_tokens":64}}}',
        "[DONE]",
    )
    assert reply.content() == [
        {"type": "reasoning", "text": "The log holds it."},
        {"type": "text", "text": "Let me look."},
        {"type": "tool-call", "id": "c-1", "name": "log", "arguments": '{"a": 1}'},
        {"type": "tool-call", "id": "c-2", "name": "log", "arguments": "{}"},
    ]
    assert reply.usage == {"inputTokens": 36, "outputTokens": 20, "cacheReadTokens": 64}
    assert reply.finish == Finish("tool-calls")
    assert reply.rendered_prefix() == reply.content()[:2]
    kinds = [item["chunk"]["type"] for item in reply.stream()]
    assert kinds[:4] == ["block-start", "reasoning-delta", "block-start", "text-delta"]
    assert kinds[-6:] == ["block-end"] * 4 + ["usage", "finish"]


def test_adjacent_deltas_are_kept_as_one() -> None:
    reply = Reply()
    for chunk in (TextDelta(0, "a"), TextDelta(0, "b"), ReasoningDelta(1, "x"), TextDelta(0, "c")):
        reply.take(chunk)
    whole: list[Chunk] = [TextDelta(0, "ab"), ReasoningDelta(1, "x"), TextDelta(0, "c")]
    assert reply.stream() == [{"type": "chunk", "chunk": chunk.to_json()} for chunk in whole]


def test_a_character_cut_between_two_pieces_is_whole_again() -> None:
    cut = ['{"choices":[{"delta":{"content":"a\\ud83d"}}]}', '{"choices":[{"delta":{"content":"\\ude00b"}}]}']
    reply = run(*cut, "[DONE]")
    assert reply.content() == [{"type": "text", "text": "a😀b"}]
    assert reply.stream()[1]["chunk"]["text"] == "a😀b"


def test_nothing_after_the_end_counts() -> None:
    parser = ChunkParser()
    assert parser.feed("[DONE]") == []
    assert parser.feed(delta({"content": "late"})) == []


def test_a_stream_without_done_but_with_an_ending_is_whole() -> None:
    assert run(delta({"content": "a"}), delta({}, finish_reason="stop")).finish == Finish("stop")


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({}, {"inputTokens": 0, "outputTokens": 0}),
        ({"prompt_tokens": 5, "completion_tokens": 2}, {"inputTokens": 5, "outputTokens": 2}),
        (
            {"prompt_tokens": 9, "completion_tokens": 2, "prompt_cache_hit_tokens": 4},
            {"inputTokens": 5, "outputTokens": 2, "cacheReadTokens": 4},
        ),
    ],
)
def test_usage(usage: Json, expected: Json) -> None:
    assert usage_of(usage) == expected


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        (None, {"error": "plain words"}, "SERVER"),
        (None, {"error": {"message": "slow down", "code": 429}}, "RATE_LIMIT"),
        (None, {"error": {"message": "odd", "code": 599.5}}, "SERVER"),
        (429, {"error": {"message": "no money", "code": "insufficient_quota"}}, "QUOTA"),
        (502, None, "SERVER"),
        (409, {"error": {"message": 7}}, "HTTP_409"),
    ],
)
def test_failures(status: int | None, body: Json, code: str) -> None:
    assert failure_of(status, body).code == code


def test_history_becomes_wire_messages() -> None:
    call = {"type": "tool-call", "id": "c-1", "name": "log", "arguments": "{}"}
    lost = {"type": "tool-call", "id": "c-9", "name": "log", "arguments": "{}"}
    result = {
        "type": "tool-result",
        "toolCallId": "c-1",
        "content": [{"type": "text", "text": "fog"}],
        "isError": False,
    }
    picture = {"type": "image", "url": "data:image/png;base64,x"}
    messages = [
        {"role": "system", "content": [{"type": "text", "text": "Be kind."}]},
        {"role": "developer", "content": []},
        {
            "role": "user",
            "content": [{"type": "text", "text": "a"}, picture],
        },
        {"role": "assistant", "content": [{"type": "reasoning", "text": "hm"}, {"type": "text", "text": "b"}, call]},
        {"role": "user", "content": [result]},
        {"role": "assistant", "content": [{"type": "text", "text": "c"}, lost]},
        {"role": "assistant", "content": [lost]},
        {"role": "user", "content": "plain"},
    ]
    function = {"name": "log", "arguments": "{}"}
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,x"}}
    assert wire_messages(messages) == [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": [{"type": "text", "text": "a"}, image]},
        {
            "role": "assistant",
            "content": "b",
            "reasoning_content": "hm",
            "tool_calls": [{"id": "c-1", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": "c-1", "content": "fog"},
        {"role": "assistant", "content": "c"},
        {"role": "user", "content": "plain"},
    ]
