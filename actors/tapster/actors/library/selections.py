"""Durable selections: what each session has bound (spec/loader §2, §3; design §4 rule 14)."""

from collections.abc import Mapping
from typing import final

from tapster.actors.store import EnsureSelection, MergeSelection, ResourceKind, SessionKey, Together
from tapster.actors.store.session_documents import InheritSession
from tapster.engine.ecma import Json
from tapster.engine.errors import RequestError
from tapster.engine.formats.documents import DocumentInvalid
from tapster.engine.policy import RpState, Selection, required_session_id, rp_json, selection_json

from .characters import card_summary
from .core import LibraryCore
from .errors import ResourceNotFound
from .presets import Presets, preset_summary
from .world_books import book_summary
from .writes import Defaulting, Naming, PutSelection, named_by


@final
class Selections:
    """Every method may raise a ``FormatError`` for a bad session id, or a ``StoreError``."""

    def __init__(self, core: LibraryCore, presets: Presets) -> None:
        self._core = core
        self._presets = presets

    async def defaults(self) -> Selection:
        """What a session that has no selection gets: the default preset and nothing else."""
        return Selection(preset_id=await self._presets.default_id())

    async def get(self, key: SessionKey) -> Selection:
        """A session's selection, the defaults when it has none of its own; reading stores nothing."""
        required_session_id(key.session)
        return await self._core.store.selection(key) or await self.defaults()

    async def has(self, key: SessionKey) -> bool:
        """Whether the session has a stored selection."""
        return await self._core.store.selection(key) is not None

    async def select(self, key: SessionKey, patch: Mapping[str, Json]) -> Selection:
        """Write members of a selection after checking that what they name exists.

        Whether the session's agent is running and whose playthrough it belongs to is checked by the caller.

        Raises:
            ResourceNotFound: something named doesn't exist; nothing was written.
            RequestError: a greeting that the card doesn't have.
            SessionSelectionLimitError: there is no room for another session.
        """
        return await self._core.ask(self._select, key, patch)

    async def put(self, key: SessionKey, selection: Selection) -> bool:
        """Write a whole selection, unchecked; whether it changed."""
        return await self._core.ask(self._put, key, selection)

    async def ensure(self, key: SessionKey, parent: SessionKey | None = None, cut: int = 0) -> Selection:
        """Restore a starting session's selection, or freeze one: the parent's, else the defaults.

        With the selection come the parent's activation settings and its states before the seq ``cut``.

        Raises:
            SessionSelectionLimitError: there is no room; the session must not start.
        """
        return await self._core.ask(self._ensure, key, parent, cut)

    async def save_rp(self, key: SessionKey, state: RpState) -> None:
        """Make a session's RP state durable."""
        await self._core.ask(self._merge, key, {"rp": rp_json(state)})

    async def summary(self, kind: ResourceKind, resource_id: str) -> Json:
        """A resource for display, None when it's gone or unreadable."""
        try:
            loaded = await self._core.load(kind, resource_id)
        except (ResourceNotFound, DocumentInvalid):
            return None
        if kind == "preset":
            return preset_summary(loaded.value)
        if kind == "character":
            return card_summary(loaded.value)
        return book_summary(loaded.value) if kind == "world-book" else loaded.document

    async def _select(self, key: SessionKey, patch: Mapping[str, Json]) -> Selection:
        await self._check(key, patch)
        return await self._merge(key, patch)

    async def _check(self, key: SessionKey, patch: Mapping[str, Json]) -> None:
        for kind, resource_id in named_by(patch):
            self._core.need(kind, resource_id)
        options = patch.get("character")
        index = options.get("greetingIndex") if isinstance(options, dict) else None
        card_id = patch["characterCardId"] if "characterCardId" in patch else (await self.get(key)).character_card_id
        if index is not None and card_id is not None:
            await self._check_greeting(str(card_id), index)

    async def _check_greeting(self, card_id: str, index: Json) -> None:
        card = (await self._core.load("character", card_id)).value
        count = 1 + len(card.data.alternate_greetings)
        if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < count:
            raise RequestError(f"the card has greetings 0 to {count - 1}, not {index!r:.40}")

    async def _merge(self, key: SessionKey, patch: Mapping[str, Json]) -> Selection:
        now, limits = self._core.clock.now_ms(), self._core.store.selection_limits

        def merge(defaults: Selection) -> MergeSelection:
            return MergeSelection(key, patch, defaults, now, limits)

        write = Naming(named_by(patch), Defaulting(await self.defaults(), merge))
        selection, _ = await self._core.write(write, lambda answer: self._publish(key, answer[1]))
        return selection

    async def _put(self, key: SessionKey, selection: Selection) -> bool:
        write = PutSelection(key, selection, self._core.clock.now_ms(), self._core.store.selection_limits)
        return await self._core.write(write, lambda changed: self._publish(key, changed))

    async def _put_existing(self, key: SessionKey, selection: Selection) -> bool:
        put = PutSelection(key, selection, self._core.clock.now_ms(), self._core.store.selection_limits)
        write = Naming(named_by(selection_json(selection)), put)
        return await self._core.write(write, lambda changed: self._publish(key, changed))

    async def _ensure(self, key: SessionKey, parent: SessionKey | None, cut: int) -> Selection:
        now, limits = self._core.clock.now_ms(), self._core.store.selection_limits

        def ensure(defaults: Selection) -> EnsureSelection:
            return EnsureSelection(key, parent, defaults, now, limits)

        ensured = Defaulting(await self.defaults(), ensure)
        inherited = () if parent is None else (InheritSession(key, parent, cut, now),)
        write = Together((*inherited, ensured))
        answers = await self._core.write(write, lambda answers: self._publish(key, answers[-1][1]))
        selection: Selection = answers[-1][0]
        return selection

    def _publish(self, key: SessionKey, changed: bool) -> None:
        if changed:
            self._core.counters.selection_changed(key)
