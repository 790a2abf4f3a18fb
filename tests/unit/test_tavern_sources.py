"""Tavern's sources where the contract says more than its examples show."""

from typing import Any

from tapster.engine.assembly import (
    AssemblyResult,
    SourceRegistry,
    assemble_request,
    freeze_context,
    normalise_preset,
    register_host_sources,
)
from tapster.engine.assembly.tavern import after_tavern_assembly, register_tavern_sources
from tests.support.assembly import HEAD, message

Json = Any
LAYOUT = {"version": 1, "source": "preset-slots", "identity": "position", "fallback": "source-order", "overrides": []}


def assembled(kinds: list[str], assets: Json, native: list[Json] | None = None, **more: Json) -> AssemblyResult:
    registry = SourceRegistry()
    register_host_sources(registry)
    register_tavern_sources(registry)
    rules = [{"id": kind, "kind": kind} for kind in kinds]
    preset = normalise_preset({**HEAD, "placement": "st", **more, "rules": rules})
    given = native if native is not None else [message("u1", "user", "hi")]
    return assemble_request(registry, freeze_context(preset, given, assets=assets, input_ids=["u1"]))


def texts(result: AssemblyResult) -> list[str]:
    return [each["content"][0]["text"] for each in result.messages]


def prompt(identifier: str, content: str | None = None, **more: Json) -> Json:
    return {"identifier": identifier, "enabled": True, **({} if content is None else {"content": content}), **more}


CARD: Json = {"id": "c", "name": "Bo", "data": {"name": "Bo", "mes_example": "EX", "description": "{{char}} is tall."}}
EXAMPLES = [prompt("dialogueExamples", marker=True), prompt("chatHistory", marker=True)]


def lore(position: str, content: str = "LORE", **more: Json) -> Json:
    return {"id": "e1", "content": content, "requestedPosition": position, "position": position.split("_")[0], **more}


def test_entries_around_examples_need_the_prompt_and_a_slot_layout() -> None:
    assets = {
        "character": CARD,
        "preset": {"id": "p", "prompts": EXAMPLES},
        "loreEntries": [lore("before_example_messages")],
    }
    kinds = ["preset", "character", "worldbook", "history", "input"]
    slotted = assembled(kinds, assets, layout=LAYOUT)
    assert texts(slotted)[:3] == ["LORE", "EX", "hi"]
    assert not [each for each in slotted.diagnostics if each["code"] == "WORLD_BOOK_SLOT_MISSING"]
    without = {**assets, "preset": {"id": "p", "prompts": EXAMPLES[1:]}}
    missing = assembled(kinds, without, layout=LAYOUT)
    assert [each["fallback"] for each in missing.diagnostics if each["code"] == "WORLD_BOOK_SLOT_MISSING"] == ["before"]


def test_odd_depths_of_resources_never_refuse_a_request() -> None:
    card = {**CARD, "data": {**CARD["data"], "extensions": {"depth_prompt": {"prompt": "DEEP", "depth": 99_999}}}}
    assets = {"character": card, "loreEntries": [lore("at_depth", depth=-3)]}
    result = assembled(["history", "input", "character", "worldbook"], assets)
    assert texts(result) == ["DEEP", "hi", "Bo is tall.", "EX", "LORE"]


def test_a_greeting_behind_the_input_is_reported() -> None:
    card = {**CARD, "data": {"first_mes": "Hello there"}}
    assets = {"character": card, "includeGreetingReference": True}
    result = assembled(["history", "input", "character"], assets, placement="modules")
    registry_context = freeze_context(normalise_preset({**HEAD, "rules": []}), [], input_ids=["u1"])
    assert texts(result) == ["hi", "Hello there"]
    assert [each["code"] for each in after_tavern_assembly(result, registry_context)] == ["GREETING_AFTER_INPUT"]
    placed = assembled(["history", "input", "character"], assets)
    assert texts(placed) == ["Hello there", "hi"]
    assert after_tavern_assembly(placed, registry_context) == []


def test_prompts_split_at_references_and_share_variables_in_order() -> None:
    prompts = [prompt("main", "{{setvar::mood::calm}}A {{chatHistory}} mood={{getvar::mood}}", role="system")]
    result = assembled(["preset", "history", "input"], {"preset": {"id": "p", "prompts": prompts}})
    assert texts(result) == ["A", "hi", "mood=calm"]


def test_an_unknown_marker_is_reported() -> None:
    prompts = [prompt("mystery", marker=True)]
    result = assembled(["preset"], {"preset": {"id": "p", "prompts": prompts}})
    assert {"code": "UNSUPPORTED_MARKER", "marker": "mystery"} in result.diagnostics
