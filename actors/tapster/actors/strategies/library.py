"""The strategies of a process: the library, what each session has applied, and its history policy.

One owner: every change is worked out on a copy, made durable, and only then in force. Sessions read what is in force
without waiting.

Source: spec/assembler §15; spec/history_policy §7, §8; design §4 rules 4, 13, 14.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Final, Protocol, TypeVar, final

import attrs
import trio

from tapster.actors.owners import Owner, open_owner
from tapster.actors.store import (
    HOME_HOST,
    DeleteDocument,
    DocumentKey,
    Loaded,
    PutDocument,
    SessionKey,
    Store,
    Together,
    Write,
    load,
)
from tapster.engine.assembly import (
    TAVERN_DEFAULT_ID,
    AssemblyPreset,
    HistoryPolicies,
    ListedPreset,
    PresetStore,
    StoreDocument,
    StoredPolicy,
    bare_builtins,
    read_policies,
    read_store,
    tavern_builtins,
)
from tapster.engine.assembly.history.policies import Mode as HistoryMode
from tapster.engine.assembly.store import stored_json
from tapster.engine.ecma import Json
from tapster.engine.errors import StoreError
from tapster.runtime import Ids, LogSink, silent

PRESETS: Final = "strategies"
SELECTIONS: Final = "strategy-selections"
POLICIES: Final = DocumentKey("state", "history-policies")
T = TypeVar("T")


class Changes(Protocol):
    """Who is told of changes once they are durable; the library's counters are."""

    def selection_changed(self, key: SessionKey) -> None:
        """What a session has selected is another thing now."""


@attrs.frozen
class _State:
    """What is in force: own presets, applied snapshots by host, and policies of sessions whose snapshot has none."""

    presets: Mapping[str, AssemblyPreset]
    applied: Mapping[str, Mapping[str, AssemblyPreset | None]]
    policies: Mapping[str, StoredPolicy]


