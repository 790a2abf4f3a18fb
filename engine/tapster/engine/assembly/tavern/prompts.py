"""The Tavern preset as a source: its prompts in order, its markers as references.

Source: spec/assembler §14, row ``preset``.
"""

from collections.abc import Iterator, Mapping

from tapster.engine import limits
from tapster.engine.assembly.context import RequestContext
from tapster.engine.assembly.preset import Rule
from tapster.engine.ecma import Json, is_number, trim

from .text import REFERENCES, reference_blocks, split_references, text_stability

_FIELDS: Mapping[str, tuple[str, str]] = {
    "charDescription": ("character", "description"),
    "charPersonality": ("character", "personality"),
    "scenario": ("character", "scenario"),
    "dialogueExamples": ("character", "examples"),
    "personaDescription": ("persona", "persona"),
    "userDescription": ("persona", "persona"),
    "userPersona": ("persona", "persona"),
}
"""Marker -> the field of another source that it shows."""
_OVERRIDES: Mapping[str, tuple[str, str, str]] = {
    "main": ("system", "system_prompt", "preferCharacterSystemPrompt"),
    "jailbreak": ("phi", "post_history_instructions", "preferCharacterPostHistory"),
}
"""Prompt -> the character's block, the card field it is made of, and the selection's switch for it."""
SURROUNDED: Mapping[str, str] = {
    "dialogueExamples": "example_messages",
    "authorNote": "author_note",
    "authorNotes": "author_note",
}
"""Marker -> the world-book positions around it."""
_MARKERS = frozenset({*_FIELDS, *REFERENCES, "authorNote", "authorNotes"}) - {"worldInfo"}


def enabled_prompts(context: RequestContext) -> Iterator[Mapping[str, Json]]:
    """The bound preset's prompts that are on, in their order."""
    preset = context.assets.get("preset")
    prompts = preset.get("prompts") if isinstance(preset, dict) else None
    for prompt in prompts if isinstance(prompts, list) else []:
        if (
            isinstance(prompt, dict)
            and prompt.get("enabled") is not False
            and isinstance(prompt.get("identifier"), str)
        ):
            yield prompt


def has_marker(context: RequestContext, around: str) -> bool:
    """Whether an enabled marker has world-book positions of this kind around it."""
    return any(
        _is_marker(prompt) and SURROUNDED.get(prompt["identifier"]) == around for prompt in enabled_prompts(context)
    )


def uses_slots(context: RequestContext) -> bool:
    """Whether the layout puts world-book entries around a preset's markers."""
    layout = context.preset.layout
    return context.preset.is_adaptive or (layout is not None and layout.source == "preset-slots")


def card_override(context: RequestContext, identifier: str) -> str:
    """The card's text for a prompt, empty when there is none or the selection prefers the preset's."""
    if identifier not in _OVERRIDES:
        return ""
    _, field, switch = _OVERRIDES[identifier]
    selection, character = context.assets.get("characterSelection"), context.assets.get("character")
    if isinstance(selection, dict) and selection.get(switch) is False:
        return ""
    data = character.get("data") if isinstance(character, dict) else None
    text = data.get(field) if isinstance(data, dict) else None
    return text if isinstance(text, str) and trim(text) else ""


def resolve_preset(context: RequestContext, rule: Rule) -> dict[str, Json]:
    """The blocks of the bound preset."""
    blocks: list[Json] = []
    diagnostics: list[Json] = []
    for prompt in enabled_prompts(context):
        if _is_marker(prompt):
            blocks += _marker_blocks(context, prompt, diagnostics)
        else:
            blocks += _prompt_blocks(context, prompt)
    return {"blocks": blocks, "diagnostics": diagnostics}


def _is_marker(prompt: Mapping[str, Json]) -> bool:
    return prompt.get("marker") is True or prompt["identifier"] in _MARKERS


def _role(prompt: Mapping[str, Json]) -> dict[str, Json]:
    role = prompt.get("role")
    return {"role": role} if role in ("system", "user", "assistant") else {}


def _marker_blocks(context: RequestContext, prompt: Mapping[str, Json], diagnostics: list[Json]) -> Iterator[Json]:
    name, base = prompt["identifier"], f"preset:{prompt['identifier']}"
    around = SURROUNDED.get(name) if uses_slots(context) else None
    if around is not None:
        yield _lore(base, f"before_{around}")
    if name in _FIELDS:
        source_id, field = _FIELDS[name]
        yield {
            "type": "reference",
            "id": base,
            "sourceId": source_id,
            "blockIds": [field],
            "honorEnabled": False,
            "useOwnerRule": True,
            **_role(prompt),
        }
    elif name in REFERENCES:
        yield from reference_blocks(base, base, name, **_role(prompt))
    elif name in SURROUNDED:
        yield {"type": "text", "id": base, "name": prompt.get("name"), "text": "", "source": _source(context, prompt)}
    else:
        diagnostics.append({"code": "UNSUPPORTED_MARKER", "marker": name})
    if around is not None:
        yield _lore(base, f"after_{around}")


def _lore(base: str, group: str) -> dict[str, Json]:
    return {"type": "reference", "id": f"{base}:{group}", "sourceId": "worldbook", "group": group, "owner": base}


def _source(context: RequestContext, prompt: Mapping[str, Json]) -> dict[str, Json]:
    preset = context.assets.get("preset")
    resource_id = preset.get("id") if isinstance(preset, dict) else None
    return {"resourceId": resource_id, "field": prompt["identifier"]}


def _prompt_blocks(context: RequestContext, prompt: Mapping[str, Json]) -> list[dict[str, Json]]:
    identifier = prompt["identifier"]
    content = prompt["content"] if isinstance(prompt.get("content"), str) else ""
    more: dict[str, Json] = {"source": _source(context, prompt), **_role(prompt), **_injection(prompt)}
    if isinstance(prompt.get("name"), str):
        more["name"] = prompt["name"]
    forbidden = prompt.get("forbid_overrides") is True or prompt.get("forbidOverrides") is True
    override = "" if forbidden else card_override(context, identifier)
    if override:
        content = override.replace("{{original}}", content)
        more["claims"] = [{"sourceId": "character", "blockId": _OVERRIDES[identifier][0]}]
    if identifier == "jailbreak" and context.preset.is_list and _has_phi(context):
        more["targetSourceId"] = "phi"
    blocks = split_references(content, f"preset:{identifier}", **more)
    for block in blocks:
        stability = text_stability(block["text"]) if block["type"] == "text" else None
        if stability is not None:
            block["stability"] = stability
    return blocks


def _has_phi(context: RequestContext) -> bool:
    return any(rule.enabled and rule.kind == "phi" for rule in context.preset.rules)


def _injection(prompt: Mapping[str, Json]) -> dict[str, Json]:
    def field(camel: str, snake: str) -> Json:
        return prompt.get(camel, prompt.get(snake))

    if field("injectionPosition", "injection_position") != 1:
        return {}
    depth, order = field("injectionDepth", "injection_depth"), field("injectionOrder", "injection_order")
    return {
        "depth": near_depth(depth, 0),
        "order": order if is_number(order) else 100,
    }


def near_depth(value: Json, default: int) -> int:
    """The nearest depth a block may have; a resource's odd number never refuses a request."""
    return min(max(int(value), 0), limits.ASSEMBLY_DEPTH) if is_number(value) else default
