"""Strategies in the running product: native and core requests, previews, refusals, forks, evidence."""

from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from tapster.actors.providers.scripted import fails
from tapster.actors.sources import FakeSource, Output, Source
from tapster.actors.tapster import AgentRunning
from tapster.engine.assembly import RequestContext, Rule, text_of
from tapster.engine.errors import TapsterError
from tests.actors.test_examples import example
from tests.support.strategies import INPUT, RULES, Stage, open_stage, shown

Json = Any
CHARACTER = {"id": "character", "kind": "character"}
LORE = {"id": "worldbook", "kind": "worldbook"}


@attrs.define(eq=False)
class Memo(Source):
    """A text that tests change."""

    text: str = "inn"
    id = "memo"
    plugin_id = "test.plugin"
    name = "Memo"

    async def resolve(self, context: RequestContext, rule: Rule) -> Output:
        return {"blocks": [{"type": "text", "id": "m", "text": self.text}]}


@attrs.define(eq=False)
class Gated(Source):
    """A source that answers once it is let."""

    asked: trio.Event = attrs.field(factory=trio.Event)
    opened: trio.Event = attrs.field(factory=trio.Event)
    id = "gated"
    plugin_id = "test.plugin"
    name = "Gated"

    async def resolve(self, context: RequestContext, rule: Rule) -> Output:
        self.asked.set()
        await self.opened.wait()
        return {"blocks": [{"type": "text", "id": "g", "text": "soon"}]}


def texts(request: list[tuple[str, str]]) -> str:
    return "\n".join(text for _, text in request)


async def newest_record(stage: Stage, session_id: str = "s") -> Json:
    await stage.tapster.outbox.settled(stage.key(session_id))
    return (await stage.tapster.store.traces(stage.key(session_id)))[-1]


