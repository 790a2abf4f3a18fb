"""The order of one turn of the embedded host, event by event and hook by hook (spec/dsh_host §2)."""

from typing import Any

import pytest

from tapster.actors.hosts.embedded import (
    Assembly,
    Enter,
    NamedText,
    PreStep,
    SessionEvent,
    StepContext,
    Tool,
    ToolExecution,
    ToolRegistry,
)
from tapster.actors.providers import CallConfig, ScriptedProvider
from tapster.actors.providers.scripted import calls, says
from tapster.engine.ecma import Json
from tapster.engine.projection import derive_messages
from tests.support.hosts import Rig, open_rig


def lamp_log() -> Tool:
    async def body(execution: ToolExecution) -> str:
        return f"Night {execution.arguments['night']}: fog until four."

    schema = {"type": "object", "properties": {"night": {"type": "integer"}}}
    return Tool("lamp_log", "Reads a page.", schema, body)


def trace_hooks(rig: Rig) -> list[str]:
    heard: list[str] = []
    hooks = rig.host.hooks

    def event(given: SessionEvent) -> None:
        queues = given.agent.queues
        pending = f" pending={len(queues.next_turn)}" if given.event.type == "agent/inbox/spliced" else ""
        heard.append(f"EV{given.event.seq} {given.event.type}{pending}")

    def wrap(name: str) -> Any:
        async def listener(value: Any, context: Any, following: Any) -> Any:
            heard.append(f"{name}:enter")
            result = await following()
            heard.append(f"{name}:exit")
            return result

        return listener

    hooks.session_event.add(event)
    hooks.assemble.add(wrap("assemble"))
    hooks.pre_step.add(wrap("pre-step"))
    hooks.request.add(wrap("request"))
    hooks.stream.add(wrap("stream"))
    hooks.tools.pre_execute.add(wrap("tools/pre-execute"))
    hooks.tools.execute.add(wrap("tools/execute"))
    hooks.tools.post_execute.add(wrap("tools/post-execute"))
    hooks.inbox_inserted.add(lambda change: heard.append("inserted"))
    hooks.inbox_claimed.add(lambda change: heard.append(f"claimed turn={change.turn}"))
    hooks.status.add(lambda change: heard.append(change.status))

    async def stopping(context: StepContext) -> None:
        heard.append("turn-stopping")

    hooks.turn_stopping.add(stopping)
    return heard


async def test_a_first_turn_with_a_tool_call_goes_in_the_order_of_the_host(autojump_clock: object) -> None:
    provider = ScriptedProvider()
    provider.add(calls(("c-1", "lamp_log", '{"night": 12}'), text="Let me look."), says("Fog until four."))
    tools = ToolRegistry()
    tools.add(lamp_log())
    async with open_rig(provider, tools=tools) as rig:
        rig.host.prompt.section("id", "You run on {{model}}.", order=-100)
        rig.host.prompt.context("tide", "Tide: rising")
        handle = await rig.host.create("s")
        heard = trace_hooks(rig)
        await handle.followup("What does the lamp log say?")
        await handle.when_idle()
    assert heard == [
        "EV0 agent/inbox/spliced pending=0",
        "inserted",
        "running",
        "EV1 turn/start",
        "EV2 agent/inbox/spliced pending=1",
        "claimed turn=1",
        "assemble:enter",
        "assemble:exit",
        "pre-step:enter",
        "pre-step:exit",
        "EV3 step/start",
        "EV4 system/message",
        "EV5 user/message",
        "EV6 user/message",
        "request:enter",
        "request:exit",
        "EV7 request/header",
        "EV8 request/context",
        "stream:enter",
        "stream:exit",
        "EV9 assistant/message",
        "EV10 tool/call",
        "tools/pre-execute:enter",
        "tools/pre-execute:exit",
        "tools/execute:enter",
        "tools/execute:exit",
        "tools/post-execute:enter",
        "tools/post-execute:exit",
        "EV11 tool/result",
        "EV12 step/end",
        "assemble:enter",
        "assemble:exit",
        "pre-step:enter",
        "pre-step:exit",
        "EV13 step/start",
        "request:enter",
        "request:exit",
        "stream:enter",
        "stream:exit",
        "EV14 assistant/message",
        "EV15 step/end",
        "turn-stopping",
        "EV16 turn/end",
        "idle",
    ]
    first, second = provider.requests
    assert [message["role"] for message in first.messages] == ["system", "user", "user"]
    assert first.messages[0]["content"] == [{"type": "text", "text": "You run on mod."}]
    assert first.messages[2]["source"]["sections"] == [{"name": "tide", "text": "Tide: rising"}]
    assert second.messages[:3] == first.messages
    assert [message["role"] for message in second.messages[3:]] == ["assistant", "user"]
    stored = await rig.log.read("s")
    assert [event.seq for event in stored.events] == list(range(17))
    assert derive_messages(stored.events)[:5] == second.messages
    assert stored.events[11].source_event_seqs == (10,)


