"""Full update of a preset.

Source: spec/resources §2.5.
"""

from collections.abc import Mapping

import attrs

from tapster.engine.ecma import Json, is_number, is_record
from tapster.engine.errors import FormatError
from tapster.engine.formats.fields import coerced_number, positive_integer, short_name

from .model import Preset, PresetPrompt, Sampling
from .read import prompt_identifier, prompt_role, reasoning_effort, stop_strings

_PROMPT_MEMBERS = frozenset(
    {
        "identifier",
        "name",
        "role",
        "content",
        "enabled",
        "marker",
        "systemPrompt",
        "injectionPosition",
        "injectionDepth",
        "st",
    }
)


def edit_preset(preset: Preset, patch: Json, *, now: str) -> Preset:
    """The preset after an update; what the patch leaves out is cleared or kept as the contract says.

    Raises:
        FormatError: ``preset-patch-not-object`` or ``preset-prompt-not-object``.
    """
    if not is_record(patch):
        raise FormatError("preset-patch-not-object", "a preset update is a JSON object")
    sampling = patch.get("sampling")
    prompts = patch.get("prompts")
    return attrs.evolve(
        preset,
        name=short_name(patch.get("name"), preset.name),
        system_prompt_mode="replace" if patch.get("systemPromptMode") == "replace" else "append",
        sampling=_sampling(preset.sampling, sampling if is_record(sampling) else {}),
        prompts=_prompts(prompts) if isinstance(prompts, list) else preset.prompts,
        updated_at=now,
    )


def _sampling(current: Sampling, patch: Mapping[str, Json]) -> Sampling:
    effort = current.reasoning_effort
    if "reasoningEffort" in patch:
        effort = reasoning_effort(patch["reasoningEffort"])
    stop = stop_strings(patch.get("stop"))
    verbatim = patch.get("st")
    return Sampling(
        temperature=coerced_number(patch.get("temperature")),
        max_tokens=positive_integer(coerced_number(patch.get("maxTokens"))),
        reasoning_effort=effort,
        stop=current.stop if stop is None else stop,
        st=verbatim if isinstance(verbatim, dict) else current.st,
    )


def _prompts(given: list[Json]) -> tuple[PresetPrompt, ...]:
    for index, item in enumerate(given):
        if not is_record(item):
            raise FormatError("preset-prompt-not-object", f"prompts[{index}] must be a JSON object")
    return tuple([_prompt(item, index) for index, item in enumerate(given)])


def _prompt(given: Mapping[str, Json], index: int) -> PresetPrompt:
    content = given.get("content")
    position = given.get("injectionPosition")
    depth = given.get("injectionDepth")
    verbatim = given.get("st")
    return PresetPrompt(
        identifier=prompt_identifier(given, index),
        name=short_name(given.get("name"), f"Prompt {index + 1}"),
        role=prompt_role(given.get("role")),
        content=content if isinstance(content, str) else "",
        enabled=given.get("enabled") is True,
        marker=given.get("marker") is True,
        system_prompt=given.get("systemPrompt") is True,
        injection_position=position if is_number(position) else None,
        injection_depth=depth if is_number(depth) else None,
        st=verbatim if isinstance(verbatim, dict) else {},
        extra={key: value for key, value in given.items() if key not in _PROMPT_MEMBERS},
    )