@final
class Strategies:
    """Presets by id and the applied snapshot of each session.

    Raises (everything):
        StoreError: what is stored couldn't be read at the start; it was left as it is.

    Raises (writes):
        StoreError: the change didn't become durable; nothing of it is in force.

    Cancellation: a change either didn't happen or is durable and in force.
    """

    def __init__(self, store: Store, ids: Ids, counters: Changes) -> None:
        self._store = store
        self._counters = counters
        self._owner: Owner | None = None
        self._loaded = Loaded(_State({}, {}, {}))
        self._lock = trio.Lock()
        # Its document is set for each question; the catalogues of plug-ins are what it keeps.
        self._presets = PresetStore(
            ids.uuid,
            unified=True,
            default_id=TAVERN_DEFAULT_ID,
            builtins=(*bare_builtins(), *tavern_builtins()),
        )

    async def read(self) -> None:
        """Take what is stored: at the start, and again after a crash.

        Raises:
            StoreError: it can't be read now, but could before.
        """
        self._loaded = await load(_load(self._store), again=self._owner is not None and self.problem is None)
        if self.problem is None:
            for host, applied in self._state.applied.items():
                for session in applied:
                    self._counters.selection_changed(SessionKey(host, session))

    def open(self, owner: Owner) -> None:
        """Take changes from now on."""
        self._owner = owner

    @property
    def problem(self) -> StoreError | None:
        """Why nothing can be answered; None when all is well."""
        return self._loaded.problem

    @property
    def _state(self) -> _State:
        return self._loaded.value

    # Reading ------------------------------------------------------------------------------------------------------

    def selection(self, key: SessionKey) -> AssemblyPreset | None:
        """What a session has applied; None for nothing, or deliberately off."""
        return self._of(key.host).selection(key.session)

    def has_selection(self, key: SessionKey) -> bool:
        """Whether a session has decided, off included."""
        return self._of(key.host).has_selection(key.session)

    def catalogue(self) -> list[ListedPreset]:
        """Built-in, offered and own presets."""
        return self._of(HOME_HOST).catalogue()

    def get(self, preset_id: str) -> ListedPreset:
        """One preset.

        Raises:
            AssemblyRefused: ``ASSEMBLY_PRESET_NOT_FOUND`` (404).
        """
        return self._of(HOME_HOST).get(preset_id)

    def policy(self, key: SessionKey) -> StoredPolicy:
        """What of old messages a session's requests carry."""
        return self._policies(key.host).read(key.session)

    # Changes ------------------------------------------------------------------------------------------------------

    async def save(self, value: Json, preset_id: str | None = None) -> ListedPreset:
        """Save a preset, as a new one without an id.

        Raises:
            InvalidAssembly: a bad preset, or a built-in one.
            AssemblyRefused: ``ASSEMBLY_PRESET_NOT_FOUND`` (404).
        """
        return await self._ask(HOME_HOST, lambda presets: presets.save(value, preset_id))

    async def remove(self, preset_id: str) -> None:
        """Remove an own preset.

        Raises:
            InvalidAssembly: ``PRESET_BUILTIN``.
            AssemblyRefused: not found (404), or applied to a session (409).
        """

        def remove(presets: PresetStore) -> None:
            for host in self._state.applied:
                self._of(host).remove(preset_id)
            presets.remove(preset_id)

        await self._ask(HOME_HOST, remove)

    async def apply(self, key: SessionKey, preset_id: str | None) -> AssemblyPreset | None:
        """Copy a preset, as it is now, to a session; None is explicitly off.

        Raises:
            InvalidAssembly: ``SESSION_ID_INVALID``.
            AssemblyRefused: ``ASSEMBLY_PRESET_NOT_FOUND`` (404).
        """
        return await self._ask(key.host, lambda presets: presets.apply(key.session, preset_id))

    async def apply_snapshot(self, key: SessionKey, value: Json) -> AssemblyPreset | None:
        """Apply a preset that is in no library.

        Raises:
            InvalidAssembly: a bad preset, or one without an ``id``.
        """
        return await self._ask(key.host, lambda presets: presets.apply_snapshot(key.session, value))

    async def inherit(self, parent: SessionKey, child: SessionKey) -> None:
        """Give a fork or a delegated session what its parent has, unless it has decided itself."""
        if not self.has_selection(child):
            await self._ask(child.host, lambda presets: presets.copy_selection(parent.session, child.session))

    async def migrate(self, old: StoreDocument) -> bool:
        """Add what an older store's document has and this one lacks; whether something was added."""
        return await self._ask(HOME_HOST, lambda presets: presets.migrate_legacy(old))

    async def save_policy(
        self, key: SessionKey, value: Json, expected_revision: object, mode: HistoryMode
    ) -> StoredPolicy:
        """Save a session's history policy where its present one is kept.

        Raises:
            InvalidAssembly: a bad policy, or one that needs the advanced mode (400).
            AssemblyRefused: ``HISTORY_POLICY_CONFLICT`` (409).
        """
        return await self._change_by(self._save_policy, key, value, expected_revision, mode)

    # Plug-ins -----------------------------------------------------------------------------------------------------

    def offer(self, plugin_id: object, presets: object) -> Callable[[], None]:
        """Offer a plug-in's presets; the disposer withdraws them, applied snapshots stay.

        Raises:
            InvalidAssembly: nothing is offered.
        """
        self._of(HOME_HOST)
        return self._presets.register_presets(plugin_id, presets)

    @contextmanager
    def offered(self, plugin_id: object, presets: object) -> Iterator[None]:
        """A plug-in's presets, offered for the length of a block."""
        withdraw = self.offer(plugin_id, presets)
        try:
            yield
        finally:
            withdraw()

    # ----------------------------------------------------------------------------------------------------------------

    def _of(self, host: str) -> PresetStore:
        """The store over one host's sessions; a copy, so that an operation on it decides nothing."""
        document = StoreDocument(self._state.presets, self._state.applied.get(host, {}))
        # The catalogues are shared, so what a plug-in withdraws is gone everywhere.
        self._presets.document = document
        return attrs.evolve(self._presets)

    def _policies(self, host: str) -> HistoryPolicies:
        legacy = self._state.policies if host == HOME_HOST else {}
        return HistoryPolicies(self._of(host), legacy)

    async def _ask(self, host: str, operation: Callable[[PresetStore], T]) -> T:
        return await self._change_by(self._change, host, operation)

    async def _change_by(self, work: Callable[..., Awaitable[T]], *arguments: object) -> T:
        assert self._owner is not None, "the strategies are open"
        return await self._owner.ask(work, *arguments)

    async def _change(self, host: str, operation: Callable[[PresetStore], T]) -> T:
        async with self._lock:
            presets = self._of(host)
            answer = operation(presets)
            await self._store_changes(host, presets.document)
            return answer

    async def _save_policy(
        self, key: SessionKey, value: Json, expected_revision: object, mode: HistoryMode
    ) -> StoredPolicy:
        async with self._lock:
            policies = self._policies(key.host)
            before = policies.sessions
            saved = policies.save(key.session, value, expected_revision, mode)
            if policies.sessions is before:
                await self._store_changes(key.host, policies.presets.document)
                return saved
            state = attrs.evolve(self._state, policies=policies.sessions)
            write = PutDocument(POLICIES, policies.to_json(), self._store.now_ms)
            await self._store.write(write, applied=lambda _: self._publish(state, (key,)))
            return saved

    async def _store_changes(self, host: str, after: StoreDocument) -> None:
        before = self._state.applied.get(host, {})
        now, scope = self._store.now_ms, "" if host == HOME_HOST else host
        edited, touched = _changed(self._state.presets, after.presets), _changed(before, after.selections)
        writes = [
            *(_write(DocumentKey(PRESETS, name), after.presets, name, now) for name in edited),
            *(_write(DocumentKey(SELECTIONS, name, scope), after.selections, name, now) for name in touched),
        ]
        if not writes:
            return
        applied = {**self._state.applied, host: dict(after.selections)}
        state = attrs.evolve(self._state, presets=dict(after.presets), applied=applied)
        keys = tuple(SessionKey(host, session) for session in touched)
        await self._store.write(Together(writes), applied=lambda _: self._publish(state, keys))

    def _publish(self, state: _State, keys: tuple[SessionKey, ...]) -> None:
        self._loaded = Loaded(state)
        for key in keys:
            # A strategy is part of what a session has selected: a request under way loses its lease.
            self._counters.selection_changed(key)


