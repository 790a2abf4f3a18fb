"""Presets, registry, context, snapshots and layouts of the assembler."""

from typing import Any

import pytest

from tapster.engine import limits
from tapster.engine.assembly import (
    AssemblyRefused,
    Carried,
    InvalidAssembly,
    RenderInput,
    SourceDefinition,
    SourceRegistry,
    Strategy,
    StrategyInput,
    StrategyRegistry,
    StrategyResult,
    accept_output,
    assemble_request,
    freeze_context,
    host_sources,
    move_rule,
    normalise_preset,
    plan_request,
    read_snapshot,
    register_host_sources,
    removed_contexts,
)
from tapster.engine.assembly.ids import content_hash, message_id
from tests.support.assembly import HEAD, Case, message, plain_source, reference, text

Json = Any


def preset(*rules: Json, **more: Json) -> dict[str, Json]:
    return {**HEAD, **more, "rules": list(rules)}


def rule(kind: str, **more: Json) -> dict[str, Json]:
    return {"id": kind, "kind": kind, **more}


NOTES = preset(
    {"id": "history", "kind": "history"}, {"id": "notes", "kind": "example.notes", "role": "user", "depth": 0}
)
NOTES["name"] = "Notes"


def test_the_documented_revision_and_ids_come_out() -> None:
    assert normalise_preset(NOTES).revision == "163fdad2d4fb021f0ae556c93a13442a232565ec49881479fa614a95a740220a"
    content = content_hash("Lanterns are out.", "user")
    assert content == "7834fc877280eeaf1ca4bbbc9ee58a2ef4f6abbbcf984b8b13af2fe8d8eeb5d6"
    assert message_id("notes:n1", content) == "fa720fd8-ece0-573a-a2c4-ed9ccb685862"


@pytest.mark.parametrize(
    "bad",
    [
        "text", None, [], {}, {"id": 1, "role": "user"}, {"id": "u1"}, {"id": "u1", "role": ["user"], "content": []},
        {"id": "u1", "role": "user", "content": [{"type": "text"}]},
        {"id": "u1", "role": "user", "content": [{"type": "text", "text": 5}]},
    ],
)  # fmt: skip
def test_host_messages_that_are_none_are_refused_before_any_source_sees_them(bad: Json) -> None:
    with pytest.raises(InvalidAssembly) as caught:
        freeze_context(normalise_preset(NOTES), [message("a", "user"), bad])
    assert (caught.value.code, caught.value.details) == ("NATIVE_MESSAGE_INVALID", {"index": 1})


def test_moving_a_rule_takes_the_targets_place() -> None:
    rules = normalise_preset(preset(rule("a"), rule("b"), rule("c"))).rules
    assert [each.id for each in move_rule(rules, "a", "c")] == ["b", "c", "a"]
    assert [each.id for each in move_rule(rules, "c", "a")] == ["c", "a", "b"]
    assert move_rule(rules, "a", "nobody") == rules


def test_a_disposer_removes_only_its_own_registration() -> None:
    registry = SourceRegistry()
    first = registry.register(plain_source("s", []))
    first()
    registry.register(plain_source("s", []))
    first()
    assert [each["id"] for each in registry.descriptors()] == ["s"]
    assert registry.generation == 3


def test_nothing_of_a_context_can_be_changed() -> None:
    native = [message("u1", "user", "one")]
    assets: Json = {"deep": [{"x": 1}], "context": {"kept": "a", "dropped": 1}}
    context = freeze_context(normalise_preset(NOTES), native, assets=assets, turn=3, preview=True)
    native[0]["content"][0]["text"] = "changed"
    assert context.native_messages[0]["content"][0]["text"] == "one"
    assert context.assets["context"] == {"kept": "a"}
    assert context.turn is None
    frozen: Json = context
    with pytest.raises(TypeError):
        frozen.assets["deep"].append(1)
    with pytest.raises(TypeError):
        frozen.assets["deep"][0].update(x=2)
    with pytest.raises(TypeError):
        frozen.assets["more"] = 1
    with pytest.raises(TypeError):
        frozen.native_messages[0].pop("id")


