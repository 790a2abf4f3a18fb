"""Every row of the fault table: what is injected, how the turn ends, what its log holds (spec/dsh_host §7, §8)."""

from typing import Any

import pytest
import trio

from tapster.actors.hosts import MemorySessionLog
from tapster.actors.hosts.embedded import (
    Ask,
    Deny,
    Reject,
    SessionEvent,
    Tool,
    ToolExecution,
    ToolOutput,
    ToolRegistry,
    TurnError,
)
from tapster.actors.providers import ScriptedProvider
from tapster.actors.providers.chunks import BlockStart, Failure, Finish, TextDelta
from tapster.actors.providers.scripted import Crash, Pause, calls, fails, says
from tapster.engine.ecma import Json
from tapster.engine.projection import Event
from tests.support.hosts import Rig, open_rig

INPUT_LOST = ["agent/inbox/spliced", "turn/start", "agent/inbox/spliced", "turn/end"]
BEFORE_REQUEST = [*INPUT_LOST[:3], "step/start", "system/message", "user/message", "step/end", "turn/end"]
HEADER = [*BEFORE_REQUEST[:-2], "request/header", "request/context"]


def boom(message: str) -> Any:
    async def listener(value: Any, context: Any, following: Any) -> Any:
        raise ValueError(message)

    return listener


def raises(message: str) -> Any:
    def provider(context: Any) -> str:
        raise ValueError(message)

    return provider


async def set_config(rig: Rig, **members: Json) -> None:
    async def listener(value: Any, context: Any, following: Any) -> Any:
        return {**await following(), **members}

    rig.host.hooks.request.add(listener)


async def one_turn(rig: Rig, text: str = "hello") -> list[str]:
    rig.host.prompt.section("base", "Be kind.")
    handle = await rig.host.create("s")
    await handle.followup(text)
    await handle.when_idle()
    return rig.types()


def inject_section(rig: Rig) -> None:
    rig.host.prompt.section("bad", raises("section boom"))


def inject_context(rig: Rig) -> None:
    rig.host.prompt.context("bad", "{{nobody}}")


def inject_assemble(rig: Rig) -> None:
    rig.host.hooks.assemble.add(boom("assemble boom"))


def inject_pre_step(rig: Rig) -> None:
    rig.host.hooks.pre_step.add(boom("pre-step boom"))


@pytest.mark.parametrize("inject", [inject_section, inject_context, inject_assemble, inject_pre_step])
async def test_what_fails_before_the_step_loses_the_input(autojump_clock: object, inject: Any) -> None:
    errors: list[TurnError] = []
    async with open_rig() as rig:
        inject(rig)
        rig.host.hooks.error.add(errors.append)
        assert await one_turn(rig) == INPUT_LOST
        assert rig.last_end()["kind"] == "error"
        assert rig.last_end()["error"]["code"] == "UNKNOWN"
        assert rig.agent().derive_messages() == ()
        assert rig.provider.requests == []
    assert [(error.turn, error.step) for error in errors] == [(1, 0)]


async def test_a_rejected_step_blocks_the_turn(autojump_clock: object) -> None:
    async def reject(value: Any, context: Any, following: Any) -> Any:
        await following()
        return Reject()

    async with open_rig() as rig:
        rig.host.hooks.pre_step.add(reject)
        assert await one_turn(rig) == INPUT_LOST
        assert rig.last_end() == {"kind": "blocked"}


@pytest.mark.parametrize("text", ["{{char}}", "{{ user }}", "{{roll:1d6}}", "{{a::b}}", "x {{}} y"])
async def test_a_bad_reference_in_a_section_fails_after_the_input_was_logged(autojump_clock: object, text: str) -> None:
    async with open_rig() as rig:
        rig.host.prompt.section("bad", text)
        kinds = [kind for kind in BEFORE_REQUEST if kind != "system/message"]
        assert await one_turn(rig) == kinds
        error = rig.last_end()["error"]
        assert error["code"] == "UNKNOWN"
        assert '"bad"' in error["message"]
        assert len(rig.agent().derive_messages()) == 1


@pytest.mark.parametrize("text", ["{{", "a {{ b", "{ {x} }", "}} {{"])
async def test_lone_braces_are_kept(autojump_clock: object, text: str) -> None:
    async with open_rig() as rig:
        rig.host.prompt.section("braces", text)
        await one_turn(rig)
        assert rig.last_end() == {"kind": "completed"}
        assert rig.provider.requests[0].messages[0]["content"][0]["text"] == f"{text}\n\nBe kind."


async def test_a_failing_request_hook_ends_the_turn_after_the_input(autojump_clock: object) -> None:
    async with open_rig() as rig:
        rig.host.hooks.request.add(boom("request boom"))
        assert await one_turn(rig) == BEFORE_REQUEST
        assert rig.last_end() == {"kind": "error", "error": {"message": "request boom", "code": "UNKNOWN"}}


