"""The variables of sessions: made from the bound card, changed by finished replies and by hand, never by a preview.

One document a session. It holds one instance for each card that the session has had, so that coming back to a card
finds its variables again; the instance of the bound card is the active one.

Source: spec/text_and_mvu C7-C9; spec/loader §14.
"""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final, TypeVar, final

import attrs
import trio

from tapster.actors.owners import Owner, open_owner
from tapster.actors.store import DocumentKey, PutDocument, SessionKey, Store
from tapster.engine.ecma import Json, sha256_json
from tapster.engine.errors import RequestError, StoreError, TapsterError
from tapster.engine.mvu import (
    Decision,
    MvuError,
    Reply,
    VariableHistory,
    VariableResource,
    Version,
    initial_from_card,
    initial_variables,
    open_history,
)
from tapster.engine.mvu.shelf import Mode, Operation
from tapster.engine.profile import ProfileCharacter
from tapster.runtime import LogSink, Threads, silent

VARIABLES: Final = "variables"
PARSERS: Final = 1
"""Threads that parse replies and cards: one at a time is enough, and none of it runs on the loop."""
KNOWN_CARDS: Final = 64
"""Card revisions whose declared variables stay parsed, the newest ones."""
T = TypeVar("T")
Change = Callable[[VariableResource], VariableResource]


class VariablesUnavailable(RequestError):
    """A session has no variables: its card declares none, or it was never used."""

    code = "MVU_RESOURCE_NOT_FOUND"
    status = 404


@attrs.frozen
class _Shelf:
    """One session's instances by card id, and which card is bound.

    Attributes:
        since: replies before this event were never to count, because nobody had allowed the variables' use.
    """

    instances: Mapping[str, VariableResource] = attrs.field(factory=dict)
    active: str | None = None
    since: int = 0

    def with_instance(self, card_id: str, resource: VariableResource) -> "_Shelf":
        return attrs.evolve(self, instances={**self.instances, card_id: resource})