def test_a_request_keeps_the_sources_it_started_with() -> None:
    registry = SourceRegistry()
    dispose = registry.register(plain_source("s", [text("a", "A")]))
    plan = plan_request(registry, freeze_context(normalise_preset(preset(rule("s"))), []))
    dispose()
    assert [job.source_id for job in plan.jobs] == ["s"]
    assert accept_output(plan.jobs[0], {"blocks": []}).blocks == ()


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (lambda: {"blocks": [{"type": "text", "id": "a", "text": object()}]}, "SOURCE_BLOCKS_INVALID"),
        (lambda: {"blocks": [text("a", "x" * limits.SOURCE_OUTPUT_BYTES)]}, "SOURCE_OUTPUT_TOO_LARGE"),
        (lambda: {"blocks": [text(str(n), "") for n in range(limits.SOURCE_BLOCKS + 1)]}, "SOURCE_BLOCKS_INVALID"),
        (lambda: "blocks", "SOURCE_BLOCKS_INVALID"),
    ],
)
def test_unusable_outputs_are_refused(raw: Json, code: str) -> None:
    registry = SourceRegistry()
    registry.register(plain_source("s", []))
    plan = plan_request(registry, freeze_context(normalise_preset(preset(rule("s"))), []))
    with pytest.raises(InvalidAssembly) as raised:
        accept_output(plan.jobs[0], raw())
    assert raised.value.code == code


def test_a_long_chain_of_references_is_refused_and_not_followed() -> None:
    count = limits.REFERENCE_CHAIN + 2
    blocks = [reference(f"r{n}", "s", blockIds=[f"r{n + 1}"], referenceOnly=n > 0) for n in range(count)]
    case = Case(preset(rule("s"), placement="st"), ({"source_id": "s", "blocks": blocks},), (), ())
    with pytest.raises(InvalidAssembly) as raised:
        case.assemble()
    assert raised.value.code == "BLOCK_REFERENCE_DEPTH"


def test_spans_name_the_block_behind_each_character() -> None:
    lib = {"source_id": "lib", "blocks": [text("x", "hé😀")], "macros": {"greet": "x"}}
    host = {"source_id": "host", "blocks": [text("t", "Say {{greet}}!")], "dependencies": ["lib"]}
    case = Case(preset(rule("host"), placement="st"), (lib, host), (), ())
    [node] = case.assemble().nodes
    assert node.text == "Say hé😀!"
    assert [(span.start, span.end, span.key, span.via) for span in node.spans] == [
        (0, 4, "host:t", "text"),
        (4, 8, "reference-lib:x", "macro:greet"),
        (8, 9, "host:t", "text"),
    ]


def test_a_renderer_sees_one_variable_map_in_emission_order() -> None:
    seen: list[int] = []

    def render(given: RenderInput) -> str:
        count = given.variables.get("count", 0) + 1
        given.variables["count"] = count
        seen.append(count)
        given.diagnostics.append({"code": "SEEN", "owner": given.identity})
        return f"{given.text}{count}"

    source = SourceDefinition(
        id="s",
        plugin_id="p",
        name="s",
        resolve=lambda context, rule: {"blocks": [text("a", "A"), text("b", "B")]},
        render_text=render,
    )
    registry = SourceRegistry()
    registry.register(source)
    result = assemble_request(registry, freeze_context(normalise_preset(preset(rule("s"))), []))
    assert [node.text for node in result.nodes] == ["A1", "B2"]
    assert [node.spans[0].via for node in result.nodes] == ["render", "render"]
    assert [record["owner"] for record in result.diagnostics if record["code"] == "SEEN"] == ["s:a", "s:b"]


def test_a_snapshot_that_lost_its_place_is_reported_every_time_and_comes_back_when_it_changes() -> None:
    rules = preset(rule("history"), rule("memo", lifetime="snapshot"))

    def step(native: list[Json], content: str, carried: Carried) -> Json:
        source = {"source_id": "memo", "blocks": [text("m", content)]}
        return Case(rules, (source,), tuple(native), ()).assemble(carried)

    first = step([message("u1", "user")], "inn", Carried())
    stored = Carried(tuple(read_snapshot(record.to_json()) for record in first.snapshots))
    lost = step([message("u9", "user")], "inn", stored)
    assert [record["code"] for record in lost.diagnostics] == ["SNAPSHOT_ANCHOR_NO_LONGER_ACTIVE"]
    assert [each["id"] for each in lost.messages] == ["u9"]
    changed = step([message("u9", "user")], "dock", Carried(lost.snapshots))
    assert changed.messages[-1]["content"][0]["text"] == "dock"
    assert len({each["id"] for each in changed.messages}) == len(changed.messages)