async def test_an_unsupported_effort_never_reaches_the_network(autojump_clock: object) -> None:
    async with open_rig() as rig:
        await set_config(rig, reasoningEffort="ultra")
        assert await one_turn(rig) == BEFORE_REQUEST
        assert rig.last_end()["error"]["code"] == "UNSUPPORTED_REASONING_EFFORT"
        assert rig.provider.requests == []


async def test_an_unknown_provider_is_in_the_header(autojump_clock: object) -> None:
    async with open_rig() as rig:
        await set_config(rig, provider="nope")
        assert await one_turn(rig) == [*HEADER, "assistant/attempt", "step/end", "turn/end"]
        assert rig.last_end()["error"]["code"] == "NO_ADAPTER"
        header = next(event for event in rig.events() if event.type == "request/header")
        assert header.data["header"]["config"]["provider"] == "nope"


async def test_a_failing_stream_hook_leaves_a_header_and_no_chunk(autojump_clock: object) -> None:
    async with open_rig() as rig:
        rig.host.hooks.stream.add(boom("stream boom"))
        assert await one_turn(rig) == [*HEADER, "step/end", "turn/end"]
        assert rig.last_end()["error"] == {"message": "stream boom", "code": "UNKNOWN"}


async def test_a_provider_that_breaks_ends_the_turn(autojump_clock: object) -> None:
    provider = ScriptedProvider()
    provider.add([BlockStart(0, "text"), Crash(RuntimeError("wire cut"))])
    async with open_rig(provider) as rig:
        kinds = await one_turn(rig)
        assert kinds[-2:] == ["step/end", "turn/end"]
        assert rig.last_end()["error"]["message"] == "wire cut"


async def test_a_failing_request_error_hook_gives_its_own_error(autojump_clock: object) -> None:
    provider = ScriptedProvider()
    provider.add(fails("INVALID_REQUEST", "bad", status=400))
    async with open_rig(provider) as rig:
        rig.host.hooks.request_error.add(boom("reqerr boom"))
        assert await one_turn(rig) == [*HEADER, "assistant/attempt", "step/end", "turn/end"]
        assert rig.last_end()["error"] == {"message": "reqerr boom", "code": "UNKNOWN"}


async def test_notices_that_fail_change_nothing(autojump_clock: object) -> None:
    def listener(given: object) -> None:
        raise ValueError("notice boom")

    async with open_rig() as rig:
        hooks = rig.host.hooks
        for notice in (hooks.session_event, hooks.session_start, hooks.status, hooks.inbox_claimed, hooks.disposed):
            notice.add(listener)
        kinds = await one_turn(rig)
        assert kinds[-1] == "turn/end"
        assert rig.last_end() == {"kind": "completed"}
    assert {fields["hook"] for _, event, fields in rig.reports if event == "host.listener_failed"} == {
        "session/event",
        "agent/session-start",
        "agent/status",
        "agent/inbox/claimed",
        "agent/disposed",
    }
    assert all("boom" not in str(fields) for _, _, fields in rig.reports)


async def test_a_listener_cannot_append_to_the_session_it_hears(autojump_clock: object) -> None:
    codes: list[str] = []

    def listener(given: SessionEvent) -> None:
        try:
            given.agent.log.append("session/title", {"title": "x"})
        except Exception as error:
            codes.append(getattr(error, "code", ""))
            raise

    async with open_rig() as rig:
        rig.host.hooks.session_event.add(listener)
        kinds = await one_turn(rig)
        assert "session/title" not in kinds
    assert set(codes) == {"REENTRANT_APPEND"}


async def test_after_an_error_queued_input_waits_for_the_next_wake(autojump_clock: object) -> None:
    provider = ScriptedProvider()
    provider.add([Pause(1), *fails("INVALID_REQUEST")])
    async with open_rig(provider) as rig:
        handle = await rig.host.create("s")
        await handle.followup("fails")
        await handle.followup("queued")
        await handle.when_idle()
        assert rig.last_end()["kind"] == "error"
        assert len(rig.agent().queues.next_turn) == 1
        await handle.followup("wakes")
        await handle.when_idle()
        texts = [message["content"][0]["text"] for message in rig.provider.requests[1].messages]
        assert texts == ["fails", "queued"]
        texts = [message["content"][0]["text"] for message in rig.provider.requests[2].messages]
        assert texts == ["fails", "queued", "All is well.", "wakes"]


# -- retries


