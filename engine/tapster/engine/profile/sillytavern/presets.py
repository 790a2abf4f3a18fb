"""A preset's file as the SillyTavern renderer reads it.

Source: the vectors' README, "st_prompt.jsonl" and "user_reports.jsonl" (presets without an order).
"""

from collections.abc import Mapping
from typing import Final

import attrs

from tapster.engine.ecma import Json, is_number, is_record
from tapster.engine.formats.presets import Preset, restore_preset
from tapster.engine.formats.presets.read import choose_order
from tapster.engine.profile.parts import Diagnostic

from .model import ROLES, Names, OrderEntry, Prompt, PromptPreset, Role

DEFAULT_ORDER: Final = (
    "main", "worldInfoBefore", "personaDescription", "charDescription", "charPersonality", "scenario", "nsfw",
    "worldInfoAfter", "dialogueExamples", "chatHistory", "jailbreak",
)  # fmt: skip
_TEXTS: Final[Mapping[str, str]] = {
    "new_chat": "new_chat_prompt",
    "new_group_chat": "new_group_chat_prompt",
    "new_example_chat": "new_example_chat_prompt",
    "world_info_format": "wi_format",
    "scenario_format": "scenario_format",
    "personality_format": "personality_format",
    "impersonation": "impersonation_prompt",
    "continue_nudge": "continue_nudge_prompt",
    "group_nudge": "group_nudge_prompt",
    "send_if_empty": "send_if_empty",
}


@attrs.frozen
class PresetReading:
    """A preset for the renderer, and what had to be assumed about it."""

    preset: PromptPreset
    warnings: tuple[Diagnostic, ...] = ()


def prompt_preset_of(preset: Preset) -> PresetReading:
    """A stored preset, edits included."""
    return read_prompt_preset(restore_preset(preset))


def read_prompt_preset(raw: Mapping[str, Json]) -> PresetReading:
    """A preset file's prompts, active order and settings; absent settings have SillyTavern's defaults."""
    prompts = _prompts(raw)
    order = choose_order(raw, [prompt.identifier for prompt in prompts])
    warnings: tuple[Diagnostic, ...] = ()
    if order is None:
        warnings = (
            Diagnostic(
                "PRESET_WITHOUT_PROMPT_ORDER",
                "warning",
                "the preset has no usable prompt_order: its prompts are sent in the default order",
                (("field", "prompt_order"),),
            ),
        )
        entries = tuple(OrderEntry(identifier, True) for identifier in DEFAULT_ORDER)
        prompts = _with_defaults(prompts, raw)
    else:
        entries = tuple(_order_entry(item) for item in order["order"] if is_record(item))
        known = {prompt.identifier for prompt in prompts}
        missing = [entry.identifier for entry in entries if entry.identifier not in known]
        prompts = (*prompts, *(_marker(identifier) for identifier in missing if identifier in DEFAULT_ORDER))
    return PresetReading(PromptPreset(prompts=prompts, order=entries, **_settings(raw)), warnings)


def _settings(raw: Mapping[str, Json]) -> dict[str, Json]:
    settings: dict[str, Json] = {field: raw[name] for field, name in _TEXTS.items() if isinstance(raw.get(name), str)}
    if is_number(raw.get("openai_max_context")):
        settings["context_tokens"] = int(raw["openai_max_context"])
    if is_number(raw.get("openai_max_tokens")):
        settings["response_tokens"] = int(raw["openai_max_tokens"])
    if raw.get("names_behavior") in list(Names):
        settings["names"] = Names(raw["names_behavior"])
    settings["squash_system_messages"] = raw.get("squash_system_messages") is True
    settings["continue_prefill"] = raw.get("continue_prefill") is True
    return settings


def _prompts(raw: Mapping[str, Json]) -> tuple[Prompt, ...]:
    prompts = raw.get("prompts")
    items = prompts if isinstance(prompts, list) else []
    return tuple(_prompt(item) for item in items if is_record(item) and isinstance(item.get("identifier"), str))


def _prompt(item: Mapping[str, Json]) -> Prompt:
    trigger = item.get("injection_trigger")
    content = item.get("content")
    return Prompt(
        identifier=item["identifier"],
        content=content if isinstance(content, str) else "",
        role=_role(item.get("role")),
        system_prompt=bool(item.get("system_prompt")),
        marker=bool(item.get("marker")),
        injection_position=_number(item.get("injection_position")),
        injection_depth=_number(item.get("injection_depth")),
        injection_order=_number(item.get("injection_order")),
        injection_trigger=tuple(word for word in trigger if isinstance(word, str)) if isinstance(trigger, list) else (),
        forbid_overrides=bool(item.get("forbid_overrides")),
    )


def _role(value: Json) -> Role | None:
    return next((role for role in ROLES if role == value), None)


def _number(value: Json) -> int | None:
    return int(value) if is_number(value) else None


def _order_entry(item: Mapping[str, Json]) -> OrderEntry:
    return OrderEntry(str(item.get("identifier")), item.get("enabled") is True)


def _marker(identifier: str) -> Prompt:
    return Prompt(identifier, system_prompt=True, marker=True)


def _with_defaults(prompts: tuple[Prompt, ...], raw: Mapping[str, Json]) -> tuple[Prompt, ...]:
    """The prompts with what the default order needs; the main prompt is the file's ``main_prompt``."""
    known = {prompt.identifier for prompt in prompts}
    added = [_marker(identifier) for identifier in DEFAULT_ORDER if identifier not in known]
    main = raw.get("main_prompt")
    text = main if isinstance(main, str) else ""
    return (*prompts, *(attrs.evolve(p, content=text, marker=False) if p.identifier == "main" else p for p in added))