async def test_without_a_strategy_the_profile_is_sent(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        await stage.begin()
        request = await stage.say("a bell")
        assert "You are Mira." in request[0][1]
        with pytest.raises(TapsterError, match="no strategy"):
            await stage.tapster.preview_request("s")
        assert "strategy" not in await newest_record(stage)


async def test_native_sections_take_the_profiles_place_with_their_provenance(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        await stage.begin()
        await stage.use("native", CHARACTER, LORE, *RULES, INPUT)
        request = await stage.say("I hear a bell")
        assert [role for role, _ in request] == ["system", "user"]
        system = request[0][1]
        assert "Mira keeps the lamp.\n\nA bell lies under the reef." in system
        assert "You are Mira." not in system
        assert "Roleplay mode" in system
        record = await newest_record(stage)
        assert record["status"] == "request-observed"
        assert record["delivery"]["assemblyVerified"] is True
        assert record["strategy"]["backend"] == "native"
        named = {part["sources"][0]["field"]: part for part in record["sections"] if part["sources"]}
        card = named["description"]["sources"][0]
        assert (card["kind"], card["relationship"]) == ("character", "input")
        assert card["resourceRevision"]
        entry = named["content"]["sources"][0]
        assert (entry["kind"], entry["entryId"]) == ("worldbook", "0")
        header = next(event for event in stage.agent().log.events if event.type == "request/header")
        assert header.data["header"]["config"]["temperature"] == 0.5


async def test_native_users_are_delivered_once_by_the_host(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage, stage.tapster.sources.registered(Memo()):
        await stage.begin()
        early = {"id": "early", "kind": "memo", "role": "user", "delivery": "pre-step"}
        await stage.use("native", *RULES, early, INPUT)
        assert (await stage.say("hi"))[-2:] == [("user", "inn"), ("user", "hi")]
        durable = [text_of(message) for message in stage.agent().derive_messages()]
        assert durable.count("inn") == 1


@pytest.mark.parametrize("backend", ["native", "core"])
async def test_a_preview_is_the_assembly_of_the_same_input(tmp_path: Path, backend: str) -> None:
    async with open_stage(tmp_path) as stage:
        await stage.begin()
        dice = {"id": "dice", "kind": "tavern.text", "inputMode": "text", "text": "{{roll 1d100}} {{random::a,b,c}}"}
        late = {"id": "late", "kind": "custom", "role": "user", "text": "The tide turns."}
        await stage.use(backend, CHARACTER, LORE, {**dice, "role": "system"}, *RULES, INPUT, late)
        await stage.say("first, a bell")
        before = stage.agent().seq
        preview = await stage.tapster.preview_request("s", "the ferry, a bell")
        assert stage.agent().seq == before
        assert await stage.say("the ferry, a bell") == shown(preview.messages)
        following = await stage.tapster.preview_request("s", "the ferry, a bell")
        assert following.draws == preview.draws > 0


async def test_core_replaces_the_request_and_the_record_points_to_the_evidence(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage, stage.tapster.sources.registered(Memo()):
        await stage.begin()
        await stage.use("core", CHARACTER, *RULES, INPUT, {"id": "memo", "kind": "memo", "role": "user", "depth": 1})
        request = await stage.say("hi")
        assert request[-2:] == [("user", "inn"), ("user", "hi")]
        assert "Mira keeps the lamp." in request[0][1]
        assert "inn" not in [text_of(message) for message in stage.agent().derive_messages()]
        [evidence] = [event for event in stage.agent().log.events if event.type == "request/assembly"]
        assert shown(evidence.data["messages"]) == request
        record = await newest_record(stage)
        assert record["requestAssemblyRef"]["seq"] == evidence.seq
        assert record["strategy"]["backend"] == "core"


async def test_a_retry_sends_the_same_request_again(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        await stage.begin()
        dice = {"id": "dice", "kind": "tavern.text", "inputMode": "text", "text": "{{roll 1d1000}}", "role": "system"}
        await stage.use("core", dice, LORE, *RULES, INPUT)
        stage.provider.add(fails("SERVER", status=500))
        await stage.say("a bell")
        first, second = stage.provider.requests
        assert shown(first.messages) == shown(second.messages)
        assert "A bell lies under the reef." in texts(shown(second.messages))


async def test_snapshots_outlive_a_restart(tmp_path: Path) -> None:
    rules = [*RULES, INPUT, {"id": "memo", "kind": "memo", "lifetime": "snapshot", "role": "system"}]
    memo = Memo()
    async with open_stage(tmp_path) as stage, stage.tapster.sources.registered(memo):
        await stage.begin()
        await stage.use("core", *rules)
        first = await stage.say("hi")
        assert first[-1][1].endswith("inn")
    async with open_stage(tmp_path) as stage, stage.tapster.sources.registered(memo):
        assert (await stage.say("on"))[: len(first)] == first
        memo.text = "dock"
        assert (await stage.say("and"))[-1][1].endswith("inn\n\ndock")


@pytest.mark.parametrize("backend", ["native", "core"])
async def test_a_failing_source_sends_nothing_and_leaves_nothing(tmp_path: Path, backend: str) -> None:
    async with open_stage(tmp_path) as stage, stage.tapster.sources.registered(FakeSource("broken", fail_at=0)):
        await stage.begin()
        before = await stage.tapster.library.activation.state(stage.key("s"), 1_000)
        await stage.use(backend, {"id": "broken", "kind": "broken"}, LORE, *RULES, INPUT)
        assert await stage.say("a bell") == []
        assert stage.ending()["error"]["code"] == "SOURCE_FAILED"
        assert not [event for event in stage.agent().log.events if event.type == "request/assembly"]
        assert await stage.tapster.library.activation.state(stage.key("s"), 1_000) == before
        with pytest.raises(TapsterError) as refused:
            await stage.tapster.preview_request("s", "a bell")
        assert refused.value.code == "SOURCE_FAILED"
        await stage.use(backend, LORE, *RULES, INPUT)
        assert "A bell lies under the reef." in texts(await stage.say("again, a bell"))


GATED = {"id": "gated", "kind": "gated", "role": "system"}


async def test_a_source_that_goes_refuses_and_a_plain_disposer_lets_finish(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        await stage.begin()
        await stage.use("native", GATED, *RULES, INPUT)
        sent: list[list[tuple[str, str]]] = []

        async def say() -> None:
            sent.append(await stage.say("hi"))

        async with trio.open_nursery() as nursery:
            gated = Gated()
            async with stage.tapster.sources.registered(gated):
                nursery.start_soon(say)
                await gated.asked.wait()
        assert sent == [[]]
        assert stage.ending()["error"]["code"] == "SOURCE_GONE"
        async with trio.open_nursery() as nursery:
            gated = Gated()
            dispose = stage.tapster.sources.add(gated)
            nursery.start_soon(say)
            await gated.asked.wait()
            dispose()
            gated.opened.set()
        assert sent[1][0][1].startswith("soon")


async def test_a_strategy_that_changes_under_a_request_freezes_it_again(tmp_path: Path) -> None:
    gated = Gated()
    async with open_stage(tmp_path) as stage, stage.tapster.sources.registered(gated):
        await stage.begin()
        await stage.use("native", GATED, *RULES, INPUT)
        sent: list[list[tuple[str, str]]] = []

        async def say() -> None:
            sent.append(await stage.say("hi"))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(say)
            await gated.asked.wait()
            with pytest.raises(AgentRunning):
                await stage.tapster.apply_strategy("s", None)
            await stage.use("native", CHARACTER, *RULES, INPUT)
            gated.opened.set()
        assert "soon" not in texts(sent[0])
        assert "Mira keeps the lamp." in texts(sent[0])


async def test_forks_and_delegates_inherit_and_previews_of_sleepers_wake_nobody(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        await stage.begin()
        await stage.use("native", CHARACTER, *RULES, INPUT)
        await stage.say("hi")
        await stage.tapster.host.fork("s", "child")
        await stage.tapster.host.delegate("s", "helper")
        parent = stage.tapster.strategies.selection(stage.key("s"))
        assert parent is not None
        for session_id in ("child", "helper"):
            assert stage.tapster.strategies.selection(stage.key(session_id)) == parent
        await stage.tapster.strategies.apply(stage.key("s"), None)
        assert "Mira keeps the lamp." in texts(await stage.say("on", "child"))
        await (await stage.tapster.host.open("child")).close()
        asleep = await stage.tapster.preview_request("child", "and?")
        assert stage.tapster.host.agent("child") is None
        assert shown(asleep.messages)[-1] == ("user", "and?")
        assert "NATIVE_SYSTEM_PREVIEW_UNAVAILABLE" in [each["code"] for each in asleep.result.diagnostics]


async def test_a_policy_hides_used_contributions_and_brings_them_back(tmp_path: Path) -> None:
    policy = {
        "version": 1,
        "enabled": True,
        "sources": [{"kind": "dsh-prompt-assembler", "include": False}],
        "contentTypes": {"text": True, "image": True, "reasoning": False},
        "fragments": [],
    }
    late = {"id": "late", "kind": "memo", "role": "user", "delivery": "pre-step"}
    async with open_stage(tmp_path) as stage, stage.tapster.sources.registered(Memo()):
        await stage.begin()
        await stage.use("native", *RULES, INPUT, late, historyPolicy=policy)
        await stage.say("one")
        assert [text for _, text in await stage.say("two")].count("inn") == 1
    async with open_stage(tmp_path) as stage, stage.tapster.sources.registered(Memo()):
        assert [text for _, text in await stage.say("three")].count("inn") == 1
        stored = stage.tapster.strategies.policy(stage.key("s"))
        off = {**policy, "enabled": False}
        await stage.tapster.strategies.save_policy(stage.key("s"), off, stored.revision, "standard")
        assert [text for _, text in await stage.say("four")].count("inn") == 4


async def test_the_example_memory_works_in_process(tmp_path: Path) -> None:
    memory = example("memory", "tapster_memory")
    facts = memory.FactFile(tmp_path / "facts.jsonl")
    facts.remember(memory.Fact("The lanterns are out.", ("lantern",)))
    async with open_stage(tmp_path / "data") as stage, stage.tapster.sources.registered(memory.MemoryFacts(facts)):
        await stage.begin()
        await stage.use("native", {"id": "memory", "kind": "example.memory", "role": "system"}, *RULES, INPUT)
        assert "The lanterns are out." in texts(await stage.say("Is the lantern lit?"))
        record = await newest_record(stage)
        sources = [source for part in record["sections"] for source in part["sources"]]
        assert [(source["kind"], source["field"]) for source in sources] == [("example.memory", "fact")]
