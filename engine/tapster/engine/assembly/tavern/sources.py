"""Tavern's sources: character, persona, world book, preset, post-history instructions, hand-written text.

Source: spec/assembler §14, "Tavern sources".
"""

from collections.abc import Callable, Mapping
from typing import Any

from tapster.engine.assembly.context import RequestContext
from tapster.engine.assembly.definition import SourceDefinition
from tapster.engine.assembly.preset import Rule
from tapster.engine.assembly.registry import SourceRegistry
from tapster.engine.assembly.result import AssemblyResult
from tapster.engine.ecma import Json, is_number

from .prompts import card_override, has_marker, near_depth, resolve_preset, uses_slots
from .text import DrawSource, TemplateRuntime, require_runtime, rule_blocks, steady_draws, tavern_renderer

PLUGIN = "pmp-dsh-tavern"
_CARD_FIELDS: Mapping[str, str] = {
    "description": "description",
    "personality": "personality",
    "scenario": "scenario",
    "examples": "mes_example",
}
_CHARACTER_MACROS: Mapping[str, str] = {
    "description": "description",
    "personality": "personality",
    "scenario": "scenario",
    "mesexamples": "examples",
    "charDescription": "description",
    "charPersonality": "personality",
}
_TEXT_DEPENDENCIES = ("character", "persona", "history", "input", "worldbook")
_ROLES = ("system", "user", "assistant")


def _record(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, dict) else {}


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _resolve_character(context: RequestContext, rule: Rule) -> dict[str, Json]:
    character = _record(context.assets.get("character"))
    data = _record(character.get("data"))
    if not character:
        return {"blocks": []}

    def block(block_id: str, text: str, **more: Json) -> dict[str, Json]:
        source = {"resourceId": character.get("id"), "field": block_id}
        return {"type": "text", "id": block_id, "text": text, "source": source, **more}

    blocks = [block(block_id, _text(data.get(field))) for block_id, field in _CARD_FIELDS.items()]
    blocks.append(block("system", card_override(context, "main")))
    blocks.append(block("phi", card_override(context, "jailbreak"), referenceOnly=True))
    if context.assets.get("includeGreetingReference") is True:
        count = sum(message.get("role") != "system" for message in context.native_messages)
        depth = max(1, count) if rule.depth is None else rule.depth
        blocks.append(block("greeting", _text(data.get("first_mes")), role="assistant", depth=depth))
    noted = _record(_record(data.get("extensions")).get("depth_prompt"))
    if _text(noted.get("prompt")):
        role, depth = noted.get("role"), noted.get("depth")
        blocks.append(
            block(
                "depth_prompt",
                _text(noted["prompt"]),
                role=role if role in _ROLES else "system",
                depth=near_depth(depth, 4),
            )
        )
    return {"blocks": blocks, "macros": dict(_CHARACTER_MACROS)}


def _resolve_persona(context: RequestContext, rule: Rule) -> dict[str, Json]:
    user = _record(context.assets.get("user"))
    if not user:
        return {"blocks": []}
    source = {"resourceId": user.get("id"), "field": "description"}
    block = {"type": "text", "id": "persona", "text": _text(user.get("description")), "source": source}
    return {"blocks": [block], "macros": {"persona": "persona"}}


