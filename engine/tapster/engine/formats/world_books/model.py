"""What a world book is once it has been read.

Source: spec/resources §6.3.
"""

from collections.abc import Mapping
from typing import Literal

import attrs

from tapster.engine.ecma import Json
from tapster.engine.formats.documents import NULLABLE

BookFormat = Literal["sillytavern-world-info", "character-book-v2"]
EntryContainer = Literal["object-map", "array"]
Position = Literal[
    "before_character_definition",
    "after_character_definition",
    "before_author_note",
    "after_author_note",
    "at_depth",
    "before_example_messages",
    "after_example_messages",
    "outlet",
]
Role = Literal["system", "user", "assistant"]
SelectiveLogic = Literal["and_any", "not_all", "not_any", "and_all"]
Severity = Literal["error", "warning"]


@attrs.frozen
class Diagnostic:
    """One finding in a world book; ``path`` is a JSON path, ``value`` what stood there (None when not given)."""

    severity: Severity
    code: str
    path: str
    message: str
    value: Json = None


@attrs.frozen
class Group:
    """Inclusion group of an entry."""

    name: str = ""
    override: bool = False
    weight: float = 100


@attrs.frozen
class Recursion:
    """How an entry takes part in recursion; ``delay_until`` is the raw value (false, true or a level)."""

    exclude: bool = False
    prevent: bool = False
    delay_until: Json = False


@attrs.frozen
class TimedEffects:
    """Sticky, cooldown and delay, in messages; None is off."""

    sticky: int | None = attrs.field(default=None, metadata=NULLABLE)
    cooldown: int | None = attrs.field(default=None, metadata=NULLABLE)
    delay: int | None = attrs.field(default=None, metadata=NULLABLE)


@attrs.frozen
class MatchSources:
    """Which texts beside the chat an entry's keys are looked for in."""

    persona_description: bool = False
    character_description: bool = False
    character_personality: bool = False
    character_depth_prompt: bool = False
    scenario: bool = False
    creator_notes: bool = False


@attrs.frozen
class CharacterFilter:
    """The characters an entry is limited to, or kept from (``is_exclude``)."""

    is_exclude: bool = False
    names: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    raw: Json = None


@attrs.frozen
class EntrySource:
    """Where an entry stood: map key or index as text, place in reading order, and the raw entry."""

    key: str
    index: int
    raw: Mapping[str, Json] = attrs.field(factory=dict)


@attrs.frozen
class WorldBookEntry:
    """One entry, normalised from either format; None in a nullable field is "the book does not say"."""

    uid: int | str
    source: EntrySource
    keys: tuple[str, ...] = ()
    secondary_keys: tuple[str, ...] = ()
    comment: str = ""
    content: str = ""
    enabled: bool = True
    constant: bool = False
    selective: bool = True
    vectorized: bool = False
    insertion_order: float = 100
    position: Position = "before_character_definition"
    depth: int = 4
    role: Role = "system"
    selective_logic: SelectiveLogic = "and_any"
    probability: float = 100
    use_probability: bool = True
    scan_depth: int | None = attrs.field(default=None, metadata=NULLABLE)
    case_sensitive: bool | None = attrs.field(default=None, metadata=NULLABLE)
    match_whole_words: bool | None = attrs.field(default=None, metadata=NULLABLE)
    use_group_scoring: bool | None = attrs.field(default=None, metadata=NULLABLE)
    display_index: float = 0
    outlet_name: str = ""
    group: Group = attrs.field(factory=Group)
    recursion: Recursion = attrs.field(factory=Recursion)
    effects: TimedEffects = attrs.field(factory=TimedEffects)
    automation_id: str = ""
    ignore_budget: bool = False
    match_sources: MatchSources = attrs.field(factory=MatchSources)
    triggers: tuple[str, ...] = ()
    character_filter: CharacterFilter | None = attrs.field(default=None, metadata=NULLABLE)
    extensions: Mapping[str, Json] = attrs.field(factory=dict)


@attrs.frozen
class BookSettings:
    """Scan settings a book brings along; None is unset. ``token_budget`` is in tokens."""

    scan_depth: int | None = None
    token_budget: int | None = None
    recursive_scanning: bool | None = None
    extensions: Mapping[str, Json] = attrs.field(factory=dict)


@attrs.frozen
class BookSource:
    """The format a book was read from and its whole raw JSON."""

    format: BookFormat
    entry_container: EntryContainer
    raw: Mapping[str, Json] = attrs.field(factory=dict)


@attrs.frozen
class WorldBook:
    """A world book, standalone or embedded in a card: same input, same value, no ids or times of its own."""

    name: str
    description: str
    settings: BookSettings
    entries: tuple[WorldBookEntry, ...]
    source: BookSource
    diagnostics: tuple[Diagnostic, ...] = ()
    schema_version: Literal[1] = 1
    kind: Literal["world-book"] = "world-book"


@attrs.frozen
class BookFile:
    """Which file a stored world book came from."""

    format: BookFormat
    file_name: str
    byte_length: int
    sha256: str


@attrs.frozen
class WorldBookDocument:
    """A world book as the library stores it. Times are ISO 8601 in UTC with milliseconds."""

    id: str
    name: str
    created_at: str
    updated_at: str
    source: BookFile
    book: WorldBook
    schema_version: Literal[1] = 1
    kind: Literal["world-book-document"] = "world-book-document"
