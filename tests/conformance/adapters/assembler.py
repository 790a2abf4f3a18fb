"""Adapters for ``assembler.jsonl``: registry, presets, assembly, projection, history, store, actual requests."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import attrs
import trio

from tapster.actors.sources import assemble as assemble_with_sources
from tapster.actors.sources import open_sources
from tapster.engine.assembly import (
    AssemblyPreset,
    AssemblyResult,
    Carried,
    PresetStore,
    RenderInput,
    RequestContext,
    SourceDefinition,
    SourceRegistry,
    Strategy,
    StrategyInput,
    StrategyResult,
    actual_assembly_result,
    assemble_request,
    freeze_context,
    insertion_index,
    normalise_preset,
    project_system_snapshots,
    read_store,
    register_host_sources,
    text_of,
    validate_native,
)
from tapster.engine.assembly import history as policy_history
from tapster.engine.assembly.tavern import register_tavern_sources
from tapster.engine.ecma import stringify
from tapster.engine.errors import TapsterError
from tests.conformance.compare import differences
from tests.conformance.registry import adapter, error_value

Json = Any
STEM = "assembler"
FORMAT = {"format": "dsh-tavern-request-assembly", "version": 1, "name": "Test"}


def compare(expected: Json, actual: Json) -> list[str]:
    """Errors agree by type, and by code and status where the line gives them."""
    return differences(_without_checks(expected, actual), _only_expected(expected, actual))


def _error_of(value: Json) -> Json:
    return value.get("error") if isinstance(value, dict) else None


def _without_checks(expected: Json, actual: Json) -> Json:
    if isinstance(expected, list):
        return [_without_checks(item, actual) for item in expected]
    if not isinstance(expected, dict):
        return expected
    if isinstance(_error_of(expected), dict):
        return {"error": {key: value for key, value in expected["error"].items() if key != "check"}}
    return {key: _without_checks(value, actual) for key, value in expected.items()}


def _only_expected(expected: Json, actual: Json) -> Json:
    """Our error details without a code of our own where the contract has none."""
    if isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        return [_only_expected(left, right) for left, right in zip(expected, actual, strict=True)]
    error, found = _error_of(expected), _error_of(actual)
    if isinstance(error, dict) and isinstance(found, dict):
        keys = {"type", "status"} | ({"code"} & set(error))
        return {"error": {key: value for key, value in found.items() if key in keys}}
    if isinstance(expected, dict) and isinstance(actual, dict):
        return {key: _only_expected(expected.get(key), value) for key, value in actual.items()}
    return actual


# Declarative sources and strategies


class Failure(TapsterError):
    """What a declared source raises."""


async def _later(value: Json) -> Json:
    return value


FIELDS = {
    "version": "version",
    "stability": "stability",
    "dependencies": "dependencies",
    "multiple": "multiple",
    "roles": "roles",
    "lifetimes": "lifetimes",
    "depth": "depth",
    "ownsSlots": "owns_slots",
    "generationRequiresPlugin": "generation_requires_plugin",
    "supportsModule": "supports_module",
    "textParserAliasFor": "text_parser_alias_for",
    "contentGuide": "content_guide",
    "positions": "positions",
}

CALLABLES = {
    "resolve": "resolve",
    "parseText": "parse_text",
    "renderText": "render_text",
    "validateResolved": "validate_resolved",
    "moduleAvailable": "module_available",
}


def declared_source(value: Json) -> SourceDefinition:
    fields: dict[str, Json] = {ours: value[theirs] for theirs, ours in FIELDS.items() if theirs in value}

    def resolve(context: Json, rule: Json) -> Json:
        if "fail" in value:
            raise Failure(value["fail"])
        result = value["raw"] if "raw" in value else _output(value)
        return _later(result) if value.get("async") else result

    def parse(context: Json, rule: Json) -> Json:
        if value["parse"] == "echo":
            return {"blocks": [{"type": "text", "id": "text", "text": rule.text}]}
        return {"blocks": value["parse"]["blocks"]}

    if not value.get("omitResolve"):
        fields["resolve"] = resolve
    if "parse" in value:
        fields["parse_text"] = parse
    if "render" in value:
        fields["render_text"] = lambda given: _render(value["render"], given)
    if "validate" in value:
        fields["validate_resolved"] = lambda context: _validate(value["validate"])
    # A field written instead of described is what a plug-in would pass by mistake.
    written = {ours: value[theirs] for theirs, ours in CALLABLES.items() if theirs in value}
    fields |= written
    if "available" in value:
        fields["module_available"] = lambda given: _available(value["available"])
    plugin_id, name = value.get("pluginId", "test.plugin"), value.get("name", value.get("id"))
    return SourceDefinition(id=value.get("id"), plugin_id=plugin_id, name=name, **fields)


def _output(value: Json) -> Json:
    return {"blocks": value.get("blocks", [])} | {key: value[key] for key in ("macros", "diagnostics") if key in value}


def _render(how: str, given: RenderInput) -> Json:
    ways: dict[str, Json] = {
        "upper": given.text.upper(),
        "empty": "",
        "number": 7,
        "brackets": f"[{given.text}]",
    }
    return ways[how]


def _validate(how: str) -> Json:
    if how == "throw":
        raise Failure("lease expired", code="LEASE_EXPIRED")
    return _later(None)


def _available(value: Json) -> Json:
    if value == "promise":
        return _later(True)
    return 1 if value == "number" else value


def declared_strategy(value: Json) -> Strategy:
    def execute(given: StrategyInput) -> Json:
        bad = value.get("bad", "none")
        ids = [str(node["id"]) for node in given.nodes]
        if bad is None or bad == "null":
            return None
        if bad == "foreign":
            return StrategyResult(["no such node"])
        if bad == "swap":
            return StrategyResult([], order=ids[::-1])
        if bad == "promise":
            return _later(StrategyResult([]))
        if bad == "throw":
            raise Failure("strategy exploded")
        wanted = {node["id"] for node in given.nodes if value.get("claim") in ("*", node["module"])}
        claimed = [node_id for node_id in given.remaining_node_ids if node_id in wanted]
        rest = [node_id for node_id in ids if node_id not in claimed]
        orders = {"first": [*claimed, *rest], "last": [*rest, *claimed]}
        return StrategyResult(claimed, order=orders.get(value.get("order")), diagnostics=value.get("diagnostics", ()))

    return Strategy(value["id"], "test.plugin", ("测", "Test"), execute)


def full_preset(value: Json) -> AssemblyPreset:
    return normalise_preset({**FORMAT, **value})


def make_registry(given: Json) -> SourceRegistry:
    registry = SourceRegistry()
    register_host_sources(registry)
    if given.get("tavern"):
        register_tavern_sources(registry)
    for source in given.get("sources", []):
        registry.register(declared_source(source))
    for strategy in given.get("strategies", []):
        registry.strategies.register(declared_strategy(strategy))
    return registry


def assemble(given: Json, carried: Carried | None = None) -> AssemblyResult:
    context = freeze_context(
        full_preset(given["preset"]),
        given.get("native", []),
        assets=given.get("assets"),
        input_ids=given.get("inputIds", ()),
        session_id=given.get("sessionId", ""),
        preview=given.get("preview", False),
    )
    limits = {"max_bytes": given["maxBytes"]} if "maxBytes" in given else {}
    if given.get("async"):
        return trio.run(assemble_async, given, context, carried, limits)
    return assemble_request(make_registry(given), context, carried, **limits)


async def assemble_async(given: Json, context: RequestContext, carried: Carried | None, limits: Json) -> AssemblyResult:
    async with open_sources(registry=make_registry({**given, "sources": []})) as sources:
        # What the block raises leaves it within a group; a refusal is to be seen as the caller of ``assemble`` sees it.
        try:
            for source in given.get("sources", []):
                sources.add(declared_source(source))
            return await assemble_with_sources(sources, context, carried, **limits)
        except TapsterError as error:
            refusal = error
    raise refusal


# Views


def message_view(message: Mapping[str, Json], native_ids: set[str]) -> Json:
    if message["id"] in native_ids:
        return {"native": message["id"]}
    return {"role": message["role"], "text": text_of(message)}


def node_view(node: Json) -> Json:
    value = {key: node[key] for key in ("id", "role", "start", "count")} | {"rule": node["ruleId"]}
    optional = {
        "lock": node["lockReason"],
        "depth": node["depth"],
        "adjustedForTools": node.get("adjustedForTools"),
        "decision": None if node["positionDecision"] in ("source", "runtime") else node["positionDecision"],
        "slot": node["slotId"],
        "place": None if node.get("nativePlacement") == "system" else node.get("nativePlacement"),
        "delivery": node.get("nativeDelivery"),
        "children": [
            {"name": child["name"], "lock": child["lockReason"], "text": child["text"]}
            for child in node["children"]
            if "lockReason" in child
        ]
        or None,
    }
    return value | {key: member for key, member in optional.items() if member is not None}


def result_view(result: AssemblyResult, given: Json) -> Json:
    value = result.to_json()
    native_ids = {message["id"] for message in given.get("native", [])}
    view: dict[str, Json] = {
        "messages": [message_view(message, native_ids) for message in value["messages"]],
        "nodes": [node_view(node) for node in value["nodes"]],
        "diagnostics": value["diagnostics"],
    }
    if "placementControls" in value:
        view["placementControls"] = value["placementControls"]
    layout, want = value["resourceLayout"], given.get("want", [])
    if "extraBytes" in want:
        view["extraBytes"] = value["extraBytes"]
    if "stages" in want:
        view |= {"stages": layout["sortingStages"], "priority": layout["priorityOrder"]}
    if "blocks" in want:
        keys = ("id", "name", "region", "binding", "movable", "overridable", "reason", "nodeIds")
        view["blocks"] = [{key: block[key] for key in keys} for block in layout["blocks"]]
    if "slots" in want:
        view["slots"] = [
            {"target": slot["targetSourceId"]} | {key: slot[key] for key in ("id", "group", "nodeIds", "duplicate")}
            for slot in layout["slots"]
        ]
    if "snapshots" in want:
        view["snapshots"] = snapshot_views(result, native_ids)
    return view


def snapshot_views(result: AssemblyResult, native_ids: set[str]) -> Json:
    return [
        {
            "id": record.id,
            "rule": record.rule_id,
            "text": "\n".join(text_of(message) for message in record.messages),
            "role": record.messages[0]["role"],
            "after": record.after_id if record.after_id is None or record.after_id in native_ids else "<contribution>",
            "nativeAfter": record.native_after_id,
        }
        | ({"hash": "empty"} if record.hash == "empty" else {})
        for record in result.snapshots
    ]


# Areas


def compare_ordered(expected: Json, actual: Json) -> list[str]:
    """As ``compare``; member order counts too, since the revision hashes it."""
    found = compare(expected, actual)
    if not found and "error" not in expected and stringify(expected) != stringify(actual):
        return ["member order differs"]
    return found


@adapter(STEM, "preset.normalize", compare=compare_ordered)
def run_preset(given: Json) -> Json:
    return {"preset": normalise_preset(given["preset"]).to_json()}


@adapter(STEM, "native.validate", compare=compare)
def run_native(given: Json) -> Json:
    validate_native(full_preset(given["preset"]))
    return {"ok": True}


@adapter(STEM, "registry.register", compare=compare)
def run_registry(given: Json) -> Json:
    registry = SourceRegistry()
    for source in given["sources"]:
        registry.register(declared_source(source))
    return {"descriptors": registry.descriptors(given.get("sessionId", ""))}


@adapter(STEM, "assemble", compare=compare)
def run_assemble(given: Json) -> Json:
    return result_view(assemble(given), given)


@adapter(STEM, "assemble.sequence", compare=compare)
def run_sequence(given: Json) -> Json:
    carried = Carried()
    steps = []
    for step in given["steps"]:
        merged = {**{key: value for key, value in given.items() if key != "steps"}, **step}
        result = assemble(merged, carried)
        carried = Carried(result.snapshots, result.marks())
        native_ids = {message["id"] for message in merged.get("native", [])}
        steps.append(
            {
                "messages": result_view(result, merged)["messages"],
                "snapshots": snapshot_views(result, native_ids),
                "diagnostics": list(result.diagnostics),
            }
        )
    return {"steps": steps}


@adapter(STEM, "insertion_index", compare=compare)
def run_insertion(given: Json) -> Json:
    return {"index": insertion_index(given["messages"], given["depth"])}


@adapter(STEM, "projection", compare=compare)
def run_projection(given: Json) -> Json:
    logical = assemble({key: value for key, value in given.items() if key != "maxBytes"})
    limits = {"max_bytes": given["maxBytes"]} if "maxBytes" in given else {}
    native = given.get("native", [])
    projection = project_system_snapshots(
        logical,
        native,
        system_prompt_update=given.get("systemPromptUpdate"),
        preview=given.get("preview", False),
        **limits,
    )
    native_ids = {message["id"] for message in native}
    return {
        "messages": [message_view(message, native_ids) for message in projection.messages],
        "capability": projection.capability,
        "projections": [
            {
                "index": system.index,
                "inputs": len(system.input_ids),
                "contributors": len(system.contributor_ids),
                "replacedNativeIds": list(system.replaced_native_ids),
            }
            for system in projection.systems
        ],
        "nodes": [{"id": node.id, "start": node.start, "count": node.count} for node in projection.nodes],
        "diagnostics": list(projection.diagnostics),
    }


@adapter(STEM, "actual_result", compare=compare)
def run_actual(given: Json) -> Json:
    value = actual_assembly_result(given["record"]).to_json()
    keys = ("id", "module", "name", "text", "historyFiltered")
    return {
        "actual": value["actual"],
        "messages": [message["id"] for message in value["messages"]],
        "nodes": [{key: node[key] for key in keys if key in node} for node in value["nodes"]],
        "diagnostics": value["diagnostics"],
    }


@adapter(STEM, "history.normalize", compare=compare)
def run_policy(given: Json) -> Json:
    policy = policy_history.normalise_policy(given["policy"]) if "policy" in given else policy_history.DEFAULT_POLICY
    return {"policy": policy.to_json()}


@adapter(STEM, "history.fragments", compare=compare)
def run_fragments(given: Json) -> Json:
    rule = given["rule"]
    found = policy_history.find_fragments(
        given["text"],
        policy_history.FragmentRule(
            rule["id"], rule["sourceKind"], rule["start"], rule["end"], rule["mode"], rule["enabled"]
        ),
    )
    value: dict[str, Json] = {
        "ranges": [{"start": item.start, "end": item.end, "ruleId": item.rule_id} for item in found.ranges]
    }
    return value if found.warning is None else {**value, "warning": found.warning}


@adapter(STEM, "history.filter", compare=compare)
def run_filter(given: Json) -> Json:
    safety = given.get("reasoningSafety") or {}
    filtered = policy_history.filter_history(
        given["messages"],
        given["events"],
        policy_history.normalise_policy(given["policy"]) if "policy" in given else policy_history.DEFAULT_POLICY,
        current_step_seq=given.get("currentStepSeq"),
        reasoning=policy_history.ReasoningSafety(
            safety.get("canOmit", False), safety.get("contract"), bool(safety.get("toolsPresent"))
        ),
        retain_current_system=given.get("retainCurrentSystem", False),
    )
    return {
        "messages": list(filtered.messages),
        "decisions": [
            {"id": decision.message_id, "seq": decision.seq, "action": decision.action}
            | {"reasons": list(decision.reasons)}
            | ({"blocks": [block_view(block) for block in decision.blocks]} if decision.blocks else {})
            for decision in filtered.decisions
        ],
        "warnings": [warning.to_json() for warning in filtered.warnings],
        "applied": filtered.audit["applied"],
        "canOmitReasoning": filtered.can_omit_reasoning,
    }


def block_view(block: Json) -> Json:
    return {key: value for key, value in block.items() if key not in ("beforeHash", "afterHash")}


@adapter(STEM, "history.standard", compare=compare)
def run_standard(given: Json) -> Json:
    plan = policy_history.plan_standard(
        given["events"],
        given.get("nodes"),
        given["messages"],
        policy_history.normalise_policy(given["policy"]) if "policy" in given else policy_history.DEFAULT_POLICY,
        pending=given.get("pendingMessages", ()),
        cutoff_seq=given.get("cutoffSeq"),
        revision=given.get("revision", 0),
    )
    return {
        "messages": [message["id"] for message in plan.messages],
        "operations": [
            {
                "action": operation.action,
                "targetSeq": operation.target_seq,
                "originalSeq": operation.original_seq,
                "messageId": operation.message["id"],
            }
            for operation in plan.operations
        ],
        "rows": [{"id": row.message_id, "action": row.action, "reasons": list(row.reasons)} for row in plan.rows],
        "warnings": [warning.to_json() for warning in plan.warnings],
        "reconcileSystem": plan.reconcile_system,
        "cutoffSeq": plan.cutoff_seq,
    }


@attrs.define
class StoreRun:
    """One store and the catalogue registered last."""

    store: PresetStore
    withdraw: Json = None

    def run(self, op: Json) -> Json:
        try:
            answer = getattr(self, f"op_{op['op']}")(op)
        except TapsterError as error:
            return error_value(error)
        return answer

    def op_list(self, op: Json) -> Json:
        return [preset_view(listed.to_json()) for listed in self.store.catalogue()]

    def op_get(self, op: Json) -> Json:
        return preset_view(self.store.get(op["id"]).to_json())

    def op_save(self, op: Json) -> Json:
        saved = self.store.save({**FORMAT, **op["preset"]}, op.get("id"))
        return {"saved": saved.id if "id" in op else "<uuid>"}

    def op_remove(self, op: Json) -> Json:
        self.store.remove(op["id"])
        return {"ok": True}

    def op_register(self, op: Json) -> Json:
        presets = [{**FORMAT, **preset} for preset in op["presets"]]
        self.withdraw = self.store.register_presets(op["pluginId"], presets)
        return {"ok": True}

    def op_unregister(self, op: Json) -> Json:
        self.withdraw()
        return {"ok": True}

    def op_apply(self, op: Json) -> Json:
        return selection_view(self.store.apply(op["session"], op["id"]))

    def op_applySnapshot(self, op: Json) -> Json:  # noqa: N802 - named as the vectors name it
        preset = op["preset"]
        return selection_view(
            self.store.apply_snapshot(op["session"], None if preset is None else {**FORMAT, **preset})
        )

    def op_selection(self, op: Json) -> Json:
        applied = self.store.selection(op["session"])
        is_default = applied is not None and not self.store.has_selection(op["session"])
        view = selection_view(applied)
        return {**view, "builtin": True} if is_default else view

    def op_hasSelection(self, op: Json) -> Json:  # noqa: N802
        return self.store.has_selection(op["session"])

    def op_copySelection(self, op: Json) -> Json:  # noqa: N802
        self.store.copy_selection(op["from"], op["to"])
        return list(self.store.document.selections)

    def op_keys(self, op: Json) -> Json:
        document = self.store.document
        return {"presets": list(document.presets), "selections": list(document.selections)}

    def op_mode(self, op: Json) -> Json:
        self.store.mode = op["mode"]
        return {"mode": op["mode"]}

    def op_reopen(self, op: Json) -> Json:
        stored = json.loads(stringify(self.store.document.to_json()))
        self.store.document = read_store(stored)
        return {"ok": True}

    def op_migrate(self, op: Json) -> Json:
        return {"changed": self.store.migrate_legacy(read_store(op["file"]))}


def preset_view(value: Json) -> Json:
    return {key: value[key] for key in ("id", "name", "builtin", "pluginId") if key in value}


def selection_view(preset: AssemblyPreset | None) -> Json:
    return None if preset is None else {"id": preset.id, "name": preset.name}


@adapter(STEM, "store", compare=compare)
def run_store(given: Json) -> Json:
    ids = numbered()
    store = PresetStore(
        new_id=lambda: next(ids),
        document=read_store(given.get("file")),
        unified=given.get("unified", False),
        mode=given.get("mode"),
    )
    run = StoreRun(store)
    return {"results": [run.run(op) for op in given["ops"]]}


def numbered() -> Iterator[str]:
    number = 0
    while True:
        number += 1
        yield f"00000000-0000-4000-8000-{number:012d}"
