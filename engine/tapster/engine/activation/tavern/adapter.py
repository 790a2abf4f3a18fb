"""Every bound book of a request, and the card's embedded one: lore, resources, diagnostics, decisions.

Source: spec/activation §4, §6, §7.
"""

from collections.abc import Iterator, Mapping

import attrs

from tapster.engine.activation.keys import KeyRules
from tapster.engine.ecma import Json, utf16_length
from tapster.engine.errors import TapsterError
from tapster.engine.formats.world_books import WorldBook, parse_world_book
from tapster.engine.projection import ActivationContext
from tapster.engine.text.ports import Checkpoint, RegexEngine, go_on

from .compiled import CompiledBook, compile_book
from .compose import BookSelection
from .decision import Decision
from .evaluate import MatchDefaults
from .options import ActivationOptions
from .projector import ActivationDiagnostic, LoreEntry, book_diagnostics, decision_list, decisions, lore_entries
from .run import Activation, activate_book
from .scan_text import ScanText, scan_text


@attrs.frozen(eq=False)
class LibraryBook:
    """A standalone book of the library, compiled. ``managed`` books are only for request assembly."""

    id: str
    name: str
    compiled: CompiledBook
    updated_at: str | None = None
    revision: str | None = None
    managed: bool = False

    def summary(self, selection: BookSelection | None) -> dict[str, Json]:
        """The fields of its resource summary that no activation changes."""
        value: dict[str, Json] = {
            "id": self.id,
            "name": self.name,
            "kind": "standalone-world-book",
            "updatedAt": self.updated_at,
            "bindingSources": list(selection.binding_sources(self.id)) if selection else ["session"],
            "format": self.compiled.book.source.format,
        }
        return value if self.revision is None else value | {"revision": self.revision}


@attrs.frozen(eq=False)
class EmbeddedBook:
    """The book inside the request's card, or why it can't be used."""

    card_id: str
    name: str
    compiled: CompiledBook | TapsterError

    @property
    def id(self) -> str:
        """The resource id under which its entries are audited."""
        return f"character:{self.card_id}:embedded-world-book"


@attrs.frozen(eq=False)
class BookRequest:
    """What one request asks of the world books.

    Attributes:
        book_ids: standalone books in effective order.
        books: the books by id; an error where one could not be read; None when no library is installed.
        selection: which binding named which book.
        context: the request's messages; None when only ``conversation_text`` is known.
        embedded: the card's own book.
    """

    book_ids: tuple[str, ...] = ()
    books: Mapping[str, LibraryBook | TapsterError] | None = None
    selection: BookSelection | None = None
    context: ActivationContext | None = None
    conversation_text: str = ""
    embedded: EmbeddedBook | None = None
    options: ActivationOptions = attrs.field(factory=ActivationOptions)


@attrs.frozen(eq=False)
class BookReport:
    """What one scanned book gave; the decisions are made when they are asked for."""

    resource_id: str
    summary: Mapping[str, Json]
    activation: Activation
    lore: tuple[LoreEntry, ...]

    def decisions(self) -> Iterator[Decision]:
        """The decision on every entry of the book."""
        return decisions(self.resource_id, self.activation)

    def resource(self) -> Json:
        """The resource summary in the contract's field names."""
        accepted = self.activation.accepted
        return {
            **self.summary,
            "entryCount": self.activation.entry_count,
            "matchedEntryCount": len(accepted),
            "activeEntryIds": [entry.id for entry in self.lore],
        }

    def audit(self) -> Json:
        """``{resource, budget, decisions}`` of the contract's audit."""
        budget = self.activation.budget
        return {
            "resource": self.resource(),
            "budget": {"limit": budget.limit, "used": budget.used, "remaining": budget.remaining},
            "decisions": decision_list(self.resource_id, self.activation),
        }


@attrs.frozen(eq=False)
class AdapterResult:
    """Lore, resources and diagnostics of a request's books, in order."""

    reports: tuple[BookReport, ...]
    diagnostics: tuple[ActivationDiagnostic, ...]

    @property
    def lore(self) -> tuple[LoreEntry, ...]:
        """The delivered entries, book after book."""
        return tuple(entry for report in self.reports for entry in report.lore)

    def resources(self) -> list[Json]:
        """The resource summaries."""
        return [report.resource() for report in self.reports]

    def decisions(self) -> Iterator[Decision]:
        """Every decision, book after book."""
        for report in self.reports:
            yield from report.decisions()

    def audit(self) -> Json:
        """``{resources: […]}`` of the contract's audit."""
        return {"resources": [report.audit() for report in self.reports]}


@attrs.frozen(eq=False)
class _Ready:
    resource_id: str
    summary: dict[str, Json]
    compiled: CompiledBook


def embedded_book(
    card_id: str, name: str, raw: Json, *, defaults: MatchDefaults | None = None, rules: KeyRules | None = None
) -> EmbeddedBook:
    """A card's own book, compiled; one that doesn't parse is kept as its error."""
    settings = defaults or MatchDefaults(rules=rules or KeyRules())
    try:
        return EmbeddedBook(card_id, name, compile_book(parse_world_book(raw, format="character-book-v2"), settings))
    except TapsterError as error:
        return EmbeddedBook(card_id, name, error)


