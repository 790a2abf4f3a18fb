"""What the store gives and takes: keys, rows and their revisions."""

from typing import Final, Literal, TypeAlias, final

import attrs

from tapster.engine.ecma import Json

ResourceKind: TypeAlias = Literal["preset", "character", "user", "world-book"]
RESOURCE_KINDS: Final[tuple[ResourceKind, ...]] = ("preset", "character", "user", "world-book")
HOME_HOST: Final = "embedded"
"""The host whose sessions the contract's own files hold."""


@final
@attrs.frozen
class SessionKey:
    """A session of a host; two hosts may both have ``s1``."""

    host: str
    session: str

    def __str__(self) -> str:
        return f"{self.host}/{self.session}"


@final
@attrs.frozen
class DocumentKey:
    """A small JSON document: its collection, its name there, and the host it belongs to ("" = all)."""

    collection: str
    name: str
    scope: str = ""

    def __str__(self) -> str:
        place = f"{self.collection}/{self.name}"
        return f"{place} of host {self.scope}" if self.scope else place


@final
@attrs.frozen
class Document:
    """A stored document; ``revision`` is opaque and changes with every write of other content.

    ``updated_at`` is in epoch milliseconds.
    """

    key: DocumentKey
    value: Json
    revision: str
    updated_at: int


@final
@attrs.frozen
class AnyBase:
    """The writer overwrites whatever is there."""


ANY_BASE: Final = AnyBase()
Base: TypeAlias = str | AnyBase | None
"""The revision a writer last saw; None = it saw that there was no document; ``ANY_BASE`` = last writer wins."""


@final
@attrs.frozen
class ResourceHead:
    """A resource without its body; times in epoch milliseconds, sizes in bytes of the stored document.

    Attributes:
        revision: hex SHA-256 of the stored document.
        original_sha256: of the imported file's bytes, None when nothing was imported.
    """

    kind: ResourceKind
    id: str
    name: str
    revision: str
    size_bytes: int
    created_at: int
    updated_at: int
    original_sha256: str | None = None
    has_cover: bool = False


@final
@attrs.frozen
class StoredResource:
    """A resource with its document."""

    head: ResourceHead
    document: Json


@final
@attrs.frozen
class ResourceUse:
    """A resource revision that a trace names; it is kept as long as the trace."""

    kind: ResourceKind
    id: str
    revision: str


@final
@attrs.frozen
class SessionHead:
    """A session of the embedded host: its header, the next event's seq, times in epoch milliseconds."""

    key: SessionKey
    header: Json
    next_seq: int
    created_at: int
    updated_at: int


@final
@attrs.frozen
class Cleared:
    """What a deletion took out of other state.

    Attributes:
        sessions: whose selection changed.
        relations: how many relations changed or went.
    """

    sessions: tuple[SessionKey, ...] = ()
    relations: int = 0


@final
@attrs.frozen
class Warned:
    """A start that went on without something; ``code`` is stable, ``subject`` names the document."""

    code: str
    subject: str
    message: str
