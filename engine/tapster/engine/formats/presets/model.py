"""What a preset is once it has been read.

Source: spec/resources §2.2-§2.4.
"""

from collections.abc import Mapping
from typing import Literal

import attrs

from tapster.engine.ecma import Json
from tapster.engine.formats.documents import FLATTENED

Role = Literal["system", "user", "assistant"]
SystemPromptMode = Literal["append", "replace"]
PresetFormat = Literal["sillytavern-chat-completion", "dsh-tavern"]


@attrs.frozen
class PresetPrompt:
    """One prompt of a preset; ``st`` is the raw prompt it was read from."""

    identifier: str
    name: str
    role: Role
    content: str
    enabled: bool
    marker: bool
    system_prompt: bool
    injection_position: float | None = None
    injection_depth: float | None = None
    st: Mapping[str, Json] = attrs.field(factory=dict)
    extra: Mapping[str, Json] = attrs.field(factory=dict, metadata=FLATTENED)


@attrs.frozen
class Sampling:
    """Values for the model call; None is "the preset does not say".

    ``st`` holds SillyTavern's own sampling members word for word: exported, never sent.
    """

    temperature: float | None = None
    max_tokens: float | None = None
    reasoning_effort: str | None = None
    stop: tuple[str, ...] | None = None
    st: Mapping[str, Json] = attrs.field(factory=dict)


@attrs.frozen
class PresetSource:
    """Where a preset came from; ``raw`` is the whole parsed input, absent for a blank one."""

    format: PresetFormat
    imported_at: str | None = None
    created_at: str | None = None
    selected_order_character_id: Json = None
    raw: Mapping[str, Json] | None = None


@attrs.frozen
class Preset:
    """A chat-completion preset. Times are ISO 8601 in UTC with milliseconds."""

    id: str
    name: str
    created_at: str
    updated_at: str
    source: PresetSource
    system_prompt_mode: SystemPromptMode
    sampling: Sampling
    prompts: tuple[PresetPrompt, ...]
    schema_version: Literal[1] = 1
