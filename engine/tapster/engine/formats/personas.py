"""Personas: who the user is in a chat (the contract calls the resource "user").

Source: spec/resources §5.
"""

import attrs

from tapster.engine.ecma import Json, is_record, trim
from tapster.engine.errors import FormatError
from tapster.engine.limits import PERSONA_DESCRIPTION_UNITS, RESOURCE_NAME_UNITS

from .fields import check_resource_id, has_control_characters, is_too_long

_MEMBERS = ("id", "name", "description")


@attrs.frozen
class Persona:
    """A persona; the description is kept untrimmed."""

    id: str
    name: str
    description: str = ""


def create_persona(given: Json, *, generated_id: str | None = None) -> Persona:
    """The persona that a JSON object describes; ``generated_id`` stands in for a missing id.

    Raises:
        FormatError: ``not-object``, ``unknown-field``, ``bad-user-id``, ``field-not-string``, ``too-long``,
            ``empty-name`` or ``control-characters``.
    """
    _check_members(given, _MEMBERS)
    return Persona(
        id=check_resource_id(given.get("id", generated_id), "bad-user-id"),
        name=_name(given.get("name")),
        description=_description(given.get("description", "")),
    )


def update_persona(persona: Persona, patch: Json) -> Persona:
    """The persona with a new name, description or both.

    Raises:
        FormatError: as ``create_persona``; an id is an ``unknown-field`` here.
    """
    _check_members(patch, ("name", "description"))
    return attrs.evolve(
        persona,
        name=_name(patch["name"]) if "name" in patch else persona.name,
        description=_description(patch["description"]) if "description" in patch else persona.description,
    )


def _check_members(given: Json, allowed: tuple[str, ...]) -> None:
    if not is_record(given):
        raise FormatError("not-object", "a persona is a JSON object")
    unknown = [key for key in given if key not in allowed]
    if unknown:
        raise FormatError("unknown-field", f"a persona has no field {ascii(unknown[0])[:80]}; use {', '.join(allowed)}")


def _name(value: Json) -> str:
    text = _text(value, "name", RESOURCE_NAME_UNITS)
    if not trim(text):
        raise FormatError("empty-name", "a persona needs a name")
    if has_control_characters(trim(text)):
        raise FormatError("control-characters", "a persona's name has no control characters")
    return trim(text)


def _description(value: Json) -> str:
    return _text(value, "description", PERSONA_DESCRIPTION_UNITS)


def _text(value: Json, field: str, limit: int) -> str:
    if not isinstance(value, str):
        raise FormatError("field-not-string", f"a persona's {field} is a string")
    if is_too_long(value, limit):
        raise FormatError("too-long", f"a persona's {field} has at most {limit} characters")
    return value