@final
class Variables:
    """``VariableAccess`` for sources, and the owner of what it shows.

    Raises (changes):
        StoreError: it didn't become durable; nothing of it is in force.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._owner: Owner | None = None
        self._threads = Threads("variables", PARSERS)
        self._shelves: dict[SessionKey, _Shelf] = {}
        self._declared: dict[str, VariableHistory | None] = {}
        self._locks: dict[SessionKey, trio.Lock] = {}
        self._keepers: Counter[SessionKey] = Counter()

    async def read(self) -> None:
        """Take what is stored for the sessions that are known: after a crash."""
        for key in list(self._shelves):
            anew = await self._stored(key)
            now = self._shelves.get(key)
            if now is None:
                # Forgotten meanwhile.
                continue
            begun = {card_id: item for card_id, item in now.instances.items() if item.history is None}
            self._shelves[key] = attrs.evolve(anew, instances={**begun, **anew.instances}, active=now.active)

    def open(self, owner: Owner) -> None:
        """Take changes from now on."""
        self._owner = owner

    # Memory -------------------------------------------------------------------------------------------------------

    def keep(self, key: SessionKey) -> None:
        """Keep in memory what is read of a session until everyone who said so has released it."""
        self._keepers[key] += 1

    def release(self, key: SessionKey) -> None:
        """End a ``keep``."""
        self._keepers[key] -= 1
        if not self._keepers[key]:
            del self._keepers[key]
            self._shelves.pop(key, None)
            self._locks.pop(key, None)

    @contextmanager
    def kept(self, key: SessionKey) -> Iterator[None]:
        """``keep`` for a block."""
        self.keep(key)
        try:
            yield
        finally:
            self.release(key)

    # Reading ------------------------------------------------------------------------------------------------------

    def bound(self, session_id: str) -> Sequence[tuple[VariableResource, Decision | None]]:
        """The active variables of the sessions of that id, for the source ``tavern.mvu/state``."""
        found = (self.active(key) for key in self._shelves if key.session == session_id)
        return [(resource, None) for resource in found if resource is not None]

    def active(self, key: SessionKey) -> VariableResource | None:
        """A session's variables in force, None when there are none or it wasn't looked at."""
        shelf = self._shelves.get(key)
        return None if shelf is None or shelf.active is None else shelf.instances.get(shelf.active)

    async def look(self, key: SessionKey, card: ProfileCharacter | None) -> None:
        """Know a session's variables, without making any: an instance that doesn't exist yet has no state."""
        shelf = await self._shelf(key)
        card_id = None if card is None else card.id
        if card is not None and card_id is not None and card_id not in shelf.instances:
            initial = await self._initial(card)
            # Another task may have read or changed it meanwhile.
            shelf = await self._shelf(key)
            if initial is not None and card_id not in shelf.instances:
                shelf = shelf.with_instance(card_id, VariableResource(_instance_id(key, card_id, 0)))
        self._shelves[key] = attrs.evolve(shelf, active=card_id)

    # Changes ------------------------------------------------------------------------------------------------------

    async def inherit(self, parent: SessionKey, child: SessionKey, cut: int, replies: Sequence[Reply] = ()) -> None:
        """Give a fork the variables that were in force before the seq ``cut``; a child that has some keeps them.

        Args:
            replies: those before the cut, of which the parent may not have counted the last ones yet.
        """
        await self._alone(child, self._inherit, parent, child, cut, replies)

    async def activate(self, key: SessionKey, card: ProfileCharacter | None, created_at: int) -> None:
        """Begin the variables of the bound card, if it declares some and the session has none of it yet.

        Raises:
            MvuError: what the card declares can't be used; the session is left as it was.
        """
        await self.look(key, card)
        resource = self.active(key)
        if card is not None and resource is not None and resource.history is None:
            await self._alone(key, self._begin, key, card, created_at)

    async def trim(self, key: SessionKey, seq: int) -> None:
        """Drop what replies at or after a seq changed: their events were never stored."""
        shelf = await self._shelf(key)
        if any(_is_beyond(resource, seq) for resource in shelf.instances.values()):
            await self._alone(key, self._trim, key, seq)

    async def count(self, key: SessionKey, reply: Reply) -> None:
        """Change the variables as a finished reply says; one that is counted already changes nothing.

        Raises:
            MvuError: ``MVU_HISTORY_CHANGED``.
        """
        resource = self.active(key)
        if resource is not None and resource.history is not None and resource.may_be_used(None):
            await self._alone(key, self._count, key, reply)

    async def recover(self, key: SessionKey, replies: Sequence[Reply]) -> None:
        """Count replies that a crash kept from being counted.

        Raises:
            MvuError: as ``count``.
        """
        shelf, resource = await self._shelf(key), self.active(key)
        for reply in () if resource is None else _uncounted(shelf, resource, replies):
            await self.count(key, reply)

    async def set_mode(self, key: SessionKey, mode: Mode, expected_config_revision: int, seq: int) -> VariableResource:
        """Let the session's variables be used (``native``), or keep them for a manager.

        Args:
            seq: of the session's next event; what was said before it stays without effect.

        Raises:
            VariablesUnavailable: there are none.
            MvuEditRefused: ``REVISION_CONFLICT``.
        """

        def change(resource: VariableResource) -> VariableResource:
            return resource.set_mode(mode, expected_config_revision=expected_config_revision)

        return await self._alone(key, self._edit, key, change, seq)

    async def patch(
        self, key: SessionKey, operations: Json, *, expected_revision: int, operation_id: str, seq: int
    ) -> VariableResource:
        """Edit by a JSON patch; the same operation again changes nothing.

        Raises:
            VariablesUnavailable: there are none.
            MvuEditRefused: ``REVISION_CONFLICT``, ``MVU_IDEMPOTENCY_CONFLICT``, ``INVALID_OPERATION``.
            MvuError: the patch doesn't fit.
        """

        def change(resource: VariableResource) -> VariableResource:
            return resource.patched(operations, expected_revision=expected_revision, operation_id=operation_id, seq=seq)

        return await self._alone(key, self._edit, key, change)

    # ----------------------------------------------------------------------------------------------------------------

    async def _alone(self, key: SessionKey, work: Callable[..., Awaitable[T]], *arguments: Any) -> T:
        """Do a change of a session while no other one of it is under way."""
        lock = self._locks.setdefault(key, trio.Lock())

        async def locked() -> T:
            async with lock:
                return await work(*arguments)

        assert self._owner is not None, "the variables are open"
        return await self._owner.ask(locked)

    async def _inherit(self, parent: SessionKey, child: SessionKey, cut: int, replies: Sequence[Reply]) -> None:
        if (await self._shelf(child)).instances:
            return
        # The parent may sleep: reading it is no reason to keep it.
        stored = await self._stored(parent)
        shelf, given = _Shelf(), self._shelves.get(parent, stored)
        for card_id, resource in given.instances.items():
            if resource.history is not None:
                late = _uncounted(given, resource, replies) if card_id == given.active else ()
                history = await self._threads.run(_forked, resource.history, late, max(0, cut - 1))
                kept = attrs.evolve(resource, id=_instance_id(child, card_id, cut), history=history, operations={})
                shelf = shelf.with_instance(card_id, kept)
        if shelf.instances:
            await self._save(child, attrs.evolve(shelf, active=given.active, since=cut))

    async def _begin(self, key: SessionKey, card: ProfileCharacter, created_at: int) -> None:
        history = await self._initial(card)
        shelf = await self._shelf(key)
        if history is None or card.id is None:
            return
        resource = VariableResource(_instance_id(key, card.id, created_at), history)
        await self._save(key, attrs.evolve(shelf.with_instance(card.id, resource), active=card.id))

    async def _trim(self, key: SessionKey, seq: int) -> None:
        shelf = await self._shelf(key)
        for card_id, resource in shelf.instances.items():
            if resource.history is not None and _is_beyond(resource, seq):
                kept = attrs.evolve(resource, history=resource.history.rolled_back(max(0, seq - 1)))
                shelf = shelf.with_instance(card_id, kept)
        await self._save(key, shelf)

    async def _count(self, key: SessionKey, reply: Reply) -> None:
        shelf, resource = await self._shelf(key), self.active(key)
        if resource is None or resource.history is None or shelf.active is None:
            return
        after = await self._threads.run(resource.history.with_reply, reply)
        if after is not resource.history:
            await self._save(key, shelf.with_instance(shelf.active, attrs.evolve(resource, history=after)))

    async def _edit(self, key: SessionKey, change: Change, since: int | None = None) -> VariableResource:
        shelf = await self._shelf(key)
        card_id = shelf.active or next(iter(shelf.instances), None)
        resource = None if card_id is None else shelf.instances.get(card_id)
        if card_id is None or resource is None or resource.history is None:
            raise VariablesUnavailable(f"session {key.session} has no variables")
        changed = await self._threads.run(change, resource)
        if changed is not resource:
            kept = shelf if since is None else attrs.evolve(shelf, since=since)
            await self._save(key, kept.with_instance(card_id, changed))
        return changed

    async def _initial(self, card: ProfileCharacter) -> VariableHistory | None:
        """The first state that a card declares, None when it declares none.

        Raises:
            MvuError: it declares one that can't be used.
        """
        revision = card.revision or ""
        if revision not in self._declared:
            found = await self._threads.run(_declared_by, card.data)
            while len(self._declared) >= KNOWN_CARDS:
                del self._declared[next(iter(self._declared))]
            self._declared[revision] = found
        return self._declared[revision]

    async def _shelf(self, key: SessionKey) -> _Shelf:
        if key not in self._shelves:
            stored = await self._stored(key)
            # Another task may have read it meanwhile, and changed it since.
            self._shelves.setdefault(key, stored)
        return self._shelves[key]

    async def _stored(self, key: SessionKey) -> _Shelf:
        stored = await self._store.document(_document(key))
        return _Shelf() if stored is None else _read(key, stored.value)

    async def _save(self, key: SessionKey, shelf: _Shelf) -> None:
        def publish(_: object) -> None:
            self._shelves[key] = shelf

        write = PutDocument(_document(key), _to_json(shelf), self._store.now_ms)
        await self._store.write(write, applied=publish)


def _declared_by(data: Mapping[str, Json]) -> VariableHistory | None:
    book = data.get("character_book", data.get("characterBook"))
    try:
        return open_history(initial_variables(initial_from_card({"data": {**data, "character_book": book}})))
    except MvuError as error:
        if error.code == "MVU_INITIALIZATION_MISSING":
            return None
        raise


def _uncounted(shelf: _Shelf, resource: VariableResource, replies: Sequence[Reply]) -> tuple[Reply, ...]:
    """Replies that were to count for a resource and haven't yet."""
    if resource.history is None or not resource.may_be_used(None):
        return ()
    known = max(shelf.since, resource.history.current.seq + 1)
    return tuple(reply for reply in replies if reply.seq >= known)


