"""What the standard backend hands the host, and which presets it takes."""

from typing import Any

import pytest

from tapster.engine.assembly import (
    AssemblyRefused,
    Capabilities,
    NativePlan,
    Section,
    assemble_request,
    bare_builtins,
    context_sections,
    freeze_context,
    joins_step,
    native_messages,
    normalise_preset,
    observed_nodes,
    official_text,
    plan_native,
    preview_facts,
    require_available,
    tavern_builtins,
)
from tests.support.assembly import HEAD, Case, message, plain_source, text, tool_pair

Json = Any
OFFICIAL = (Section("identity", "You are {{model}}."), Section("empty", ""), Section("raw", "{{x}}", interpolate=False))
VARIABLES = {"model": "lamp"}
RULES = [
    {"id": "own", "kind": "own"},
    {"id": "native-system", "kind": "native-system"},
    {"id": "history", "kind": "history"},
    {"id": "early", "kind": "early", "role": "user", "delivery": "pre-step"},
    {"id": "input", "kind": "input"},
    {"id": "ctx", "kind": "ctx", "role": "user"},
    {"id": "late", "kind": "late", "role": "user", "delivery": "pre-step"},
]


def planned(
    durable: tuple[Json, ...] = (), turn: int = 1, variables: dict[str, str] | None = None
) -> tuple[NativePlan, Json]:
    native = native_messages(durable, official_text(OFFICIAL, VARIABLES), [message("u2", "user", "now")])
    preset = normalise_preset({**HEAD, "backend": "native", "rules": RULES})
    case = Case({**HEAD, "rules": []}, (), (), ())
    registry = case.registry()
    for name in ("own", "early", "ctx", "late"):
        registry.register(plain_source(name, [text("a b", name.upper())]))
    result = assemble_request(registry, freeze_context(preset, native, input_ids=["u2"]))
    given = {**VARIABLES, **(variables or {})}
    return plan_native(result, native, durable, OFFICIAL, given, turn=turn, step=1, reconciles=True), result


def test_each_node_becomes_what_the_host_delivers() -> None:
    plan, _ = planned((message("u1", "user"),))
    own = "dsh-prompt-assembler:part:0001:own:a_b"
    assert [section.name for section in plan.sections] == [own, "identity", "empty", "raw"]
    assert plan.sections[0].to_json() == {"name": own, "text": "OWN", "interpolate": False}
    assert plan.system_text == "OWN\n\nYou are lamp.\n\n{{x}}"
    [context] = plan.contexts
    assert context.text == "{{dsh_prompt_assembler_context_0}}"
    assert plan.variables == {"dsh_prompt_assembler_context_0": "CTX"}
    accepted = plan.accept([message("u2", "user", "now")])
    assert [each["content"][0]["text"] for each in accepted] == ["EARLY", "now", "LATE"]
    assert accepted[0]["source"] == {
        "kind": "dsh-prompt-assembler",
        "form": "instructions",
        "delivery": "pre-step",
        "ruleId": "early",
        "blockId": "a b",
    }


def test_durable_messages_get_new_ids_at_each_step_and_the_same_when_asked_again() -> None:
    first, again, later = planned()[0], planned()[0], planned(turn=2)[0]
    assert [each["id"] for each in first.before] == [each["id"] for each in again.before]
    assert not {each["id"] for each in first.before} & {each["id"] for each in later.before}


def test_a_variable_name_the_host_has_is_not_taken() -> None:
    plan, _ = planned(variables={"dsh_prompt_assembler_context_0": "taken"})
    assert list(plan.variables) == ["dsh_prompt_assembler_context_0_"]


def test_a_new_series_starts_only_when_the_system_text_differs() -> None:
    text_now = planned()[0].system_text
    same = message("s1", "system", text_now)
    assert not planned((same, message("u1", "user")))[0].reconciles_system
    assert planned((message("s1", "system", "old"), message("u1", "user")))[0].reconciles_system


def test_a_missing_host_variable_is_refused() -> None:
    with pytest.raises(AssemblyRefused) as raised:
        official_text(OFFICIAL, {})
    assert (raised.value.code, raised.value.status) == ("NATIVE_PREVIEW_VARIABLE_UNAVAILABLE", 409)


def test_contributions_join_only_a_step_that_goes_on() -> None:
    given = [message("u", "user")]
    assert joins_step("enter", given, 1, [])
    assert not joins_step("reject", given, 1, [])
    assert not joins_step("enter", [], 1, tool_pair(1, 1))
    assert joins_step("enter", [], 2, tool_pair(1, 1))
    assert not joins_step("enter", [], 2, [message("a", "assistant")])


def test_observation_finds_what_is_in_the_request_and_nothing_else() -> None:
    plan, _ = planned()
    context = message("c", "user", "shown", "runtime-context")
    context["source"]["sections"] = [{"name": plan.parts[2].name, "text": "CTX"}]
    sent = [message("s", "system", plan.system_text), *plan.accept([message("u2", "user", "now")]), context]
    assert observed_nodes(plan, sent, context_sections(context)) == {part.node_id for part in plan.parts}
    changed = [message("s", "system", "other"), {**sent[1], "content": [{"type": "text", "text": "edited"}]}]
    assert observed_nodes(plan, changed, ()) == frozenset()


def test_presets_run_only_where_they_can() -> None:
    native, core = bare_builtins()[0], tavern_builtins()[2]
    with_core = Capabilities(core=True, core_installed=True)
    strategies = Case({**HEAD, "rules": []}, (), (), ()).registry().strategies.capture()
    require_available(native, Capabilities(), strategies)
    require_available(core, with_core, strategies)
    require_available(None, Capabilities(), strategies)
    for preset, capabilities, code in (
        (core, Capabilities(), "REQUEST_ASSEMBLY_CORE_REQUIRED"),
        (native, Capabilities(native=False, core=True), "ASSEMBLY_NATIVE_UNAVAILABLE"),
        (None, Capabilities(native=False), "ASSEMBLY_NATIVE_UNAVAILABLE"),
    ):
        with pytest.raises(AssemblyRefused) as raised:
            require_available(preset, capabilities, strategies)
        assert raised.value.code == code
    with pytest.raises(AssemblyRefused) as raised:
        require_available(core, with_core, {})
    assert raised.value.code == "POSITION_STRATEGY_UNAVAILABLE"


def test_every_shipped_preset_is_stored_as_it_is_normalised() -> None:
    for preset in (*bare_builtins(), *tavern_builtins()):
        assert normalise_preset(preset.to_json()).to_json() == preset.to_json()
        assert "transport" in preview_facts(preset, Capabilities()) or not preset.is_native
