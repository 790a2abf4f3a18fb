"""The parts a profile is made of, and what is remarked about it.

Source: spec/loader §8, spec/trace §3.
"""

from collections.abc import Iterable
from typing import Final, Literal

import attrs

from tapster.engine.ecma import Json
from tapster.engine.trace.sections import PartSource

PROFILE_SECTION: Final = "pmp-dsh-tavern:profile"
PROFILE_ORDER: Final = 10


@attrs.frozen
class Part:
    """One piece of the profile text and its contributors, the placing one first."""

    text: str
    sources: tuple[PartSource, ...]


@attrs.frozen
class Diagnostic:
    """One remark about a profile or what it was made of."""

    code: str
    severity: Literal["info", "warning", "error"]
    message: str
    details: tuple[tuple[str, Json], ...] = ()

    def to_json(self) -> Json:
        """The diagnostic as audits and API answers hold it."""
        return {"code": self.code, "severity": self.severity, "message": self.message, **dict(self.details)}


def joined(parts: Iterable[Part]) -> str:
    """The profile text: parts separated by a blank line."""
    return "\n\n".join(part.text for part in parts)
