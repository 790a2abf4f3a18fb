"""The Tavern text parser: areas ``st_macros`` and ``tavern_text.blocks`` of assembler.jsonl."""

from typing import Any

from tapster.engine.assembly import normalise_preset
from tapster.engine.assembly.tavern import rule_blocks
from tapster.engine.text.tavern_macros import DEFAULT_CHARACTER, DEFAULT_USER, MacroContext, expand_macros
from tests.conformance.registry import adapter

Json = Any
PRESET = {"format": "dsh-tavern-request-assembly", "version": 1, "name": "Test"}


@adapter("assembler", "st_macros")
def run_macros(given: Json) -> Json:
    names = given.get("context") or {}
    context = MacroContext(
        user=names.get("user") or DEFAULT_USER,
        character=names.get("character") or DEFAULT_CHARACTER,
        last_user_message=names.get("lastUserMessage") or "",
        last_character_message=names.get("lastAssistantMessage") or "",
    )
    draw = given.get("random", 0.5)
    variables: Json = {}
    outputs = []
    for text in given.get("texts") or [given["text"]]:
        result = expand_macros(
            text, context, draw=lambda: float(draw), variables=variables, literals=given.get("literalMacros")
        )
        variables = result.variables
        outputs.append(result.text)
    return {"outputs": outputs, "variables": dict(variables)}


@adapter("assembler", "tavern_text.blocks")
def run_blocks(given: Json) -> Json:
    rule = {"id": "rule", "name": "", "kind": "tavern.text", "enabled": True, "inputMode": "text", **given["rule"]}
    return {"blocks": rule_blocks(normalise_preset({**PRESET, "rules": [rule]}).rules[0])}
