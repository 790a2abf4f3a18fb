"""What a session needs from below: the library, a sink for traces, and engine threads."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import attrs

from tapster.actors.store.values import ResourceUse, SessionKey
from tapster.engine.activation import ActivationSettings, SessionState
from tapster.engine.activation.tavern import BookSelection, EmbeddedBook, LibraryBook
from tapster.engine.ecma import Json
from tapster.engine.errors import TapsterError
from tapster.engine.policy import RpState, Selection
from tapster.engine.profile import ResolvedResources
from tapster.engine.profile.sillytavern import ScanResources

from .lease import Revisions


@attrs.frozen(eq=False)
class Bound:
    """Everything a session has bound, resolved at one moment.

    Attributes:
        books: which book ids are effective and who bound them.
        library_books: the effective books by id; an error where one can't be read; absent where there is none.
        embedded: the bound card's own book.
        settings: how the session activates its books.
        scan: the books and more for mode ``sillytavern``, which leaves ``library_books`` and ``embedded`` empty; None
            in mode ``tavern``.
    """

    selection: Selection
    resources: ResolvedResources
    books: BookSelection
    library_books: Mapping[str, LibraryBook | TapsterError]
    embedded: EmbeddedBook | None = None
    policy_section: str = ""
    follow_character: bool = True
    settings: ActivationSettings = attrs.field(factory=ActivationSettings)
    scan: ScanResources | None = None
    uses: tuple[ResourceUse, ...] = ()


class SessionLibrary(Protocol):
    """The library as sessions ask it."""

    async def ensure_selection(self, key: SessionKey, parent: SessionKey | None, cut: int = 0) -> Selection:
        """Restore a session's selection, or freeze one: the parent's, else the defaults.

        With it come the parent's activation settings, and its states before the seq ``cut``.

        Raises:
            StoreError: it can't be read or written; the session doesn't start.
        """

    async def state(self, key: SessionKey, seq: int) -> SessionState:
        """What requests left behind up to a host seq."""

    async def save_state(self, key: SessionKey, seq: int, state: SessionState) -> None:
        """Make a state durable under the seq of the next host event."""

    async def save_rp(self, key: SessionKey, state: RpState) -> None:
        """Make a session's RP state durable."""

    async def stored_rp(self, key: SessionKey) -> RpState:
        """A session's stored RP state."""

    async def ancestors_rp(self, key: SessionKey) -> tuple[RpState, ...]:
        """The stored RP states along the session's line of parents."""

    async def bound(self, key: SessionKey) -> Bound:
        """What a session has bound, parsed and compiled."""

    def forget(self, key: SessionKey) -> None:
        """A session sleeps: nobody compares its revisions until it wakes."""

    def revisions(self, key: SessionKey) -> Revisions:
        """The published counters that an assembly of this session depends on."""


class TraceSink(Protocol):
    """Where trace records go; it never makes a request wait or fail (design §4 rule 8)."""

    def put(self, key: SessionKey, record: Json, uses: Sequence[ResourceUse]) -> None:
        """Queue a record; a newer one of the same capture takes its place."""

    def put_audits(self, key: SessionKey, audits: Sequence[Json]) -> None:
        """Queue finished audits."""
