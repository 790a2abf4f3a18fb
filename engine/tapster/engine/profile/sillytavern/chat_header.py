"""What a chat file's header says to the renderer: the author's note and the timed effects of world info."""

from collections.abc import Mapping

from tapster.engine.activation.sillytavern import TimedEffect, TimedState
from tapster.engine.ecma import Json, is_number

from .model import DEFAULT_DEPTH, ROLES, AuthorsNote, Position, Role


def authors_note(metadata: Mapping[str, Json]) -> AuthorsNote:
    """The chat's author's note; empty when it has none."""
    return AuthorsNote(
        text_of(metadata.get("note_prompt")),
        whole_of(metadata.get("note_position"), Position.IN_CHAT),
        whole_of(metadata.get("note_depth"), DEFAULT_DEPTH),
        role_of(metadata.get("note_role")),
        whole_of(metadata.get("note_interval"), 1),
    )


def timed_effects(metadata: Mapping[str, Json]) -> TimedState:
    """The sticky and cooldown effects a chat keeps between turns."""
    stored = metadata.get("timedWorldInfo")
    kept: Mapping[str, Json] = stored if isinstance(stored, dict) else {}
    return TimedState(_effects(kept.get("sticky")), _effects(kept.get("cooldown")))


def _effects(value: Json) -> dict[str, TimedEffect]:
    stored: Mapping[str, Json] = value if isinstance(value, dict) else {}
    return {
        name: TimedEffect(int(item["hash"]), int(item["start"]), item["end"], item.get("protected") is True)
        for name, item in stored.items()
        if isinstance(item, dict) and all(is_number(item.get(key)) for key in ("hash", "start", "end"))
    }


def text_of(value: Json) -> str:
    """A string, else the empty one."""
    return value if isinstance(value, str) else ""


def whole_of(value: Json, default: int) -> int:
    """A whole number, else the default."""
    return int(value) if is_number(value) else default


def role_of(value: Json) -> Role:
    """A role by number or word; anything else is the system's."""
    if is_number(value) and 0 <= value < len(ROLES):
        return ROLES[int(value)]
    return next((role for role in ROLES if role == value), "system")
