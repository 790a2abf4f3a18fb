"""What the parts of the library share: heads, parsed values, counters, and the way to the store."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any, ParamSpec, TypeVar, final

import attrs
import trio

from tapster.actors.owners import Owner
from tapster.actors.store import (
    Cleared,
    DocumentKey,
    ReadFailed,
    ResourceHead,
    ResourceKind,
    SessionKey,
    Store,
    StoredResource,
    Write,
)
from tapster.actors.store.codec import iso_ms
from tapster.engine.ecma import Json
from tapster.engine.formats.documents import DocumentInvalid
from tapster.runtime import Clock, Ids, Threads, building

from .cache import ParsedCache
from .counters import Counters
from .errors import ResourceNotFound
from .kinds import KINDS

P = ParamSpec("P")
R = TypeVar("R")
STATE = "state"
SETTINGS = "settings"


@attrs.frozen
class Loaded:
    """A resource as the library keeps it; ``value`` is the kind's frozen type, ``document`` its stored JSON.

    Both are shared: don't change what they hold.
    """

    head: ResourceHead
    document: Json
    value: Any


@final
class LibraryCore:
    """State of the library. Only work of the library actor changes it."""

    def __init__(self, store: Store, clock: Clock, ids: Ids, threads: Threads) -> None:
        self.store = store
        self.clock = clock
        self.ids = ids
        self.threads = threads
        self.counters = Counters()
        self.cache = ParsedCache()
        self._heads: dict[ResourceKind, dict[str, ResourceHead]] = {kind: {} for kind in KINDS}
        self._alone: dict[tuple[str, str], tuple[trio.Lock, list[int]]] = {}
        self._owner: Owner | None = None

    async def read(self) -> None:
        """Learn what there is: before anyone asks, and again after a crash."""
        for kind in KINDS:
            self._heads[kind] = {head.id: head for head in await self.store.resource_heads(kind)}
        self.counters.everything_changed()

    def open(self, owner: Owner) -> None:
        """Take changes from now on."""
        self._owner = owner

    async def ask(self, work: Callable[P, Awaitable[R]], *arguments: P.args, **named: P.kwargs) -> R:
        """Have the actor do a change, and wait for it."""
        assert self._owner is not None, "the library is open"
        assert not named, "changes take positional arguments"
        return await self._owner.ask(work, *arguments)

    def now(self) -> str:
        """The time as documents hold it."""
        return iso_ms(self.clock.now_ms())

    def heads(self, kind: ResourceKind) -> tuple[ResourceHead, ...]:
        """All of a kind, in order of creation."""
        return tuple(self._heads[kind].values())

    def head(self, kind: ResourceKind, resource_id: str) -> ResourceHead | None:
        """One head, None when there is none."""
        return self._heads[kind].get(resource_id)

    def need(self, kind: ResourceKind, resource_id: str) -> ResourceHead:
        """One head.

        Raises:
            ResourceNotFound: code ``<KIND>_NOT_FOUND``.
        """
        found = self.head(kind, resource_id)
        if found is None:
            raise KINDS[kind].missing(resource_id)
        return found

    async def load(self, kind: ResourceKind, resource_id: str) -> Loaded:
        """A resource, parsed.

        Raises:
            ResourceNotFound: code ``<KIND>_NOT_FOUND``.
            DocumentInvalid: code ``<KIND>_DOCUMENT_INVALID``.
        """
        head = self.need(kind, resource_id)
        cached = self.cache.get((kind, resource_id, head.revision))
        if cached is not None:
            loaded: Loaded = cached
            return loaded
        try:
            stored = await self.store.resource(kind, resource_id)
        except ReadFailed as error:
            raise KINDS[kind].unreadable(resource_id, error) from error
        if stored is None:
            raise KINDS[kind].missing(resource_id)
        return await self._parse(stored)

    async def load_all(self, kind: ResourceKind) -> tuple[Loaded, ...]:
        """All of a kind that can be read, parsed; those that can't are left out (spec/resources §1 "List")."""
        found = []
        for head in self.heads(kind):
            try:
                found.append(await self.load(kind, head.id))
            except (DocumentInvalid, ResourceNotFound):
                continue
        return tuple(found)

    async def compute(self, function: Callable[..., R], *arguments: Any) -> R:
        """Run an engine function that may take long, in a thread; what it makes is expected to stay."""
        return await self.threads.run(_build, function, arguments)

    async def write(self, write: Write[R], applied: Callable[[R], None] | None = None) -> R:
        """Make a change durable; ``applied`` publishes it, even when the asker is leaving."""
        return await self.store.write(write, applied=applied)

    def publish(self, head: ResourceHead) -> None:
        """A resource's new revision is durable."""
        self._heads[head.kind][head.id] = head
        self.counters.resource_changed(head.kind, head.id)

    def unpublish(self, kind: ResourceKind, resource_id: str) -> None:
        """A resource's deletion is durable."""
        self._heads[kind].pop(resource_id, None)
        self.counters.resource_changed(kind, resource_id)

    def deleted(self, kind: ResourceKind, resource_id: str, cleared: Cleared) -> None:
        """A deletion with everything it cleared is durable."""
        self.unpublish(kind, resource_id)
        self.selections_changed(cleared.sessions)
        if cleared.relations:
            self.counters.changed("relations")

    def selections_changed(self, keys: Iterable[SessionKey]) -> None:
        """Selections changed, durably."""
        for key in keys:
            self.counters.selection_changed(key)

    @asynccontextmanager
    async def alone(self, kind: str, name: str) -> AsyncIterator[None]:
        """Keep other changes of the same thing out: reading, editing and writing it is one step."""
        lock, users = self._alone.setdefault((kind, name), (trio.Lock(), []))
        users.append(1)
        try:
            async with lock:
                yield
        finally:
            users.pop()
            if not users:
                del self._alone[kind, name]

    async def state(self, name: str, collection: str = STATE) -> Json | None:
        """A shared document, None when there is none."""
        found = await self.store.document(DocumentKey(collection, name))
        return None if found is None else found.value

    async def _parse(self, stored: StoredResource) -> Loaded:
        head = stored.head
        value = await self.compute(KINDS[head.kind].read, stored.document)
        loaded = Loaded(head, stored.document, value)
        self.cache.put((head.kind, head.id, head.revision), loaded, head.size_bytes)
        return loaded


def _build(function: Callable[..., R], arguments: tuple[Any, ...]) -> R:
    with building():
        return function(*arguments)


def names_of(heads: Iterable[ResourceHead]) -> dict[str, str]:
    """Names by id."""
    return {head.id: head.name for head in heads}