async def test_a_context_message_and_a_header_are_logged_only_when_they_change(autojump_clock: object) -> None:
    tide = ["rising", "rising", "falling"]
    async with open_rig() as rig:
        rig.host.prompt.context("tide", lambda context: f"Tide: {tide[context.turn - 1]}")
        rig.host.prompt.section("text", lambda context: "calm" if context.turn < 3 else "storm")
        handle = await rig.host.create("s")
        kinds = []
        for turn in range(3):
            before = len(rig.events())
            await handle.followup(f"turn {turn}")
            await handle.when_idle()
            kinds.append([kind for kind in rig.types(since=before) if kind in ("user/message", "system/message")])
        headers = [event for event in rig.events() if event.type == "request/header"]
        roles = [message["role"] for message in rig.agent().derive_messages()]
    assert kinds == [
        ["system/message", "user/message", "user/message"],
        ["user/message"],
        ["system/message", "user/message", "user/message"],
    ]
    assert [header.data["reason"] for header in headers] == ["initial"]
    assert roles.count("system") == 1
    assert roles[0] == "system"


async def test_listeners_change_what_passes_them(autojump_clock: object) -> None:
    async def assemble(value: Assembly, context: Any, following: Any) -> Assembly:
        result = await following()
        return Assembly((*result.sections, NamedText("mine", "{{lb}}char}}")), variables={"lb": "{{"})

    async def pre_step(value: PreStep, context: Any, following: Any) -> Any:
        decision = await following()
        extra = {"id": "x", "role": "user", "content": [{"type": "text", "text": "extra"}], "source": {"kind": "p"}}
        return Enter((*decision.messages, extra))

    async def request(value: CallConfig, context: Any, following: Any) -> CallConfig:
        return {**await following(), "temperature": 0.3, "topP": 0.9}

    async with open_rig() as rig:
        rig.host.hooks.assemble.add(assemble)
        rig.host.hooks.pre_step.add(pre_step)
        remove = rig.host.hooks.request.add(request)
        handle = await rig.host.create("s")
        await handle.followup("hello")
        await handle.when_idle()
        remove()
        await handle.followup("again")
        await handle.when_idle()
        first, second = rig.provider.requests
    assert first.messages[0]["content"][0]["text"] == "{{char}}"
    assert [message["content"][0]["text"] for message in first.messages[1:]] == ["hello", "extra"]
    assert first.config == {"provider": "prov", "model": "mod", "temperature": 0.3, "topP": 0.9}
    assert second.config == first.config, "the seed is sticky"


async def test_what_a_provider_fills_in_is_marked_and_not_sticky(autojump_clock: object) -> None:
    provider = ScriptedProvider(defaults={"maxTokens": 256}, context_window=1000)
    seeds: list[Json] = []

    async def request(value: CallConfig, context: Any, following: Any) -> CallConfig:
        seeds.append(dict(value))
        config: CallConfig = await following()
        return config

    async with open_rig(provider) as rig:
        rig.host.hooks.request.add(request)
        handle = await rig.host.create("s")
        for text in ("a", "b"):
            await handle.followup(text)
            await handle.when_idle()
        headers = [event for event in rig.events() if event.type == "request/header"]
        contexts = [event.data for event in rig.events() if event.type == "request/context"]
    assert seeds == [{"provider": "prov", "model": "mod"}] * 2
    assert len(headers) == 1
    assert headers[0].data["header"] == {
        "config": {"provider": "prov", "model": "mod", "maxTokens": 256},
        "adapterDefaults": {"maxTokens": True},
    }
    assert contexts == [{"provider": "prov", "model": "mod", "contextWindow": 1000}]


@pytest.mark.parametrize("is_prepended", [False, True])
async def test_the_first_registered_listener_is_the_outermost(autojump_clock: object, is_prepended: bool) -> None:
    order: list[str] = []

    def listener(name: str) -> Any:
        async def listen(value: Assembly, context: Any, following: Any) -> Assembly:
            order.append(name)
            result: Assembly = await following()
            return result

        return listen

    async with open_rig() as rig:
        rig.host.hooks.assemble.add(listener("A"))
        rig.host.hooks.assemble.add(listener("B"), prepend=is_prepended)
        handle = await rig.host.create("s")
        await handle.followup("hello")
        await handle.when_idle()
    assert order == (["B", "A"] if is_prepended else ["A", "B"])
