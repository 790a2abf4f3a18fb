"""Named sections: how the loader's parts are called and which sources they are made of.

Source: spec/trace §3.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Literal

import attrs

from tapster.engine.ecma import Json

from .digest import count, digest

SECTION_PREFIX = "pmp-dsh-tavern:part:"
ORDINAL_DIGITS = 4
SECTION_CONTRIBUTORS = "section-contributors"
TEXT_NOT_STORED = "not-stored"
_UNSAFE = re.compile(r"[^A-Za-z0-9_.:-]")

Relationship = Literal["input", "placement-only"]


@attrs.frozen
class PartSource:
    """A resource field that went into a part; ``text`` never reaches a store.

    Attributes:
        role: role that a preset prompt asked for; the contribution is still a system section.
        entry_id: normalised uid of a world-book entry, None when it has none.
        qualified_entry_id: the loader's own id of that entry.
    """

    kind: str
    field: str
    text: str = ""
    resource_id: str | None = None
    resource_revision: str | None = None
    identifier: str | None = None
    role: str | None = None
    relationship: Relationship = "input"
    is_entry: bool = False
    entry_id: str | None = None
    qualified_entry_id: str | None = None
    entry_name: str | None = None

    def to_json(self) -> dict[str, Json]:
        """The source as the contract's member names, with its text."""
        value: dict[str, Json] = {
            "kind": self.kind,
            "resourceId": self.resource_id,
            "resourceRevision": self.resource_revision,
            "field": self.field,
        }
        if self.identifier is not None:
            value["identifier"] = self.identifier
        if self.role is not None:
            value["role"] = self.role
        value["relationship"] = self.relationship
        if self.is_entry:
            value["entryId"] = self.entry_id
            value["qualifiedEntryId"] = self.qualified_entry_id
        if self.entry_name is not None:
            value["entryName"] = self.entry_name
        return {**value, **count(self.text).to_json(), "text": self.text}


@attrs.frozen
class NamedPart:
    """One host section that the loader publishes."""

    name: str
    text: str
    sources: tuple[Json, ...] = ()
    provenance: str = SECTION_CONTRIBUTORS


def section_name(ordinal: int, sources: Sequence[PartSource]) -> str:
    """The name of the part at ``ordinal``, after its first source."""
    kind, field = (sources[0].kind, sources[0].field) if sources else ("generated", "header")
    return f"{SECTION_PREFIX}{ordinal:0{ORDINAL_DIGITS}d}:{_UNSAFE.sub('_', f'{kind}:{field}')}"


def name_parts(parts: Iterable[tuple[str, Sequence[PartSource]]]) -> tuple[NamedPart, ...]:
    """The non-empty parts of an assembly, numbered and named in order."""
    kept = [(text, sources) for text, sources in parts if text]
    return tuple(
        NamedPart(section_name(ordinal, sources), text, tuple(source.to_json() for source in sources))
        for ordinal, (text, sources) in enumerate(kept)
    )


def recorded_source(source: Json) -> dict[str, Json]:
    """A source as a record keeps it: its text replaced by its hash."""
    kept = {key: value for key, value in source.items() if key not in {"text", "hash", "textStatus"}}
    text = source.get("text")
    given = source.get("hash")
    if isinstance(text, str):
        kept["hash"] = digest(text)
    else:
        kept["hash"] = given if isinstance(given, str) else digest("")
    kept["textStatus"] = TEXT_NOT_STORED
    return kept