def test_a_snapshot_between_history_messages_splits_the_node_and_covers_all() -> None:
    rules = preset(rule("history"), rule("memo", lifetime="snapshot"))
    source = {"source_id": "memo", "blocks": [text("m", "inn")]}
    first = Case(rules, (source,), (message("u1", "user"),), ()).assemble()
    longer = (message("u1", "user"), message("a1", "assistant"))
    second = Case(rules, (source,), longer, ()).assemble(Carried(first.snapshots))
    assert [(node.start, node.count) for node in second.nodes] == [(0, 1), (1, 1), (2, 1)]
    assert second.nodes[1].id.startswith("memo:m:retained:")


def layout(**more: Json) -> dict[str, Json]:
    head = {"version": 1, "source": "preset-slots", "identity": "preserve", "fallback": "source-order", "overrides": []}
    return {**head, **more}


def abc(**more: Json) -> Case:
    sources = tuple({"source_id": name, "blocks": [text(name, name.upper())]} for name in "abc")
    return Case(preset(rule("a"), rule("b"), rule("c"), layout=layout(**more)), sources, (), ())


def texts(case: Case) -> list[str]:
    return [each["content"][0]["text"] for each in case.assemble().messages]


def test_an_anchored_setting_follows_the_setting_it_is_anchored_to() -> None:
    beside = {"sourceId": "a", "positionId": "content", "side": "after"}
    settings = [
        {"sourceId": "b", "positionId": "content", "enabled": True, "placement": "list", "anchor": beside},
        {"sourceId": "a", "positionId": "content", "enabled": True, "placement": "list", "anchor": "end"},
    ]
    assert texts(abc(positions=settings)) == ["C", "A", "B"]


def test_a_fixed_block_is_not_moved() -> None:
    case = abc()
    result = case.assemble()
    target, anchor = result.layout.blocks[2].id, result.layout.blocks[0].id
    override = {"target": target, "anchor": anchor, "side": "before", "detach": False}
    assert texts(abc(overrides=[override])) == ["C", "A", "B"]
    deep = abc()
    rules = [rule("a"), rule("b"), rule("c", depth=0)]
    deep = Case({**deep.preset, "rules": rules}, deep.sources, (), ())
    fixed = next(block.id for block in deep.assemble().layout.blocks if block.first.name == "c")
    moved = layout(overrides=[{**override, "target": fixed}])
    with pytest.raises(AssemblyRefused) as raised:
        Case({**deep.preset, "layout": moved}, deep.sources, (), ()).assemble()
    assert raised.value.code == "ASSEMBLY_LAYOUT_UNSUPPORTED"


def test_a_strategy_that_claims_a_deep_node_decides_its_place() -> None:
    def execute(given: StrategyInput) -> StrategyResult:
        notes = [str(node["id"]) for node in given.nodes if node["module"] == "a"]
        rest = [str(node["id"]) for node in given.nodes if node["module"] != "a"]
        return StrategyResult(notes, order=[*notes, *rest])

    case = abc(priority=["x.first", "preset", "resource", "default"])
    registry = case.registry()
    registry.strategies.register(Strategy("x.first", "test.plugin", ("测", "First"), execute))
    rules = [rule("b"), rule("a", depth=0), rule("c")]
    context = freeze_context(normalise_preset({**case.preset, "rules": rules}), [])
    result = assemble_request(registry, context)
    assert [node.module for node in result.nodes] == ["a", "b", "c"]
    assert result.nodes[0].depth is None


def test_strategies_are_registered_once_and_withdrawn_alone() -> None:
    registry = StrategyRegistry()
    strategy = Strategy("x.one", "p", ("一", "One"), lambda given: StrategyResult([]))
    dispose = registry.register(strategy)
    with pytest.raises(InvalidAssembly):
        registry.register(strategy)
    with pytest.raises(InvalidAssembly):
        registry.register(Strategy("user", "p", ("用户", "User"), lambda given: StrategyResult([])))
    dispose()
    dispose()
    assert [each["id"] for each in registry.descriptors()] == ["preset", "resource", "default"]


def test_context_switches_name_the_sections_they_take_out() -> None:
    off = preset({"id": "approval", "kind": "dsh.approval-policy", "enabled": False})
    assert removed_contexts(normalise_preset(off)) == {"approval:policy"}


def test_host_sources_come_and_go_together() -> None:
    registry = SourceRegistry()
    dispose = register_host_sources(registry)
    assert [each["id"] for each in registry.descriptors()] == [source.id for source in host_sources()]
    dispose()
    assert registry.descriptors() == []
