"""The names that macros insert.

Source: spec/loader §7.
"""

from collections.abc import Iterable, Mapping

from tapster.engine.ecma import Json, trim
from tapster.engine.text.tavern_macros import DEFAULT_CHARACTER, DEFAULT_USER, MacroContext

from .inputs import ProfileCharacter, ProfileUser


def macro_context(
    host: Mapping[str, Json], character: ProfileCharacter | None, user: ProfileUser | None
) -> MacroContext:
    """Names and last messages for one assembly.

    Args:
        host: the host's macro context: ``user``, ``character``, ``lastUserMessage``, ``lastAssistantMessage``.
    """
    names: list[Json] = [host.get("character")]
    if character is not None:
        names += [character.data.get("nickname"), character.data.get("name"), character.name]
    return MacroContext(
        user=user.name if user is not None else _first((host.get("user"),), DEFAULT_USER),
        character=_first(names, DEFAULT_CHARACTER),
        last_user_message=_text(host.get("lastUserMessage")),
        last_character_message=_text(host.get("lastAssistantMessage")),
    )


def _first(values: Iterable[Json], default: str) -> str:
    return next((value for value in values if isinstance(value, str) and trim(value)), default)


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""
