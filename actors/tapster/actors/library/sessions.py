"""The library as a session asks it: its selection, and everything it has bound at one moment."""

from collections.abc import Generator, Mapping
from typing import final

from tapster.actors.session.lease import Revisions
from tapster.actors.session.ports import Bound
from tapster.actors.store import ReadFailed, ResourceKind, ResourceUse, SelectionTable, SessionKey, Tables
from tapster.actors.store.codec import encode
from tapster.engine.activation import SessionState
from tapster.engine.activation.tavern import (
    PRODUCT_MATCHING,
    BookSelection,
    EmbeddedBook,
    LibraryBook,
    compile_book,
    compile_book_in_parts,
    compose_books,
)
from tapster.engine.contract import UiSettings, read_ui_settings
from tapster.engine.ecma import Json
from tapster.engine.errors import TapsterError
from tapster.engine.formats.cards import Card
from tapster.engine.formats.documents import DocumentInvalid
from tapster.engine.formats.world_books import WorldBookDocument, parse_world_book
from tapster.engine.policy import OwnerKind, RpState, Selection, read_rp_policy
from tapster.engine.profile import Diagnostic, ProfileCharacter, ProfileUser, ResolvedResources

from .activation import Activation, settings_dependency
from .compiled import CompiledBooks
from .core import LibraryCore, Loaded
from .counters import Dependency
from .errors import ResourceNotFound
from .relations import Relations
from .scanning import Scanning
from .selections import Selections

_HANDLED = frozenset(
    {"embedded-character-book-pass-through", "post-history-runtime-required", "depth-prompt-runtime-required"}
)
_SHARED: tuple[Dependency, ...] = (("relations", ""), ("settings", ""), ("state", ""))


@final
class SessionSide:
    """Every method may raise a ``StoreError``."""

    def __init__(self, core: LibraryCore, selections: Selections, relations: Relations, activation: Activation) -> None:
        self._core = core
        self._selections = selections
        self._relations = relations
        self._activation = activation
        self._compiled = CompiledBooks(core)
        self._scanning = Scanning(core, self._compiled)

    async def ensure_selection(self, key: SessionKey, parent: SessionKey | None, cut: int = 0) -> Selection:
        """Restore a session's selection, or freeze one: the parent's, else the defaults.

        With it come the parent's activation settings, and its states before the seq ``cut``.
        """
        return await self._selections.ensure(key, parent, cut)

    async def state(self, key: SessionKey, seq: int) -> SessionState:
        """What requests left behind up to a host seq."""
        return await self._activation.state(key, seq)

    async def save_state(self, key: SessionKey, seq: int, state: SessionState) -> None:
        """Make a state durable under the seq of the next host event."""
        await self._activation.save_state(key, seq, state)

    async def save_rp(self, key: SessionKey, state: RpState) -> None:
        """Make a session's RP state durable."""
        await self._selections.save_rp(key, state)

    async def stored_rp(self, key: SessionKey) -> RpState:
        """A session's stored RP state."""
        return (await self._selections.get(key)).rp

    async def ancestors_rp(self, key: SessionKey) -> tuple[RpState, ...]:
        """The stored RP states along the session's line of parents, nearest first."""
        return await self._core.store.read(lambda tables: _ancestors_rp(tables, key))

    async def bound(self, key: SessionKey) -> Bound:
        """What a session has bound, parsed and compiled; from now on it's told about changes of that."""
        selection = await self._selections.get(key)
        own = (*_SHARED, settings_dependency(key), *_named(selection))
        self._core.counters.depend(key, own)
        settings = await self._activation.settings(key)
        books = await self._compose(selection)
        self._core.counters.depend(key, (*own, *(("world-book", book) for book in books.effective_ids)))
        preset = await self._try("preset", selection.preset_id)
        card = await self._try("character", selection.character_card_id)
        user = await self._try("user", selection.user_id)
        loaded = await self._books(books)
        found = [item for item in (preset, card, user, *loaded.values()) if isinstance(item, Loaded)]
        ui, policy = await self._settings()
        is_scan = settings.mode == "sillytavern"
        return Bound(
            selection=selection,
            resources=_resolved(selection, preset, card, user),
            books=books,
            library_books={} if is_scan else await self._library_books(loaded),
            embedded=None if is_scan else await self._embedded(card),
            policy_section=policy,
            follow_character=ui.rp_follow_character,
            settings=settings,
            scan=await self._scanning.resources(settings, books, loaded, preset, card, user) if is_scan else None,
            uses=tuple(ResourceUse(item.head.kind, item.head.id, item.head.revision) for item in found),
        )

    def forget(self, key: SessionKey) -> None:
        """As ``SessionLibrary.forget``."""
        self._core.counters.forget(key)

    def revisions(self, key: SessionKey) -> Revisions:
        """The published counters that an assembly of this session depends on."""
        counters = self._core.counters
        counters.look(key)
        return Revisions(counters.selection(key), counters.used(key))

    async def _compose(self, selection: Selection) -> BookSelection:
        owners: list[tuple[OwnerKind, str | None]] = [
            ("user", selection.user_id),
            ("preset", selection.preset_id),
            ("character", selection.character_card_id),
        ]

        now = self._core.clock.now_ms()

        def read(tables: Tables) -> list[list[str]]:
            return [
                list(self._relations.read(tables, owner, now).books(owner, owner_id)) if owner_id is not None else []
                for owner, owner_id in owners
            ]

        user, preset, character = await self._core.store.read(read)
        return compose_books(list(selection.world_book_ids), user, preset, character)

    async def _try(self, kind: ResourceKind, resource_id: str | None) -> Loaded | TapsterError | None:
        if resource_id is None:
            return None
        try:
            return await self._core.load(kind, resource_id)
        except (ResourceNotFound, DocumentInvalid) as error:
            return error

    async def _books(self, books: BookSelection) -> Mapping[str, Loaded | TapsterError]:
        """The effective books by id; an error where one can't be read; absent where there is none."""
        found: dict[str, Loaded | TapsterError] = {}
        for book_id in books.effective_ids:
            loaded = await self._try("world-book", book_id)
            if isinstance(loaded, Loaded | DocumentInvalid):
                found[book_id] = loaded
        return found

    async def _library_books(
        self, books: Mapping[str, Loaded | TapsterError]
    ) -> Mapping[str, LibraryBook | TapsterError]:
        return {
            book_id: await self._library_book(loaded) if isinstance(loaded, Loaded) else loaded
            for book_id, loaded in books.items()
        }

    async def _library_book(self, loaded: Loaded) -> LibraryBook | TapsterError:
        head = loaded.head
        slot = (head.kind, head.id, f"{head.revision} compiled")
        try:
            return await self._compiled.get(slot, head.size_bytes, lambda: _compile(loaded))
        except TapsterError as error:
            return error

    async def _embedded(self, card: Loaded | TapsterError | None) -> EmbeddedBook | None:
        if not isinstance(card, Loaded) or card.value.data.character_book is None:
            return None
        slot = (card.head.kind, card.head.id, f"{card.head.revision} book")
        found: EmbeddedBook | None = self._core.cache.get(slot)
        if found is None:
            found = await self._core.compute(_embedded, card.value)
            self._core.cache.put(slot, found, card.head.size_bytes)
        return found

    async def _settings(self) -> tuple[UiSettings, str]:
        """Page settings and policy text; unreadable ones give the defaults (spec/http §5.4)."""
        values: list[bytes | None] = []
        for name in ("ui-settings", "rp-policy"):
            try:
                value = await self._core.state(name, "settings")
            except ReadFailed:
                value = None
            values.append(None if value is None else encode(value))
        return read_ui_settings(values[0]), read_rp_policy(values[1])


