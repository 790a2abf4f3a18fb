"""Both backends of the assembler, on the embedded host."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import attrs

from tapster.actors.hosts import MemorySessionLog
from tapster.actors.hosts.embedded import Tool, ToolExecution, ToolRegistry
from tapster.actors.providers.scripted import calls
from tapster.actors.sources import FakeSource, Output, Source, Sources, open_sources
from tapster.actors.sources.embedded import EmbeddedAssembler
from tapster.actors.sources.requests import PlainRequests
from tapster.engine.assembly import (
    HistoryPolicies,
    PresetStore,
    RequestContext,
    Rule,
    actual_assembly_result,
    register_host_sources,
    text_of,
)
from tests.support.assembly import HEAD
from tests.support.hosts import Rig, open_rig

Json = Any
NATIVE = {**HEAD, "id": "native", "backend": "native"}
CORE = {**HEAD, "id": "core", "backend": "core"}
ENDS = [{"id": "native-system", "kind": "native-system"}, {"id": "history", "kind": "history"}]
INPUT = {"id": "input", "kind": "input"}


@attrs.define(eq=False)
class Memo(Source):
    """A text that tests change."""

    text: str = "inn"
    id = "memo"
    plugin_id = "test.plugin"
    name = "Memo"

    async def resolve(self, context: RequestContext, rule: Rule) -> Output:
        return {"blocks": [{"type": "text", "id": "m", "text": self.text}]}


@attrs.define
class Bench:
    rig: Rig
    sources: Sources
    presets: PresetStore
    memo: Memo

    def apply(self, preset: Mapping[str, Json], *rules: Json, session: str = "s") -> None:
        self.presets.apply_snapshot(session, {**preset, "rules": list(rules)})

    async def say(self, text: str, session: str = "s") -> list[tuple[str, str]]:
        """Send a message; the request that went out."""
        handle = await self.rig.host.open(session)
        sent = len(self.rig.provider.requests)
        await handle.followup(text)
        await handle.when_idle()
        if len(self.rig.provider.requests) == sent:
            return []
        return [(each["role"], text_of(each)) for each in self.rig.provider.requests[-1].messages]


@asynccontextmanager
async def bench(
    log: MemorySessionLog | None = None,
    *,
    create: bool = True,
    first_id: int = 0,
    tools: ToolRegistry | None = None,
) -> AsyncIterator[Bench]:
    async def assets(session_id: str) -> Mapping[str, Json]:
        return {"session": session_id}

    async with open_rig(log=log, tools=tools, first_id=first_id) as rig, open_sources() as sources:
        register_host_sources(sources.registry)
        memo = Memo()
        sources.add(memo)
        presets = PresetStore(new_id=iter("abc").__next__)
        requests = PlainRequests(sources, presets, HistoryPolicies(presets), assets)
        assembler = EmbeddedAssembler(rig.host, requests, sources.strategies)
        detach = assembler.attach()
        rig.host.prompt.section("identity", "You are a lamp.")
        if create:
            await rig.host.create("s")
        yield Bench(rig, sources, presets, memo)
        detach()


async def test_native_contributions_are_delivered_by_the_host() -> None:
    async with bench() as given:
        early = {"id": "early", "kind": "memo", "role": "user", "delivery": "pre-step"}
        given.apply(NATIVE, *ENDS, early, INPUT)
        assert await given.say("hi") == [("system", "You are a lamp."), ("user", "inn"), ("user", "hi")]
        given.memo.text = "dock"
        assert (await given.say("on"))[-3:] == [("assistant", "All is well."), ("user", "dock"), ("user", "on")]
        durable = [text_of(each) for each in given.rig.agent().derive_messages()]
        assert durable[1:3] == ["inn", "hi"]


async def test_native_system_and_context_parts_stand_in_their_places() -> None:
    async with bench() as given:
        given.sources.add(FakeSource("ctx", "Tide {{rising}}"))
        given.apply(NATIVE, {"id": "memo", "kind": "memo"}, *ENDS, INPUT, {"id": "ctx", "kind": "ctx", "role": "user"})
        request = await given.say("hi")
        assert request[0] == ("system", "inn\n\nYou are a lamp.")
        assert request[1] == ("user", "hi")
        assert "Tide {{rising}}" in request[2][1]


async def test_core_replaces_the_request_and_leaves_evidence_not_history() -> None:
    async with bench() as given:
        given.apply(CORE, *ENDS, INPUT, {"id": "memo", "kind": "memo", "role": "user", "depth": 1})
        assert await given.say("hi") == [("system", "You are a lamp."), ("user", "inn"), ("user", "hi")]
        agent = given.rig.agent()
        assert "inn" not in [text_of(each) for each in agent.derive_messages()]
        [event] = [event for event in agent.log.events if event.type == "request/assembly"]
        actual = actual_assembly_result(event.data)
        assert [node["module"] for node in actual.nodes] == ["native-system", "memo", "input"]
        assert [each["id"] for each in actual.messages] == [
            each["id"] for each in given.rig.provider.requests[-1].messages
        ]


async def test_core_snapshots_outlive_a_restart() -> None:
    log = MemorySessionLog()
    rules = [*ENDS, INPUT, {"id": "memo", "kind": "memo", "lifetime": "snapshot"}]
    async with bench(log) as given:
        given.apply(CORE, *rules)
        first = await given.say("hi")
    assert first[-1] == ("system", "You are a lamp.\n\ninn")
    async with bench(log, create=False, first_id=1_000) as given:
        given.apply(CORE, *rules)
        second = await given.say("on")
        assert second[: len(first)] == first
        assert second[-1] == ("user", "on")
        given.memo.text = "dock"
        assert (await given.say("and"))[-1] == ("system", "You are a lamp.\n\ninn\n\ndock")


async def test_a_refusal_ends_the_turn_and_sends_nothing() -> None:
    async with bench() as given:
        given.sources.add(FakeSource("broken", fail_at=0))
        for preset in (NATIVE, CORE):
            given.apply(preset, {"id": "broken", "kind": "broken"}, *ENDS, INPUT)
            assert await given.say("hi") == []
            assert given.rig.last_end()["error"]["code"] == "SOURCE_FAILED"
        assert not [event for event in given.rig.agent().log.events if event.type == "request/assembly"]


async def test_hidden_injections_stay_hidden_over_a_restart_and_come_back() -> None:
    log = MemorySessionLog()
    policy = {
        "version": 1,
        "enabled": True,
        "sources": [{"kind": "dsh-prompt-assembler", "include": False}],
        "contentTypes": {"text": True, "image": True, "reasoning": True},
        "fragments": [],
    }
    late = {"id": "late", "kind": "memo", "role": "user", "delivery": "pre-step"}
    rules = (*ENDS, INPUT, late)
    async with bench(log) as given:
        given.apply({**NATIVE, "historyPolicy": policy}, *rules)
        await given.say("one")
        assert [text for _, text in await given.say("two")].count("inn") == 1
    async with bench(log, create=False, first_id=1_000) as given:
        given.apply({**NATIVE, "historyPolicy": policy}, *rules)
        assert [text for _, text in await given.say("three")].count("inn") == 1
        given.apply({**NATIVE, "historyPolicy": {**policy, "enabled": False}}, *rules)
        assert [text for _, text in await given.say("four")].count("inn") == 4


async def test_a_tool_step_is_assembled_anew_and_its_transaction_stays_whole() -> None:
    async def body(execution: ToolExecution) -> str:
        return "fog"

    tools = ToolRegistry()
    tools.add(Tool("probe", "Looks.", {"type": "object"}, body))
    async with bench(tools=tools) as given:
        given.apply(CORE, *ENDS, INPUT, {"id": "memo", "kind": "memo", "role": "user", "depth": 1})
        given.rig.provider.add(calls(("c1", "probe", "{}")))
        await given.say("hi")
        assert len(given.rig.provider.requests) == 2
        last = given.rig.provider.requests[-1].messages
        kinds = [[block["type"] for block in each["content"]] for each in last]
        assert kinds == [["text"], ["text"], ["tool-call"], ["tool-result"], ["text"]]
        assert text_of(last[-1]) == "inn"
        evidence = [event.data for event in given.rig.agent().log.events if event.type == "request/assembly"]
        assert [each["step"] for each in evidence] == [1, 2]


async def test_without_a_preset_nothing_changes() -> None:
    async with bench() as given:
        assert await given.say("hi") == [("system", "You are a lamp."), ("user", "hi")]
