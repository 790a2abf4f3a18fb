"""Variables and stored templates as sources of a request; edits of variables by hand."""

from collections.abc import Callable, Sequence
from typing import Any

import attrs
import pytest

from tapster.engine import mvu
from tapster.engine.assembly import (
    SourceRegistry,
    assemble_request,
    freeze_context,
    normalise_preset,
    register_host_sources,
)
from tapster.engine.assembly.context import RequestContext
from tapster.engine.assembly.tavern import register_tavern_sources, templates_source, variables_source
from tapster.engine.assembly.tavern.memory import MVU_SOURCE, TEMPLATE_SOURCE, PreviewStateUnavailable, UsageCancelled
from tapster.engine.mvu.shelf import DEFAULT_INSTRUCTIONS
from tapster.engine.text.templates import Decision, StoredTemplate, parse_stored_template

STATE = mvu.VariableResource("mvu:instance-1", mvu.open_history({"stat_data": {"hp": 3}}), mode="native")
TEMPLATE = parse_stored_template(
    {"id": "prompt-template:a", "name": "A", "content": "<%- 1 %>", "enabled": True, "sessionIds": ["*"]}
)


@attrs.define(eq=False)
class Variables:
    resources: list[tuple[mvu.VariableResource, mvu.Decision | None]]
    asked: int = 0
    change_at: int = 0

    def bound(self, session_id: str) -> Sequence[tuple[mvu.VariableResource, mvu.Decision | None]]:
        self.asked += 1
        if self.asked == self.change_at:
            self.resources = [(attrs.evolve(STATE, config_revision=2), None)]
        return self.resources


@attrs.define(eq=False)
class Templates:
    templates: list[tuple[StoredTemplate, Decision | None]]

    def bound(self, session_id: str) -> Sequence[tuple[StoredTemplate, Decision | None]]:
        return self.templates

    def render(self, context: RequestContext, template: StoredTemplate) -> tuple[str, list[dict[str, Any]]]:
        return f"rendered {template.name}", [{"code": "FACT"}]


def run(kind: str, access: Any, **more: Any) -> Any:
    registry = SourceRegistry()
    register_host_sources(registry)
    register_tavern_sources(registry)
    registry.register(variables_source(access) if kind == MVU_SOURCE else templates_source(access))
    role = "system" if kind == MVU_SOURCE else "preserve"
    rules = [{"id": "m", "kind": kind, "role": role, "lifetime": "request"}]
    preset = normalise_preset(
        {"format": "dsh-tavern-request-assembly", "version": 1, "name": "T", "placement": "st", "rules": rules}
    )
    available = {each["id"]: each["moduleAvailable"] for each in registry.descriptors("s")}[kind]
    result = assemble_request(registry, freeze_context(preset, [], **{"session_id": "s", **more}))
    nodes = [(node.text, node.role) for node in result.nodes if node.rule_id == "m"]
    return nodes, list(result.diagnostics), available


def test_variables_go_in_as_compact_json_with_instructions() -> None:
    nodes, diagnostics, available = run(MVU_SOURCE, Variables([(STATE, None)]))
    assert nodes == [(f'{{"hp":3}}\n{DEFAULT_INSTRUCTIONS.strip()}', "system")]
    (fact,) = [each for each in diagnostics if each["code"] == "MVU_RESOURCE_VERSION"]
    assert (fact["resourceId"], fact["revision"], fact["strategyRevision"]) == ("mvu:instance-1", 1, 1)
    assert available


def test_managed_variables_need_an_approval() -> None:
    managed = attrs.evolve(STATE, mode="managed")
    assert run(MVU_SOURCE, Variables([(managed, None)]))[::2] == ([], False)
    assert run(MVU_SOURCE, Variables([(managed, mvu.Decision(True, 1))]))[2]
    assert not run(MVU_SOURCE, Variables([(managed, mvu.Decision(True, 9))]))[2]


def test_a_preview_makes_no_state_and_a_change_cancels_the_request() -> None:
    empty = attrs.evolve(STATE, history=None)
    with pytest.raises(PreviewStateUnavailable):
        run(MVU_SOURCE, Variables([(empty, None)]), preview=True)
    with pytest.raises(UsageCancelled):
        run(MVU_SOURCE, Variables([(STATE, None)], change_at=3))


def test_stored_templates_go_in_where_they_may() -> None:
    nodes, diagnostics, available = run(TEMPLATE_SOURCE, Templates([(TEMPLATE, None)]))
    assert [text for text, _ in nodes] == ["rendered A"]
    assert {"FACT", "TAVERN_MEMORY_RESOURCE_VERSION"} <= {each["code"] for each in diagnostics}
    assert available
    denied = run(TEMPLATE_SOURCE, Templates([(TEMPLATE, Decision(False))]))
    assert denied[0] == []
    assert {"code": "TEMPLATE_POLICY_SKIPPED", "resourceId": TEMPLATE.id} in denied[1]
    assert run(TEMPLATE_SOURCE, Templates([(TEMPLATE, None)]), session_id="")[0] == []


def refused(call: Callable[[], object]) -> str:
    with pytest.raises((mvu.MvuEditRefused, mvu.MvuError)) as caught:
        call()
    return caught.value.code


def test_edits_by_hand() -> None:
    patch = [{"op": "replace", "path": "/hp", "value": 9}]
    given: dict[str, Any] = {"expected_revision": 1, "operation_id": "o1", "seq": 4}
    after = STATE.patched(patch, **given)
    assert (after.revision, after.variables["stat_data"], STATE.revision) == (2, {"hp": 9}, 1)
    assert after.patched(patch, **given) is after
    other = [{"op": "replace", "path": "/hp", "value": 8}]
    assert refused(lambda: after.patched(other, **given)) == "MVU_IDEMPOTENCY_CONFLICT"
    assert refused(lambda: after.patched(other, **{**given, "operation_id": "o2"})) == "REVISION_CONFLICT"
    missing = [{"op": "replace", "path": "/no", "value": 8}]
    assert refused(lambda: STATE.patched(missing, **given)) == "MVU_PATH_MISSING"
    assert refused(lambda: STATE.patched(patch, **{**given, "operation_id": ""})) == "INVALID_OPERATION"
    replaced = after.replaced({"hp": 1}, expected_revision=2, operation_id="o3", seq=5)
    assert replaced.variables["stat_data"] == {"hp": 1}
    odd: dict[str, Any] = {"expected_revision": 2, "operation_id": "o4", "seq": 5}
    assert refused(lambda: after.replaced({"mp": 1}, **odd)) == "MVU_SCHEMA"
    assert replaced.history is not None
    assert replaced.history.at(4).variables["stat_data"] == {"hp": 9}
    assert attrs.evolve(STATE, mode="native").set_mode("managed", expected_config_revision=1).config_revision == 2
    assert refused(lambda: STATE.set_mode("managed", expected_config_revision=7)) == "REVISION_CONFLICT"
    assert refused(lambda: mvu.VariableResource("mvu:x").variables) == "MVU_BASELINE_REQUIRED"