@pytest.mark.parametrize("code", ["EMPTY_RESPONSE", "RATE_LIMIT", "SERVER", "TIMEOUT", "TRANSPORT"])
async def test_a_passing_failure_is_retried_in_the_same_step(autojump_clock: object, code: str) -> None:
    provider = ScriptedProvider()
    provider.add(fails(code), fails(code, retry_after_ms=3000), says("Third time."))
    seen: list[str] = []

    async def behind(value: Any, context: Any, following: Any) -> Any:
        seen.append(value.failure.code)
        return await following()

    async with open_rig(provider) as rig:
        rig.host.hooks.request_error.add(behind)
        start = trio.current_time()
        kinds = await one_turn(rig)
        assert trio.current_time() - start == pytest.approx(0.5 + 3.0)
        attempt = ["assistant/attempt", "llm/retry", "llm/retry-started"]
        assert kinds == [*HEADER, *attempt, *attempt, "assistant/message", "step/end", "turn/end"]
        retries = [event.data for event in rig.events() if event.type == "llm/retry"]
        attempts = [event.data for event in rig.events() if event.type == "assistant/attempt"]
    assert seen == [], "the built-in retry answers before those registered later"
    assert [(retry["retry"], retry["delayMs"]) for retry in retries] == [(1, 500), (2, 3000)]
    assert retries[0]["failure"]["code"] == code
    assert attempts[0]["stream"][-1]["chunk"]["reason"]["failure"]["code"] == code


async def test_retries_end_after_five(autojump_clock: object) -> None:
    provider = ScriptedProvider()
    provider.add(*(fails("SERVER", status=503) for _ in range(9)))
    async with open_rig(provider) as rig:
        start = trio.current_time()
        await one_turn(rig)
        assert trio.current_time() - start == pytest.approx(0.5 + 1 + 2 + 4 + 8)
        assert len(provider.requests) == 6
        assert rig.last_end()["error"] == {"message": "the provider failed", "code": "SERVER", "status": 503}


async def test_a_plugin_retries_with_a_changed_config(autojump_clock: object) -> None:
    provider = ScriptedProvider()
    provider.add(fails("INVALID_REQUEST", "temperature is not supported", status=400), says("Accepted."))
    failed: list[str] = []

    async def request(value: Any, context: Any, following: Any) -> Any:
        config = dict(await following())
        if failed:
            config.pop("temperature", None)
            return config
        return {**config, "temperature": 0.4}

    async def request_error(value: Any, context: Any, following: Any) -> Any:
        failed.append(value.failure.code)
        return "retry"

    async with open_rig(provider) as rig:
        rig.host.hooks.request.add(request)
        rig.host.hooks.request_error.add(request_error, prepend=True)
        kinds = await one_turn(rig)
        assert kinds == [*HEADER, "assistant/attempt", "request/header", "assistant/message", "step/end", "turn/end"]
        reasons = [event.data["reason"] for event in rig.events() if event.type == "request/header"]
        assert reasons == ["initial", "change"]
    assert "temperature" not in provider.requests[1].config


async def test_a_stream_that_breaks_after_output_is_terminal(autojump_clock: object) -> None:
    provider = ScriptedProvider()
    failure = Failure("STREAM_CLOSED", "the event stream ended without [DONE]")
    provider.add([BlockStart(0, "text"), TextDelta(0, "The beam "), Finish("error", failure)])
    async with open_rig(provider) as rig:
        kinds = await one_turn(rig)
        assert kinds == [*HEADER, "assistant/attempt", "step/end", "turn/end"]
        assert rig.last_end()["error"]["code"] == "STREAM_CLOSED"
        assert [message["role"] for message in rig.agent().derive_messages()] == ["system", "user"]


async def test_max_tokens_keeps_the_message_and_runs_no_tool(autojump_clock: object) -> None:
    provider = ScriptedProvider()
    cut = calls(("c", "look", '{"a": '), text="Cut off")
    provider.add([*cut[:-1], Finish("max-tokens")])
    async with open_rig(provider) as rig:
        kinds = await one_turn(rig)
        assert kinds[-3:] == ["assistant/message", "step/end", "turn/end"]
        assert rig.last_end() == {"kind": "max-tokens"}


# -- tools


def tool_result(events: list[Event]) -> Json:
    return next(event.data for event in events if event.type == "tool/result")


def one_call(arguments: str = "{}") -> ScriptedProvider:
    provider = ScriptedProvider()
    provider.add(calls(("c-1", "look", arguments)))
    return provider


def registry(body: Any) -> ToolRegistry:
    tools = ToolRegistry()
    tools.add(Tool("look", "Looks.", {"type": "object"}, body))
    return tools


async def looks(execution: ToolExecution) -> str:
    return "a lamp"


async def breaks(execution: ToolExecution) -> str:
    raise OSError("the lens is cracked")


async def fails_softly(execution: ToolExecution) -> ToolOutput:
    return ToolOutput.failed("fog", {"name": "FogError", "code": "FOG"})


