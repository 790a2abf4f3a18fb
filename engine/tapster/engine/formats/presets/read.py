"""SillyTavern chat-completion presets into values.

Source: spec/resources §2.1-§2.4.
"""

from collections.abc import Iterable, Mapping

import attrs

from tapster.engine.ecma import Json, is_number, trim
from tapster.engine.errors import FormatError
from tapster.engine.formats.fields import (
    coerced_number,
    has_control_characters,
    is_too_long,
    positive_integer,
    short_name,
)
from tapster.engine.formats.json_guard import load_json
from tapster.engine.formats.profiles import Profile
from tapster.engine.limits import PRESET_PROMPTS, REASONING_EFFORT_UNITS, STOP_STRINGS

from .model import Preset, PresetPrompt, PresetSource, Role, Sampling
from .old import default_prompts, is_old_preset

ACTIVE_ORDER = 100001
"""``character_id`` of the prompt order that SillyTavern uses."""
SAMPLING_MEMBERS = (
    "temperature",
    "frequency_penalty",
    "presence_penalty",
    "top_p",
    "top_k",
    "top_a",
    "min_p",
    "repetition_penalty",
    "openai_max_context",
    "openai_max_tokens",
    "reasoning_effort",
    "seed",
    "n",
)
_ROLES: Mapping[str, Role] = {"model": "assistant", "assistant": "assistant", "system": "system"}


def parse_preset(
    given: str | Json, *, id: str, now: str, name: str | None = None, profile: Profile = "contract"
) -> Preset:
    """The preset that a JSON text or object holds.

    Profiles other than the contract also take a preset without prompts, as those of early 2023 are.

    Raises:
        FormatError: ``preset-bad-json``, ``preset-not-object``, ``preset-no-prompts``, or a limit.
    """
    raw = _root(given)
    prompts = raw.get("prompts")
    if not isinstance(prompts, list):
        if profile == "contract" or not is_old_preset(raw):
            raise FormatError("preset-no-prompts", "there is no list 'prompts'; is this a chat-completion preset?")
        return _preset(raw, default_prompts(raw), None, id, now, name)
    if len(prompts) > PRESET_PROMPTS:
        raise FormatError("preset-too-many-prompts", f"a preset has at most {PRESET_PROMPTS} prompts")
    order = choose_order(raw, [prompt_identifier(item, index) for index, item in enumerate(prompts)])
    return _preset(raw, read_prompts(prompts, order), order, id, now, name)


def _preset(
    raw: Mapping[str, Json],
    prompts: tuple[PresetPrompt, ...],
    order: Mapping[str, Json] | None,
    id: str,
    now: str,
    name: str | None,
) -> Preset:
    return Preset(
        id=id,
        name=short_name(raw.get("name") if name is None else name, "Imported preset"),
        created_at=now,
        updated_at=now,
        source=PresetSource(
            format="sillytavern-chat-completion",
            imported_at=now,
            selected_order_character_id=None if order is None else order.get("character_id"),
            raw=raw,
        ),
        system_prompt_mode="append",
        sampling=read_sampling(raw),
        prompts=prompts,
    )


def blank_preset(*, id: str, now: str, name: str | None = None) -> Preset:
    """A new preset with one empty main prompt."""
    main = PresetPrompt(
        identifier="main",
        name="Main prompt",
        role="system",
        content="",
        enabled=True,
        marker=False,
        system_prompt=False,
    )
    return Preset(
        id=id,
        name=short_name(name, "Untitled preset"),
        created_at=now,
        updated_at=now,
        source=PresetSource(format="dsh-tavern", created_at=now),
        system_prompt_mode="append",
        sampling=Sampling(temperature=1),
        prompts=(main,),
    )


def _root(given: str | Json) -> Mapping[str, Json]:
    raw = given
    if isinstance(given, str):
        try:
            raw = load_json(given)
        except FormatError as error:
            if error.slug != "bad-json":
                raise
            raise FormatError("preset-bad-json", f"the preset is not JSON: {error.message}") from error
    if not isinstance(raw, dict):
        raise FormatError("preset-not-object", "a preset is a JSON object")
    return raw


