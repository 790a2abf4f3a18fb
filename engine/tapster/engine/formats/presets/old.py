"""Presets from before SillyTavern had a prompt list: their prompts are made from the fields of that time.

Source: vectors' README, "preset" of user_reports (the default order); issue "presets (old and new)".
"""

from collections.abc import Mapping

from tapster.engine.ecma import Json

from .model import PresetPrompt

_DEFAULT_ORDER = (
    "main",
    "worldInfoBefore",
    "personaDescription",
    "charDescription",
    "charPersonality",
    "scenario",
    "nsfw",
    "worldInfoAfter",
    "dialogueExamples",
    "chatHistory",
    "jailbreak",
)
_TEXTS = {"main": ("Main Prompt", "main_prompt"), "nsfw": ("Auxiliary Prompt", "nsfw_prompt"),
          "jailbreak": ("Post-History Instructions", "jailbreak_prompt")}  # fmt: skip
_SWITCHES = {"nsfw": "nsfw_toggle", "jailbreak": "jailbreak_system"}
_MARKS = (
    "temperature",
    "frequency_penalty",
    "presence_penalty",
    "openai_max_context",
    "openai_max_tokens",
    "main_prompt",
)


def is_old_preset(raw: Mapping[str, Json]) -> bool:
    """Whether an object without ``prompts`` looks like a chat-completion preset of 2023."""
    return "prompts" not in raw and sum(mark in raw for mark in _MARKS) >= 2


def default_prompts(raw: Mapping[str, Json]) -> tuple[PresetPrompt, ...]:
    """The prompts of an old preset in SillyTavern's default order."""
    return tuple([_prompt(raw, identifier) for identifier in _DEFAULT_ORDER])


def _prompt(raw: Mapping[str, Json], identifier: str) -> PresetPrompt:
    name, member = _TEXTS.get(identifier, (identifier, ""))
    content = raw.get(member) if member else None
    return PresetPrompt(
        identifier=identifier,
        name=name,
        role="system",
        content=content if isinstance(content, str) else "",
        enabled=raw.get(_SWITCHES.get(identifier, "")) is not False,
        marker=identifier not in _TEXTS,
        system_prompt=True,
    )