def activate_books(
    request: BookRequest, *, regex: RegexEngine | None = None, checkpoint: Checkpoint = go_on
) -> AdapterResult:
    """Match every book of a request, each alone, in order; the embedded book last."""
    early: list[ActivationDiagnostic] = []
    ready = list(_ready_books(request, early))
    reports: list[BookReport] = []
    late: list[ActivationDiagnostic] = []
    for book in ready:
        checkpoint()
        scanned = scan_text(
            request.context, request.conversation_text, book.compiled.book.settings.scan_depth, request.options
        )
        activation = activate_book(book.compiled, scanned.text, request.options, regex=regex, checkpoint=checkpoint)
        lore = lore_entries(book.resource_id, activation)
        reports.append(BookReport(book.resource_id, book.summary, activation, lore))
        late += book_diagnostics(book.resource_id, book.compiled.book, activation)
        late += _scan_diagnostics(book.resource_id, book.compiled.book, scanned)
    return AdapterResult(tuple(reports), (*early, *late))


def _ready_books(request: BookRequest, diagnostics: list[ActivationDiagnostic]) -> Iterator[_Ready]:
    """The books that are scanned, within the capacity of a request; the others leave a diagnostic."""
    reserved = 0
    for book in _found_books(request, diagnostics):
        count = len(book.compiled.book.entries)
        if reserved + count > request.options.max_runtime_entries:
            diagnostics.append(_over_capacity(book.resource_id, count, reserved, request.options.max_runtime_entries))
            continue
        reserved += count
        yield book


def _found_books(request: BookRequest, diagnostics: list[ActivationDiagnostic]) -> Iterator[_Ready]:
    if request.books is None and request.book_ids:
        diagnostics.append(
            _warning(
                "WORLD_BOOK_STORE_NOT_INSTALLED",
                "no world-book library is installed, so the bound books were not read",
                None,
                {"worldBookIds": list(request.book_ids)},
            )
        )
    elif request.books is not None:
        for book_id in request.book_ids:
            found = request.books.get(book_id)
            if isinstance(found, LibraryBook) and not found.managed:
                yield _Ready(book_id, found.summary(request.selection), found.compiled)
            else:
                diagnostics.append(_unusable(book_id, found))
    if request.embedded is not None:
        yield from _embedded(request.embedded, diagnostics)


def _embedded(embedded: EmbeddedBook, diagnostics: list[ActivationDiagnostic]) -> Iterator[_Ready]:
    if isinstance(embedded.compiled, TapsterError):
        message = f"the card's embedded book can't be used: {embedded.compiled.message}"
        diagnostics.append(_warning("EMBEDDED_WORLD_BOOK_INVALID", message, embedded.id))
        return
    summary = {
        "id": embedded.id,
        "name": embedded.name,
        "ownerCharacterId": embedded.card_id,
        "kind": "embedded-character-book",
        "format": embedded.compiled.book.source.format,
    }
    yield _Ready(embedded.id, summary, embedded.compiled)


def _unusable(book_id: str, found: LibraryBook | TapsterError | None) -> ActivationDiagnostic:
    if found is None:
        return _warning("WORLD_BOOK_NOT_FOUND", f"world book {book_id} is bound but not in the library", book_id)
    if isinstance(found, LibraryBook):
        message = f"world book {book_id} belongs to a session opening and needs request assembly"
        return _warning("WORLD_BOOK_MANAGED_REQUIRES_ASSEMBLY", message, book_id)
    return _warning("WORLD_BOOK_DOCUMENT_INVALID", f"world book {book_id} can't be used: {found.message}", book_id)


def _over_capacity(book_id: str, count: int, reserved: int, limit: int) -> ActivationDiagnostic:
    return _warning(
        "WORLD_BOOK_RUNTIME_TOTAL_LIMIT",
        f"world book {book_id} has {count} entries; {reserved} of {limit} are taken, so it was not scanned",
        book_id,
        {"entryCount": count, "reservedEntries": reserved, "limit": limit},
    )


def _scan_diagnostics(resource_id: str, book: WorldBook, scanned: ScanText) -> Iterator[ActivationDiagnostic]:
    if scanned.cut:
        details = {
            "scannedCharacters": utf16_length(scanned.text),
            "originalCharacters": scanned.original_characters,
        }
        message = "only the newest part of the conversation was searched"
        yield ActivationDiagnostic("WORLD_BOOK_SCAN_TEXT_TRUNCATED", "info", message, resource_id, None, details)
    if book.settings.recursive_scanning:
        yield _warning(
            "WORLD_BOOK_RECURSION_DEFERRED", "the book asks for recursion, which this mode doesn't do", resource_id
        )


def _warning(
    code: str, message: str, resource_id: str | None, details: Mapping[str, Json] | None = None
) -> ActivationDiagnostic:
    return ActivationDiagnostic(code, "warning", message, resource_id, None, details or {})