def read_sampling(raw: Mapping[str, Json]) -> Sampling:
    """The sampling values of a raw preset. Source: spec/resources §2.3."""
    limit = raw.get("openai_max_tokens")
    temperature = raw.get("temperature")
    verbatim = {key: raw[key] for key in SAMPLING_MEMBERS if key in raw}
    if isinstance(raw.get("stop"), list):
        verbatim["stop"] = raw["stop"]
    return Sampling(
        temperature=temperature if is_number(temperature) else None,
        max_tokens=positive_integer(raw.get("max_tokens") if limit is None else limit),
        reasoning_effort=reasoning_effort(raw.get("reasoning_effort")),
        stop=stop_strings(raw.get("stop")),
        st=verbatim,
    )


def reasoning_effort(value: Json) -> str | None:
    """A usable effort word, or None."""
    if not isinstance(value, str) or not trim(value):
        return None
    return None if is_too_long(value, REASONING_EFFORT_UNITS) or has_control_characters(value) else value


def stop_strings(value: Json) -> tuple[str, ...] | None:
    """The first 16 non-empty strings of a list; None for anything but a list."""
    if not isinstance(value, list):
        return None
    return tuple([item for item in value if isinstance(item, str) and item][:STOP_STRINGS])


def prompt_identifier(prompt: Json, index: int) -> str:
    """A prompt's identifier, or ``prompt-<n>`` for a blank one."""
    given = prompt.get("identifier") if isinstance(prompt, dict) else None
    return (trim(given) if isinstance(given, str) else "") or f"prompt-{index + 1}"


def prompt_role(value: Json) -> Role:
    """A prompt's role; everything unknown speaks as the user."""
    return _ROLES.get(value, "user") if isinstance(value, str) else "user"


def choose_order(raw: Mapping[str, Json], identifiers: Iterable[str]) -> Mapping[str, Json] | None:
    """The prompt order in force: that of 100001, else the one that lists most known prompts.

    Source: spec/resources §2.4.
    """
    given = raw.get("prompt_order")
    listed = given if isinstance(given, list) else []
    orders: list[Mapping[str, Json]] = [
        item for item in listed if isinstance(item, dict) and isinstance(item.get("order"), list)
    ]
    for order in orders:
        if coerced_number(order.get("character_id")) == ACTIVE_ORDER:
            return order
    known = set(identifiers)
    return max(orders, key=lambda order: sum(_names(entry) in known for entry in order["order"]), default=None)


def _names(entry: Json) -> str | None:
    identifier = entry.get("identifier") if isinstance(entry, dict) else None
    return identifier if isinstance(identifier, str) else None


def read_prompts(prompts: list[Json], order: Mapping[str, Json] | None) -> tuple[PresetPrompt, ...]:
    """The prompts in the order in force, then those it does not name. Source: spec/resources §2.4."""
    read = [_prompt(item if isinstance(item, dict) else {}, index) for index, item in enumerate(prompts)]
    if order is None:
        return tuple([_with_enabled(prompt, _enabled_alone(prompt)) for prompt in read])
    last = {prompt.identifier: prompt for prompt in read}
    emitted: dict[str, PresetPrompt] = {}
    for entry in order["order"]:
        name = _names(entry)
        if name in last and name not in emitted:
            emitted[name] = _with_enabled(last[name], entry.get("enabled") is True)
    rest = [
        _with_enabled(prompt, prompt.st.get("enabled") is True) for prompt in read if prompt.identifier not in emitted
    ]
    return (*emitted.values(), *rest)


def _enabled_alone(prompt: PresetPrompt) -> bool:
    given = prompt.st.get("enabled")
    return given if isinstance(given, bool) else not prompt.marker and bool(trim(prompt.content))


def _with_enabled(prompt: PresetPrompt, enabled: bool) -> PresetPrompt:
    return attrs.evolve(prompt, enabled=enabled)


def _prompt(raw: Mapping[str, Json], index: int) -> PresetPrompt:
    content = raw.get("content")
    position = raw.get("injection_position")
    depth = raw.get("injection_depth")
    return PresetPrompt(
        identifier=prompt_identifier(raw, index),
        name=short_name(raw.get("name"), f"Prompt {index + 1}"),
        role=prompt_role(raw.get("role")),
        content=content if isinstance(content, str) else "",
        enabled=False,
        marker=raw.get("marker") is True,
        system_prompt=raw.get("system_prompt") is True,
        injection_position=position if is_number(position) else None,
        injection_depth=depth if is_number(depth) else None,
        st=raw,
    )