def _named(selection: Selection) -> tuple[Dependency, ...]:
    single = (
        ("preset", selection.preset_id),
        ("character", selection.character_card_id),
        ("user", selection.user_id),
    )
    books = [("world-book", book) for book in selection.world_book_ids]
    return (*((kind, name) for kind, name in single if name is not None), *books)


def _resolved(
    selection: Selection,
    preset: Loaded | TapsterError | None,
    card: Loaded | TapsterError | None,
    user: Loaded | TapsterError | None,
) -> ResolvedResources:
    problems = (
        ("PRESET_NOT_FOUND", "preset", selection.preset_id, preset),
        ("character-card-not-found", "card", selection.character_card_id, card),
        ("user-not-found", "persona", selection.user_id, user),
    )
    diagnostics = [
        Diagnostic(code, "warning", f"{what} {name} can't be used: {problem}")
        for code, what, name, problem in problems
        if isinstance(problem, TapsterError)
    ]
    if isinstance(card, Loaded):
        diagnostics += _remarks(card.value)
    persona = user.value if isinstance(user, Loaded) else None
    return ResolvedResources(
        preset=preset.value if isinstance(preset, Loaded) else None,
        character=ProfileCharacter.from_document(card.document) if isinstance(card, Loaded) else None,
        user=None if persona is None else ProfileUser(persona.id, persona.name, persona.description),
        diagnostics=tuple(diagnostics),
    )


def _remarks(card: Card) -> list[Diagnostic]:
    """What was noticed about a card, without what the renderer handles. Source: spec/loader §6."""
    found = card.compatibility
    unsupported = [item for item in found.unsupported_features if item.code not in _HANDLED]
    return [Diagnostic(item.code, "warning", item.message) for item in (*found.warnings, *unsupported)]


def _compile(loaded: Loaded) -> Generator[None, None, LibraryBook]:
    document: WorldBookDocument = loaded.value
    compiled = yield from compile_book_in_parts(document.book, PRODUCT_MATCHING)
    return LibraryBook(document.id, document.name, compiled, document.updated_at, loaded.head.revision)


def _embedded(card: Card) -> EmbeddedBook:
    book: Json = card.data.character_book
    name = book.get("name")
    try:
        parsed = parse_world_book(book, format="character-book-v2")
        return EmbeddedBook(card.id, parsed.name, compile_book(parsed, PRODUCT_MATCHING))
    except TapsterError as error:
        return EmbeddedBook(card.id, name if isinstance(name, str) else "", error)


def _ancestors_rp(tables: Tables, key: SessionKey) -> tuple[RpState, ...]:
    table = SelectionTable(tables)
    found: list[RpState] = []
    seen = {key}
    while True:
        head = tables.sessions.head(key)
        parent = head.header.get("parentSession") if head is not None and isinstance(head.header, dict) else None
        if not isinstance(parent, str) or SessionKey(key.host, parent) in seen:
            return tuple(found)
        key = SessionKey(key.host, parent)
        seen.add(key)
        stored = table.find(key)
        if stored is not None:
            found.append(stored.rp)
