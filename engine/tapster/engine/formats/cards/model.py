"""What a character card is once it has been read.

Source: spec/resources §3.2.
"""

from collections.abc import Mapping
from typing import Literal

import attrs

from tapster.engine.ecma import Json
from tapster.engine.formats.documents import NULLABLE

CardFormat = Literal["sillytavern-v1", "sillytavern-v2", "character-card-v3"]
CardContainer = Literal["json", "png", "charx"]


@attrs.frozen
class CardData:
    """The card's own fields, untrimmed; what it does not know stays in ``CardSource.raw``."""

    name: str = ""
    nickname: str = ""
    description: str = ""
    personality: str = ""
    scenario: str = ""
    first_message: str = ""
    message_example: str = ""
    creator_notes: str = ""
    system_prompt: str = ""
    post_history_instructions: str = ""
    alternate_greetings: tuple[str, ...] = ()
    group_only_greetings: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    creator: str = ""
    character_version: str = ""
    character_book: Mapping[str, Json] | None = attrs.field(default=None, metadata=NULLABLE)
    assets: tuple[Json, ...] = ()
    extensions: Mapping[str, Json] = attrs.field(factory=dict)


@attrs.frozen
class CardSource:
    """Where a card came from; ``raw`` is its whole JSON."""

    format: CardFormat
    container: CardContainer
    imported_at: str
    file_name: str
    raw: Mapping[str, Json]
    spec_version: str | None = None
    sha256: str | None = None
    byte_length: int | None = None
    png_keyword: str | None = None


@attrs.frozen
class Finding:
    """One remark about a card: what is odd or what Tapster passes through, and where."""

    code: str
    message: str
    path: str


@attrs.frozen
class Compatibility:
    """What was noticed while reading a card."""

    warnings: tuple[Finding, ...] = ()
    unsupported_features: tuple[Finding, ...] = ()
    unknown_macro_names: tuple[str, ...] = ()


@attrs.frozen
class Card:
    """A character card. Times are ISO 8601 in UTC with milliseconds."""

    id: str
    name: str
    created_at: str
    updated_at: str
    source: CardSource
    data: CardData
    compatibility: Compatibility = attrs.field(factory=Compatibility)
    schema_version: Literal[1] = 1