@pytest.mark.parametrize(
    ("arguments", "body", "text", "code"),
    [
        ("{}", looks, "a lamp", None),
        ("", looks, "a lamp", None),
        ("{", looks, None, "TOOL_ARGUMENTS_INVALID"),
        ("[1]", looks, None, "TOOL_ARGUMENTS_INVALID"),
        ("{}", breaks, "Error: the lens is cracked", "TOOL_FAILED"),
        ("{}", fails_softly, "Error: fog", "FOG"),
    ],
)
async def test_a_tool_call_ends_in_a_result_and_the_turn_goes_on(
    autojump_clock: object, arguments: str, body: Any, text: str | None, code: str | None
) -> None:
    async with open_rig(one_call(arguments), tools=registry(body)) as rig:
        await one_turn(rig)
        result = tool_result(rig.events())
        block = result["message"]["content"][0]
        assert rig.last_end() == {"kind": "completed"}
        assert block["isError"] is (code is not None)
        assert text is None or block["content"] == [{"type": "text", "text": text}]
        assert result.get("error", {}).get("code") == code
        assert len(rig.provider.requests) == 2


async def test_an_unknown_tool_is_an_error_result(autojump_clock: object) -> None:
    async with open_rig(one_call()) as rig:
        await one_turn(rig)
        assert tool_result(rig.events())["error"]["code"] == "TOOL_NOT_FOUND"


async def denies(execution: Any, context: Any, following: Any) -> Any:
    return Deny("not now")


async def asks(execution: Any, context: Any, following: Any) -> Any:
    return Ask("who is there?")


@pytest.mark.parametrize(("decide", "text"), [(denies, "Error: not now"), (asks, "Error: who is there?")])
async def test_pre_execute_may_refuse(autojump_clock: object, decide: Any, text: str) -> None:
    ran: list[str] = []

    async def body(execution: ToolExecution) -> str:
        ran.append(execution.name)
        return "ran"

    async with open_rig(one_call(), tools=registry(body)) as rig:
        rig.host.hooks.tools.pre_execute.add(decide)
        await one_turn(rig)
        assert tool_result(rig.events())["message"]["content"][0]["content"][0]["text"] == text
    assert ran == []


async def test_a_guard_denies_before_execute_and_post_execute_still_runs(autojump_clock: object) -> None:
    heard: list[str] = []

    async def execute(value: Any, context: Any, following: Any) -> Any:
        heard.append("execute")
        return await following()

    async def post(value: Any, context: Any, following: Any) -> Any:
        heard.append("post")
        return await following()

    async with open_rig(one_call(), tools=registry(looks)) as rig:
        rig.host.tools.guard(lambda execution: "not in this scene")
        rig.host.hooks.tools.execute.add(execute)
        rig.host.hooks.tools.post_execute.add(post)
        await one_turn(rig)
        result = tool_result(rig.events())
    assert heard == ["post"]
    assert result["message"]["content"][0]["content"][0]["text"] == "Error: not in this scene"
    assert "error" not in result


@pytest.mark.parametrize("name", ["pre_execute", "execute", "post_execute"])
async def test_a_failing_tool_hook_fails_that_call_only(autojump_clock: object, name: str) -> None:
    async with open_rig(one_call(), tools=registry(looks)) as rig:
        getattr(rig.host.hooks.tools, name).add(boom("hook boom"))
        await one_turn(rig)
        assert tool_result(rig.events())["message"]["content"][0]["isError"] is True
        assert rig.last_end() == {"kind": "completed"}


async def test_a_tool_can_conclude_the_turn(autojump_clock: object) -> None:
    async def body(execution: ToolExecution) -> str:
        execution.conclude_turn()
        return "done"

    async with open_rig(one_call(), tools=registry(body)) as rig:
        await one_turn(rig)
        assert rig.last_end() == {"kind": "completed"}
        assert len(rig.provider.requests) == 1


# -- the store


async def test_a_store_that_fails_ends_the_turn_and_loses_no_event(autojump_clock: object) -> None:
    log = MemorySessionLog()
    async with open_rig(log=log) as rig:
        handle = await rig.host.create("s")

        async def break_store(value: Any, context: Any, following: Any) -> Any:
            log.failing = 2
            return await following()

        remove = rig.host.hooks.request.add(break_store)
        await handle.followup("hello")
        await handle.when_idle()
        assert rig.last_end()["error"]["code"] == "STORE_FAILED"
        remove()
        await handle.followup("again")
        await handle.when_idle()
        assert rig.last_end() == {"kind": "completed"}
        assert list((await log.read("s")).events) == rig.events()
    assert ("error", "host.log_not_durable") in {(level, event) for level, event, _ in rig.reports}