def _forked(history: VariableHistory, late: Sequence[Reply], seq: int) -> VariableHistory:
    for reply in late:
        history = history.with_reply(reply)
    return history.forked(seq)


def _is_beyond(resource: VariableResource, seq: int) -> bool:
    return resource.history is not None and resource.history.current.seq >= max(1, seq)


def _instance_id(key: SessionKey, card_id: str, created_at: int) -> str:
    return f"mvu:instance-{sha256_json([str(key), card_id, created_at])[:32]}"


def _document(key: SessionKey) -> DocumentKey:
    return DocumentKey(VARIABLES, key.session, key.host)


def _to_json(shelf: _Shelf) -> Json:
    instances = {card_id: _resource_json(resource) for card_id, resource in shelf.instances.items()}
    return {"version": 1, "active": shelf.active, "since": shelf.since, "instances": instances}


def _resource_json(resource: VariableResource) -> Json:
    return {
        "id": resource.id,
        "mode": resource.mode,
        "configRevision": resource.config_revision,
        "instructions": resource.instructions,
        "versions": [
            attrs.asdict(version, recurse=False) for version in (resource.history.versions if resource.history else ())
        ],
        "operations": {name: attrs.asdict(operation) for name, operation in resource.operations.items()},
    }


def _read(key: SessionKey, value: Json) -> _Shelf:
    try:
        instances = {card_id: _read_resource(item) for card_id, item in value["instances"].items()}
        return _Shelf(instances, value["active"], value["since"])
    except (KeyError, TypeError, AttributeError, TapsterError) as error:
        raise StoreError(f"the stored variables of {key} aren't valid", code="MVU_STORE_INVALID") from error


def _read_resource(value: Json) -> VariableResource:
    versions = tuple(Version(**version) for version in value["versions"])
    return VariableResource(
        value["id"],
        VariableHistory(versions) if versions else None,
        value["mode"],
        value["configRevision"],
        value["instructions"],
        {name: Operation(**operation) for name, operation in value["operations"].items()},
    )


@asynccontextmanager
async def open_variables(store: Store, log: LogSink = silent) -> AsyncIterator[Variables]:
    """The variables over an open store, for the length of a block."""
    variables = Variables(store)
    async with open_owner("variables", store, variables.read, log) as owner:
        variables.open(owner)
        yield variables
