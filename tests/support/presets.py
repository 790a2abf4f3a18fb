"""Presets for tests."""

from typing import Any

from tapster.engine.formats.presets import Preset, parse_preset

NOW = "2026-01-01T00:00:00.000Z"


def preset(*prompts: dict[str, Any], **members: Any) -> Preset:
    """A preset with these prompts, all on unless one says otherwise."""
    listed = [{"enabled": True, **prompt} for prompt in prompts]
    return parse_preset({"name": "test", "prompts": listed, **members}, id="p", now=NOW)