def _resolve_worldbook(context: RequestContext, rule: Rule) -> dict[str, Json]:
    entries = context.assets.get("loreEntries")
    diagnostics: list[Json] = []
    known = [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    blocks = [_lore_block(context, entry, diagnostics) for entry in known]
    return {"blocks": blocks, "diagnostics": diagnostics}


def _lore_block(context: RequestContext, entry: Mapping[str, Json], diagnostics: list[Json]) -> dict[str, Json]:
    block_id = f"worldbook:{entry.get('id')}"
    block: dict[str, Json] = {
        "type": "text",
        "id": block_id,
        "name": _text(entry.get("comment")) or block_id,
        "text": _text(entry.get("content")),
        "role": _lore_role(entry.get("role")),
        "group": _lore_group(context, entry, diagnostics),
        "source": {"resourceId": entry.get("resourceId"), "field": block_id},
    }
    if entry.get("constant") is True:
        block["stability"] = "asset"
    if entry.get("requestedPosition") == "at_depth":
        block["depth"] = near_depth(entry.get("depth"), 0)
    if is_number(entry.get("order")):
        block["order"] = entry["order"]
    return block


def _lore_role(role: Json) -> str:
    if is_number(role) and role in (0, 1, 2):
        return _ROLES[int(role)]
    return role if isinstance(role, str) and role in _ROLES else "system"


def _lore_group(context: RequestContext, entry: Mapping[str, Json], diagnostics: list[Json]) -> str:
    wanted = _text(entry.get("requestedPosition"))
    if wanted == "at_depth":
        return wanted
    fallback = _text(entry.get("position")) or ("before" if wanted.startswith("before_") else "after")
    side, _, around = wanted.partition("_")
    if around not in ("author_note", "example_messages"):
        return fallback
    if uses_slots(context) and has_marker(context, around):
        return wanted
    diagnostics.append({"code": "WORLD_BOOK_SLOT_MISSING", "id": entry.get("id"), "position": wanted, "fallback": side})
    return fallback


def _resolve_phi(context: RequestContext, rule: Rule) -> dict[str, Json]:
    reference = {
        "type": "reference",
        "id": "phi",
        "sourceId": "character",
        "blockIds": ["phi"],
        "useOwnerRule": True,
        "lock": False,
    }
    text = {"type": "text", "id": "text", "text": rule.text, "source": {"field": rule.id}}
    return {"blocks": [reference, text]}


def _resolve_rule_text(context: RequestContext, rule: Rule) -> dict[str, Json]:
    return {"blocks": rule_blocks(rule)}


def _parse_with(runtime: Callable[[], TemplateRuntime | None]) -> Callable[[RequestContext, Rule], object]:
    def output(context: RequestContext, rule: Rule, text: str, templates: TemplateRuntime) -> dict[str, Json]:
        blocks = rule_blocks(rule, text)
        ids = [str(block["id"]) for block in blocks if block["type"] == "text"]
        return {"blocks": blocks, "diagnostics": templates.facts(context, rule, ids)}

    async def finish(context: RequestContext, rule: Rule, waiting: Any, templates: TemplateRuntime) -> dict[str, Json]:
        return output(context, rule, await waiting, templates)

    def parse(context: RequestContext, rule: Rule) -> object:
        if "<%" not in rule.text:
            return {"blocks": rule_blocks(rule)}
        templates = require_runtime(runtime())
        rendered = templates.render(context, rule)
        if isinstance(rendered, str):
            return output(context, rule, rendered, templates)
        return finish(context, rule, rendered, templates)

    return parse


def tavern_sources(
    draws: DrawSource = steady_draws, runtime: Callable[[], TemplateRuntime | None] = lambda: None
) -> tuple[SourceDefinition, ...]:
    """Tavern's sources.

    Args:
        draws: the draws of a request; without them every draw is the middle.
        runtime: the template runtime of the moment, None while there is none.
    """
    render = tavern_renderer(draws)

    def source(source_id: str, name: str, resolve: Callable[..., object] | None, **more: Any) -> SourceDefinition:
        fields: dict[str, Any] = {"stability": "asset", "render_text": render, "resolve": resolve, **more}
        return SourceDefinition(id=source_id, plugin_id=PLUGIN, name=name, **fields)

    def validate(context: RequestContext) -> None:
        if any(rule.enabled and rule.kind == "tavern.text" and "<%" in rule.text for rule in context.preset.rules):
            require_runtime(runtime()).validate(context)

    legacy = {"parse_text": _resolve_rule_text, "text_parser_alias_for": "tavern.text"}
    return (
        source("character", "Character", _resolve_character),
        source("persona", "Persona", _resolve_persona),
        source("worldbook", "World book", _resolve_worldbook, stability="conversation"),
        source(
            "preset",
            "Preset",
            resolve_preset,
            lifetimes=("request",),
            dependencies=(*_TEXT_DEPENDENCIES, "phi"),
            **legacy,
        ),
        source("phi", "Post-history instructions", _resolve_phi, dependencies=("character",)),
        source(
            "custom",
            "Custom text",
            _resolve_rule_text,
            multiple=True,
            dependencies=_TEXT_DEPENDENCIES,
            **legacy,
        ),
        source(
            "tavern.text",
            "Tavern text",
            None,
            stability="evaluation",
            lifetimes=("request",),
            multiple=True,
            supports_module=False,
            dependencies=_TEXT_DEPENDENCIES,
            parse_text=_parse_with(runtime),
            validate_resolved=validate,
        ),
    )


def register_tavern_sources(
    registry: SourceRegistry,
    draws: DrawSource = steady_draws,
    runtime: Callable[[], TemplateRuntime | None] = lambda: None,
) -> Callable[[], None]:
    """Register Tavern's sources beside the host's; the disposer removes them again."""
    disposers = [registry.register(source) for source in tavern_sources(draws, runtime)]

    def dispose() -> None:
        for disposer in disposers:
            disposer()

    return dispose


def after_tavern_assembly(result: AssemblyResult, context: RequestContext) -> list[dict[str, Json]]:
    """What Tavern adds to a finished request's diagnostics: a greeting that came out behind the input."""
    inputs = frozenset(context.input_ids)
    first = next((index for index, message in enumerate(result.messages) if message["id"] in inputs), None)
    return [
        {"code": "GREETING_AFTER_INPUT", "id": node.id}
        for node in result.nodes
        if first is not None and node.module == "character" and node.layout_group == "greeting" and node.start > first
    ]
