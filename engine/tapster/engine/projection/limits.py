"""How much of the pending input and of the history a projection keeps.

Source: spec/activation §3.1.
"""

from collections.abc import Mapping

import attrs

from tapster.engine import limits
from tapster.engine.ecma import Json, is_safe_integer


@attrs.frozen
class ProjectionLimits:
    """The four bounds of one projection; characters are UTF-16 code units."""

    max_scan_characters: int = limits.DEFAULT_SCAN_CHARACTERS
    max_scan_messages: int = limits.DEFAULT_SCAN_MESSAGES
    max_queued_characters: int = limits.DEFAULT_QUEUED_CHARACTERS
    max_queued_messages: int = limits.DEFAULT_QUEUED_MESSAGES

    @classmethod
    def from_options(cls, options: Mapping[str, Json]) -> "ProjectionLimits":
        """The limits that options ask for: odd values fall back to the default, larger ones are clamped."""
        return cls(
            bounded_option(options, "maxScanCharacters", limits.DEFAULT_SCAN_CHARACTERS, limits.MAX_SCAN_CHARACTERS),
            bounded_option(options, "maxScanMessages", limits.DEFAULT_SCAN_MESSAGES, limits.MAX_SCAN_MESSAGES),
            bounded_option(
                options, "maxQueuedCharacters", limits.DEFAULT_QUEUED_CHARACTERS, limits.MAX_QUEUED_CHARACTERS
            ),
            bounded_option(options, "maxQueuedMessages", limits.DEFAULT_QUEUED_MESSAGES, limits.MAX_QUEUED_MESSAGES),
        )


def bounded_option(options: Mapping[str, Json], name: str, default: int, maximum: int) -> int:
    """A positive integer option, its default when it is anything else, never above the maximum."""
    value: Json = options.get(name)
    if not is_safe_integer(value) or value <= 0:
        return default
    return min(int(value), maximum)