def _changed(before: Mapping[str, T], after: Mapping[str, T]) -> list[str]:
    """Names whose value is another one now, gone ones included."""
    missing = object()
    return [name for name in {**before, **after} if before.get(name, missing) != after.get(name, missing)]


def _write(key: DocumentKey, values: Mapping[str, AssemblyPreset | None], name: str, now: int) -> Write[object]:
    if name not in values:
        return DeleteDocument(key)
    preset = values[name]
    return PutDocument(key, None if preset is None else stored_json(preset), now)


@asynccontextmanager
async def open_strategies(
    store: Store, ids: Ids, counters: Changes, log: LogSink = silent
) -> AsyncIterator[Strategies]:
    """The strategies over an open store, for the length of a block.

    What is stored and isn't valid stops nothing but whoever needs a strategy; nothing of it is replaced.
    """
    strategies = Strategies(store, ids, counters)
    async with open_owner("strategies", store, strategies.read, log) as owner:
        strategies.open(owner)
        yield strategies


async def _load(store: Store) -> _State:
    presets = {document.key.name: document.value for document in await store.documents(PRESETS)}
    by_host: dict[str, dict[str, Json]] = {}
    for document in await store.documents(SELECTIONS, None):
        by_host.setdefault(document.key.scope or HOME_HOST, {})[document.key.name] = document.value
    read = read_store({"version": 1, "presets": presets, "selections": {}})
    applied = {
        host: read_store({"version": 1, "presets": {}, "selections": selections}).selections
        for host, selections in by_host.items()
    }
    stored = await store.document(POLICIES)
    policies = read_policies(None if stored is None else stored.value, PresetStore(lambda: ""))
    return _State(read.presets, applied, policies.sessions)
