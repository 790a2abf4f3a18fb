"""What a preset asks of the model call.

Source: spec/loader §10.
"""

import attrs

from tapster.engine.ecma import Json, is_number, is_safe_integer, trim, utf16_length
from tapster.engine.formats.presets import Preset
from tapster.engine.limits import REASONING_EFFORT_UNITS


@attrs.frozen
class CallConfig:
    """The call parameters of a preset; None leaves the host's own value."""

    temperature: float | None = None
    max_tokens: int | None = None
    reasoning_effort: str | None = None
    stop: tuple[str, ...] | None = None

    def to_json(self) -> dict[str, Json]:
        """The set parameters, to lay over the host's request configuration."""
        members: dict[str, Json] = {
            "temperature": self.temperature,
            "maxTokens": self.max_tokens,
            "reasoningEffort": self.reasoning_effort,
            "stop": list(self.stop) if self.stop else None,
        }
        return {key: value for key, value in members.items() if value is not None}


def call_config(preset: Preset | None) -> CallConfig:
    """The parameters a preset sets; no preset sets none."""
    if preset is None:
        return CallConfig()
    sampling = preset.sampling
    effort = sampling.reasoning_effort
    usable = effort is not None and trim(effort) and utf16_length(effort) <= REASONING_EFFORT_UNITS
    limit = sampling.max_tokens
    return CallConfig(
        temperature=sampling.temperature if is_number(sampling.temperature) else None,
        max_tokens=int(limit) if limit is not None and is_safe_integer(limit) and limit > 0 else None,
        reasoning_effort=effort if usable else None,
        stop=sampling.stop or None,
    )
