"""The OpenAI-compatible provider against the real stand-in server on loopback."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import attrs
import pytest
import trio
import trio.testing

from tapster.actors.hosts import MemorySessionLog
from tapster.actors.hosts.embedded import AgentOptions, Tool, ToolExecution, ToolRegistry, open_embedded_host
from tapster.actors.providers import (
    Deadlines,
    Finish,
    ModelRequest,
    OpenAiProvider,
    OpenAiSettings,
    ProviderError,
    Reply,
    open_openai_provider,
)
from tapster.actors.testing import Answer, ModelServer, error_answer, open_model_server, text_deltas
from tapster.engine.ecma import Json
from tests.support.cancel import task_count

pytestmark = pytest.mark.slow
QUICK = Deadlines(connect_s=0.3, first_token_s=0.3, idle_s=0.3, total_s=5)


@attrs.frozen
class Pair:
    server: ModelServer
    provider: OpenAiProvider

    async def ask(self, model: str = "stand-in", text: str = "hello", **config: Json) -> Reply:
        reply = Reply()
        await self.provider.stream(request(model, text, **config), reply.take)
        return reply


@asynccontextmanager
async def open_pair(
    deadlines: Deadlines | None = None, *, key: str | None = None, needs_key: bool = False
) -> AsyncIterator[Pair]:
    async with open_model_server() as server:
        settings = OpenAiSettings(server.url, key, needs_key, deadlines=deadlines or Deadlines())
        async with open_openai_provider(settings) as provider:
            yield Pair(server, provider)


def request(model: str, text: str = "hello", tools: Sequence[Json] = (), **config: Json) -> ModelRequest:
    messages = (
        {"id": "s", "role": "system", "content": [{"type": "text", "text": "Be kind."}]},
        {"id": "u", "role": "user", "content": [{"type": "text", "text": text}], "source": {"kind": "user"}},
    )
    return ModelRequest({"provider": "p", "model": model, **config}, messages, tuple(tools), "s-1")


def failure(reply: Reply) -> Json:
    assert reply.finish is not None
    assert reply.finish.failure is not None
    assert reply.chunks[-1] is reply.finish
    return reply.finish.failure.to_json()


async def test_a_reply_streams_in_and_the_request_is_what_the_wire_wants() -> None:
    async with open_pair(key="k-1") as pair:
        reply = await pair.ask(temperature=0.5, maxTokens=99, stop=["END"], reasoningEffort="low", topP=1)
        assert reply.finish == Finish("stop")
        assert reply.content()[0]["text"].startswith('(offline stand-in) You said: "hello".')
        received = pair.server.requests[0]
    assert received.path == "/v1/chat/completions"
    assert received.headers["authorization"] == "Bearer k-1"
    assert received.headers["x-deepseek-harness-session-id"] == "s-1"
    assert received.body == {
        "model": "stand-in",
        "messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "hello"}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 99,
        "temperature": 0.5,
        "stop": ["END"],
        "reasoning_effort": "low",
    }
    assert reply.usage["outputTokens"] > 0


async def test_the_stand_in_answers_the_same_each_time_and_in_chinese_too() -> None:
    async with open_pair() as pair:
        first, second = await pair.ask(text="雾什么时候散？"), await pair.ask(text="雾什么时候散？")
        reasoned = await pair.ask("stand-in:reasoning")
    assert first.content() == second.content()
    assert "雾什么时候散？" in first.content()[0]["text"]
    assert [block["type"] for block in reasoned.content()] == ["reasoning", "text"]


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, "INVALID_REQUEST"),
        (401, "AUTH"),
        (402, "QUOTA"),
        (403, "AUTH"),
        (404, "HTTP_404"),
        (408, "TIMEOUT"),
        (418, "HTTP_418"),
        (422, "INVALID_REQUEST"),
        (429, "RATE_LIMIT"),
        (500, "SERVER"),
        (503, "SERVER"),
    ],
)
async def test_refusals_get_their_code(status: int, code: str) -> None:
    async with open_pair() as pair:
        value = failure(await pair.ask(f"stand-in:error:{status}"))
    assert value == {"message": "the stand-in was asked to fail", "code": code, "status": status}


async def test_a_refusal_carries_what_the_provider_said() -> None:
    async with open_pair() as pair:
        pair.server.add(error_answer(429, "slow down", **{"retry-after": "1.5", "x-request-id": "r-7"}))
        value = failure(await pair.ask())
        error = {"message": "too long", "type": "invalid_request_error", "code": "context_length_exceeded"}
        pair.server.add(Answer(status=400, error=error))
        long = failure(await pair.ask())
    assert value == {
        "message": "slow down",
        "code": "RATE_LIMIT",
        "status": 429,
        "providerRetryAfterMs": 1500,
        "requestId": "r-7",
    }
    assert long["code"] == "CONTEXT_WINDOW_EXCEEDED"


@pytest.mark.parametrize(
    ("model", "code"),
    [
        ("stand-in:hang", "TIMEOUT"),
        ("stand-in:silent", "TIMEOUT"),
        ("stand-in:half", "STREAM_CLOSED"),
        ("stand-in:empty", "EMPTY_RESPONSE"),
    ],
)
async def test_streams_that_go_wrong(model: str, code: str) -> None:
    async with open_pair(QUICK) as pair:
        reply = await pair.ask(model)
    assert failure(reply)["code"] == code


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"data: {\n\ndata: [DONE]\n\n", "MALFORMED_RESPONSE"),
        (b"data: [1]\n\ndata: [DONE]\n\n", "MALFORMED_RESPONSE"),
        (b'data: {"error":{"message":"overloaded","type":"server_error"}}\n\n', "SERVER"),
        (b"", "STREAM_CLOSED"),
        (b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n', "STREAM_CLOSED"),
        (b"data: [DONE]\n\n", "EMPTY_RESPONSE"),
    ],
)
async def test_streams_that_make_no_sense(raw: bytes, code: str) -> None:
    async with open_pair() as pair:
        pair.server.add(Answer(raw=raw))
        assert failure(await pair.ask())["code"] == code


async def test_a_server_that_answers_plain_json_is_named() -> None:
    async with open_pair() as pair:
        pair.server.add(Answer(raw=b'{"choices":[]}', headers={"content-type": "application/json"}))
        assert failure(await pair.ask())["code"] == "MALFORMED_RESPONSE"


async def test_nobody_listening_is_a_transport_failure() -> None:
    async with open_model_server() as server:
        url = server.url
    async with open_openai_provider(OpenAiSettings(url)) as provider:
        reply = Reply()
        await provider.stream(request("stand-in"), reply.take)
    assert failure(reply)["code"] == "TRANSPORT"


async def test_a_missing_key_is_said_without_any_network() -> None:
    async with open_pair(needs_key=True) as pair:
        assert failure(await pair.ask())["code"] == "MISSING_CREDENTIAL"
        assert pair.server.requests == []


async def test_a_cut_off_reply_says_so() -> None:
    async with open_pair() as pair:
        reply = await pair.ask("stand-in:length")
    assert reply.finish == Finish("max-tokens")


async def test_cancelling_closes_the_connection_at_once() -> None:
    async with open_pair() as pair:
        tasks = task_count()
        for model in ("stand-in:hang", "stand-in:silent", "stand-in:slow"):
            with trio.move_on_after(0.1) as scope:
                await pair.ask(model)
            assert scope.cancelled_caught
            with trio.fail_after(12):
                await pair.server.open_connections.wait_value(lambda count: count == 0)
        await trio.testing.wait_all_tasks_blocked()
        assert task_count() <= tasks
        assert (await pair.ask()).finish == Finish("stop")


async def test_prepare_refuses_what_no_server_takes() -> None:
    settings = OpenAiSettings("http://127.0.0.1:1", efforts=frozenset({"low"}), defaults={"maxTokens": 64})
    async with open_openai_provider(settings) as provider:
        prepared = await provider.prepare({"provider": "p", "model": "m"})
        assert prepared.config["maxTokens"] == 64
        assert prepared.adapter_defaults == {"maxTokens"}
        for config, code in (
            ({"model": "m", "reasoningEffort": "ultra"}, "UNSUPPORTED_REASONING_EFFORT"),
            ({"model": ""}, "INVALID_REQUEST"),
            ({"model": "m", "temperature": "hot"}, "INVALID_REQUEST"),
            ({"model": "m", "maxTokens": 0}, "INVALID_REQUEST"),
        ):
            with pytest.raises(ProviderError) as caught:
                await provider.prepare(config)
            assert caught.value.code == code


async def test_the_embedded_host_runs_a_tool_turn_over_the_wire() -> None:
    tools = ToolRegistry()

    async def body(execution: ToolExecution) -> str:
        return "fog until four"

    tools.add(Tool("lamp_log", "Reads.", {"type": "object"}, body))
    async with open_pair() as pair:
        options = AgentOptions("p", "stand-in:tool:lamp_log")
        async with open_embedded_host(MemorySessionLog(), {"p": pair.provider}, options=options, tools=tools) as host:
            host.prompt.section("base", "Be kind.")
            handle = await host.create("s")
            await handle.followup("What does the lamp log say?")
            await handle.when_idle()
            events = (await handle.session.inspect()).events
        first, second = (received.body for received in pair.server.requests)
    assert events[-1].data["reason"] == {"kind": "completed"}
    assert first["tools"][0]["function"]["name"] == "lamp_log"
    assert [message["role"] for message in second["messages"]] == ["system", "user", "assistant", "tool"]
    assert second["messages"][3]["content"] == "fog until four"
    answer = [event for event in events if event.type == "assistant/message"][-1]
    assert "fog until four" in answer.data["message"]["content"][0]["text"]


async def test_a_reader_that_stops_holds_up_nobody() -> None:
    async with open_pair() as pair:
        options = AgentOptions("p", "stand-in")
        async with open_embedded_host(MemorySessionLog(), {"p": pair.provider}, options=options) as host:
            handle = await host.create("s")
            stuck = await handle.subscribe()
            pair.server.add(Answer(text_deltas("word " * 400, 5)))
            with trio.fail_after(10):
                await handle.followup("tell")
                await handle.when_idle()
            assert (await handle.session.inspect()).events[-1].type == "turn/end"
            stuck.close()
