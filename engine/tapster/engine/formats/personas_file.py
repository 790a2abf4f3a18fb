"""SillyTavern's persona backups, and a single persona of the contract.

Source: issue "personas"; the backup holds avatar file names, names and descriptions.
"""

import re
from collections.abc import Mapping

from tapster.engine.ecma import Json, trim, utf16_slice
from tapster.engine.errors import FormatError
from tapster.engine.limits import PERSONA_DESCRIPTION_UNITS, RESOURCE_NAME_UNITS

from .fields import is_resource_id
from .notes import Notes
from .personas import Persona, create_persona

_CONTROL = re.compile("[\x00-\x1f\x7f]")
MOST = 1_000


def read_personas(raw: Mapping[str, Json], id: str, notes: Notes) -> tuple[Persona, ...]:
    """The personas of a file; those of a backup get ids ``<id>-1``, ``<id>-2`` …

    Raises:
        FormatError: it is a single persona that breaks a rule, or a backup without one.
    """
    if "personas" not in raw:
        return (
            create_persona({"id": id, **{key: raw[key] for key in raw if key != "id" or is_resource_id(raw[key])}}),
        )
    names = raw["personas"] if isinstance(raw["personas"], dict) else {}
    given = raw.get("persona_descriptions")
    descriptions = given if isinstance(given, dict) else {}
    if len(names) > MOST:
        raise FormatError("too-many-personas", f"a backup holds at most {MOST} personas; this one has {len(names)}")
    found = []
    for number, (avatar, name) in enumerate(names.items(), 1):
        title = _name(name)
        if title:
            found.append(Persona(f"{id}-{number}", title, _description(descriptions.get(avatar))))
        else:
            notes.add("type", f"the persona of {ascii(avatar)[:60]} has no name; it was left out", f"personas.{avatar}")
    if not found:
        raise FormatError("no-personas", "the backup holds no persona")
    return tuple(found)


def _name(value: Json) -> str:
    return trim(utf16_slice(_CONTROL.sub("", value), 0, RESOURCE_NAME_UNITS)) if isinstance(value, str) else ""


def _description(value: Json) -> str:
    text = value.get("description") if isinstance(value, dict) else value
    return utf16_slice(text, 0, PERSONA_DESCRIPTION_UNITS) if isinstance(text, str) else ""
