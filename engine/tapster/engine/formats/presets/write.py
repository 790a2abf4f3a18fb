"""Presets back into SillyTavern's JSON.

``export_preset`` writes what the contract writes: every known member, normalised. ``restore_preset`` changes only what
differs from the file the preset was read from, so an untouched preset comes back as it was.

Source: spec/resources §2.6.
"""

from collections.abc import Mapping

from tapster.engine.ecma import Json, is_record, stringify, trim
from tapster.engine.formats.fields import file_name, short_name, text_of
from tapster.engine.limits import EXPORT_FILE_NAME_UNITS

from .model import Preset, PresetPrompt
from .old import default_prompts
from .read import ACTIVE_ORDER, choose_order, prompt_identifier, read_prompts, read_sampling

_FORCED_SAMPLING = {
    "temperature": "temperature",
    "max_tokens": "openai_max_tokens",
    "reasoning_effort": "reasoning_effort",
    "stop": "stop",
}


def export_preset(preset: Preset) -> dict[str, Json]:
    """The preset as the contract exports it."""
    out: dict[str, Json] = {**(preset.source.raw or {}), **preset.sampling.st}
    out["name"] = preset.name if trim(preset.name) else "Exported preset"
    for attribute, member in _FORCED_SAMPLING.items():
        _set(out, member, getattr(preset.sampling, attribute))
    out.pop("max_tokens", None)
    out["prompts"] = [_prompt(prompt) for prompt in preset.prompts]
    out["prompt_order"] = _orders(preset)
    return out


def restore_preset(preset: Preset) -> dict[str, Json]:
    """The file the preset came from, with nothing changed but what was edited since."""
    raw = preset.source.raw
    if raw is None:
        return export_preset(preset)
    out: dict[str, Json] = dict(raw)
    if preset.name != short_name(raw.get("name"), "Imported preset"):
        out["name"] = preset.name
    original = read_sampling(raw)
    if preset.sampling.st != original.st:
        out.update(preset.sampling.st)
    for attribute, member in _FORCED_SAMPLING.items():
        value = getattr(preset.sampling, attribute)
        if value != getattr(original, attribute):
            _set(out, member, value)
    if preset.prompts != _original_prompts(raw):
        out["prompts"] = [_prompt(prompt) for prompt in preset.prompts]
        out["prompt_order"] = _orders(preset)
    return out


def preset_text(exported: Json, *, compact: bool = False) -> str:
    """The text of an exported preset: two spaces and a final newline, or compact."""
    return stringify(exported) if compact else stringify(exported, indent=2) + "\n"


def preset_file_name(preset: Preset) -> str:
    """The file name an exported preset gets."""
    return file_name(preset.name, EXPORT_FILE_NAME_UNITS, "preset") + ".json"


def _original_prompts(raw: Mapping[str, Json]) -> tuple[PresetPrompt, ...]:
    prompts = raw.get("prompts")
    if not isinstance(prompts, list):
        return default_prompts(raw)
    order = choose_order(raw, [prompt_identifier(item, index) for index, item in enumerate(prompts)])
    return read_prompts(prompts, order)


def _set(out: dict[str, Json], member: str, value: Json) -> None:
    if value is None:
        out.pop(member, None)
    else:
        out[member] = list(value) if isinstance(value, tuple) else value


def _prompt(prompt: PresetPrompt) -> dict[str, Json]:
    out: dict[str, Json] = dict(prompt.st)
    out["identifier"] = prompt.identifier
    out["name"] = prompt.name
    out["role"] = prompt.role
    out["content"] = prompt.content
    out["enabled"] = prompt.enabled
    out["marker"] = prompt.marker
    out["system_prompt"] = prompt.system_prompt
    _set(out, "injection_position", prompt.injection_position)
    _set(out, "injection_depth", prompt.injection_depth)
    return out


def _orders(preset: Preset) -> list[Json]:
    given = (preset.source.raw or {}).get("prompt_order")
    orders = [item for item in given if is_record(item)] if isinstance(given, list) else []
    chosen = preset.source.selected_order_character_id
    chosen = ACTIVE_ORDER if chosen is None else chosen
    order = [{"identifier": prompt.identifier, "enabled": prompt.enabled} for prompt in preset.prompts]
    out: list[Json] = list(orders)
    for index, item in enumerate(orders):
        if "character_id" in item and text_of(item["character_id"]) == text_of(chosen):
            out[index] = {**item, "order": order}
            return out
    return [*out, {"character_id": chosen, "order": order}]
