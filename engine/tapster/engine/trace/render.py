"""The official assembly as it is recorded: rendered once, empty parts dropped, hashed.

Source: spec/trace §4.1.
"""

import re
from collections.abc import Mapping, Sequence

import attrs

from tapster.engine.ecma import Json, utf16_length

from .digest import count, digest
from .sections import NamedPart, recorded_source

SECTION_SEPARATOR = "\n\n"
_PLACEHOLDER = re.compile(r"\{\{([^{}]*)\}\}")
_VARIABLE = re.compile(r"[a-z][a-z0-9_]*")


@attrs.frozen
class AssemblyPart:
    """A section or context of the official assembly, before interpolation."""

    name: str
    text: str
    interpolate: bool = True


@attrs.frozen
class OfficialAssembly:
    """What the host's prompt waterfall returned to this plugin."""

    sections: tuple[AssemblyPart, ...] = ()
    contexts: tuple[AssemblyPart, ...] = ()
    variables: Mapping[str, Json] = attrs.Factory(dict)

    @classmethod
    def from_json(cls, value: Json) -> "OfficialAssembly":
        """Read the host's ``{sections, contexts, variables}``."""

        def parts(key: str) -> tuple[AssemblyPart, ...]:
            return tuple(
                AssemblyPart(str(item.get("name")), str(item.get("text")), item.get("interpolate") is not False)
                for item in value.get(key) or []
            )

        return cls(parts("sections"), parts("contexts"), dict(value.get("variables") or {}))


@attrs.frozen
class RecordedAssembly:
    """The parts of an assembly without their texts, and the hash of the whole."""

    sections: tuple[dict[str, Json], ...]
    contexts: tuple[dict[str, Json], ...]
    assembly_hash: str


class UnresolvedVariable(Exception):
    """A placeholder that no variable answers; only ever caught in this module."""


def interpolate(text: str, variables: Mapping[str, Json]) -> str:
    """Replace each ``{{key}}`` once; replacements are not scanned again.

    Raises:
        UnresolvedVariable: for a key that is malformed, missing or not a string.
    """

    def value_of(match: re.Match[str]) -> str:
        key = match.group(1)
        value = variables.get(key) if _VARIABLE.fullmatch(key) else None
        if not isinstance(value, str):
            raise UnresolvedVariable
        return value

    return _PLACEHOLDER.sub(value_of, text)


def record_assembly(assembly: OfficialAssembly | None, known: Sequence[NamedPart] = ()) -> RecordedAssembly | None:
    """Render and hash an assembly; None when there is none or one of its variables can't be resolved."""
    if assembly is None:
        return None
    try:
        sections = _rendered(assembly.sections, assembly.variables)
        contexts = _rendered(assembly.contexts, assembly.variables)
    except UnresolvedVariable:
        return None
    by_name = {(part.name, part.text): part for part in known}
    whole = SECTION_SEPARATOR.join(text for _, _, text in sections)
    offset = 0
    recorded = []
    for index, part, text in sections:
        entry = _recorded_part(index, part.name, text, by_name.get((part.name, part.text)))
        recorded.append({**entry, "offsetUtf16": offset})
        offset += utf16_length(text) + len(SECTION_SEPARATOR)
    return RecordedAssembly(
        tuple(recorded),
        tuple(_recorded_part(index, part.name, text, None) for index, part, text in contexts),
        digest(whole),
    )


def _rendered(parts: Sequence[AssemblyPart], variables: Mapping[str, Json]) -> list[tuple[int, AssemblyPart, str]]:
    texts = [interpolate(part.text, variables) if part.interpolate else part.text for part in parts]
    return [(index, part, text) for index, (part, text) in enumerate(zip(parts, texts, strict=True)) if text]


def _recorded_part(index: int, name: str, text: str, known: NamedPart | None) -> dict[str, Json]:
    return {
        "name": name,
        "index": index,
        **count(text).to_json(),
        "hash": digest(text),
        "provenance": known.provenance if known else "unknown",
        "sources": [recorded_source(source) for source in known.sources] if known else [],
    }
