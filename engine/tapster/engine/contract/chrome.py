"""The mode of the page: the host's own, or play.

Source: spec/http §7.
"""

from typing import Final

import attrs

from tapster.engine.ecma import Json
from tapster.engine.errors import RequestError

MODES: Final = ("native", "play")
INITIAL_REVISION: Final = "initial"


@attrs.frozen
class Chrome:
    """The mode and the opaque revision of its last real change."""

    mode: str = "native"
    revision: str = INITIAL_REVISION

    def to_json(self) -> dict[str, Json]:
        """The document under its contract names."""
        return {"schemaVersion": 1, "mode": self.mode, "revision": self.revision}


def check_chrome(body: Json) -> Chrome:
    """The mode of a document or a request.

    Raises:
        RequestError: another mode, or a member that isn't known.
    """
    if not isinstance(body, dict):
        raise RequestError("the mode must be a JSON object")
    unknown = sorted(set(body) - {"schemaVersion", "mode", "revision"})
    if unknown:
        raise RequestError(f"unknown members {', '.join(unknown)[:120]}; known are mode and revision")
    mode, revision = body.get("mode"), body.get("revision")
    if mode not in MODES:
        raise RequestError(f"{mode!r:.60} is not a mode; it is one of {', '.join(MODES)}")
    return Chrome(str(mode), revision if isinstance(revision, str) and revision else INITIAL_REVISION)


def changed_mode(before: Chrome, wanted: Chrome, revision: str) -> Chrome:
    """The mode after a request; the same mode keeps its revision."""
    return before if wanted.mode == before.mode else Chrome(wanted.mode, revision)
