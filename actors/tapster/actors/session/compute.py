"""The pure heart of an assembly: frozen input in, a finished profile out. It runs whole in a worker thread."""

from collections.abc import Iterator, Mapping

import attrs

from tapster.engine.activation import SessionState
from tapster.engine.activation.sillytavern import ScanResult
from tapster.engine.activation.tavern import (
    ActivationOptions,
    AdapterResult,
    BookReport,
    BookRequest,
    LibraryBook,
    activate_books,
    lore_id,
)
from tapster.engine.ecma import Json
from tapster.engine.limits import AUDIT_MAX_DECISIONS
from tapster.engine.policy import rp_policy_section
from tapster.engine.profile import (
    ActivatedLore,
    CompileRequest,
    Diagnostic,
    LoreEntry,
    ProfileSnapshot,
    compile_profile,
    macro_context,
)
from tapster.engine.profile.sillytavern import GenerationType
from tapster.engine.projection import (
    ActivationContext,
    ContextMetadata,
    HistoryMessage,
    InputMessage,
    PendingInput,
    activate,
    greeting_applies,
)
from tapster.engine.text.js_regex import per_request
from tapster.engine.text.ports import Checkpoint, RegexEngine, go_on
from tapster.engine.trace import BoundedBooks, bounded_books
from tapster.runtime import Threads, check_cancelled

from .ports import Bound
from .rolls import Rolls, RollSeed
from .scan import ScanMoment, said, scan


@attrs.frozen(eq=False)
class FrozenInput:
    """Everything an assembly reads, as it was when it began.

    Attributes:
        draft: an extra message taken as if claimed (previews only).
        is_rp: whether RP mode holds.
        state: what earlier requests left behind; the assembly works on a copy.
        seq: of the next host event.
        resolve_only: a strategy makes the request; no profile is rendered.
    """

    session_id: str
    pending: PendingInput
    history: tuple[HistoryMessage, ...]
    bound: Bound
    seed: RollSeed
    host_context: Mapping[str, Json]
    draft: str | None = None
    is_rp: bool = False
    options: ActivationOptions = attrs.field(factory=ActivationOptions)
    state: SessionState = attrs.field(factory=SessionState)
    trigger: GenerationType = "normal"
    seq: int = 0
    resolve_only: bool = False


@attrs.frozen(eq=False)
class Computed:
    """What came of it; ``state`` is the session's state if this is handed over, ``entries`` the lore in order.

    ``audit_books`` is what a record keeps of the books.
    """

    snapshot: ProfileSnapshot
    activation: ContextMetadata
    policy_text: str | None
    draws: int
    lore: AdapterResult | ScanResult
    state: SessionState
    audit_books: BoundedBooks
    entries: tuple[LoreEntry, ...] = ()


async def compute_in_thread(frozen: FrozenInput, regex: RegexEngine, threads: Threads) -> Computed:
    """``compute`` whole in a worker thread (design §4 rule 16).

    Raises:
        ProfileTooLarge: preset, card and persona alone are over the byte budget.

    Cancellation: the work sees it at its next checkpoint and ends, and only then is ``Cancelled`` raised. So requests
    that nobody waits for can't pile up in the threads.
    """
    return await threads.run(compute, frozen, regex, check_cancelled, share=frozen.session_id)


def compute(frozen: FrozenInput, regex: RegexEngine, checkpoint: Checkpoint = go_on) -> Computed:
    """Activate the books and compile the profile.

    Raises:
        ProfileTooLarge: preset, card and persona alone are over the byte budget.
    """
    pending = frozen.pending
    if frozen.draft is not None:
        draft = InputMessage(None, "user", frozen.draft)
        pending = attrs.evolve(pending, claimed=(*pending.claimed, draft))
    context, _ = activate(pending, frozen.history)
    activated = _activate(frozen, pending, context, per_request(regex), checkpoint)
    rolls = Rolls(frozen.seed, "profile")

    def draw() -> float:
        # A prompt may throw any number of dice, so it isn't one step.
        checkpoint()
        return rolls()

    snapshot = compile_profile(
        CompileRequest(
            session_id=frozen.session_id,
            selection=attrs.evolve(frozen.bound.selection, world_book_ids=frozen.bound.books.effective_ids),
            session_selection=frozen.bound.selection,
            resources=frozen.bound.resources,
            lore=attrs.evolve(
                activated.lore, selection=frozen.bound.books.to_json(), activation=context.metadata.to_json()
            ),
            host_context=frozen.host_context,
            include_greeting=greeting_applies(frozen.history),
            resolve_only=frozen.resolve_only,
        ),
        draw,
        checkpoint=checkpoint,
    )
    policy = rp_policy_section(frozen.bound.policy_section, effective=frozen.is_rp)
    draws = activated.draws + rolls.taken
    state = attrs.evolve(activated.state, rolled=activated.state.rolled + (draws > 0))
    books = bounded_books(map(_with_text_ids, activated.lore.resources))
    return Computed(snapshot, context.metadata, policy, draws, activated.result, state, books, activated.lore.entries)


def _with_text_ids(row: Json) -> Json:
    """An audit row whose entry ids are strings, as v3 sources name them (spec/trace §3 ``entryId``)."""
    # Of the rest an audit would keep nothing (spec/trace §9), and a large book has thousands.
    kept = row["decisions"][:AUDIT_MAX_DECISIONS]
    decisions = [{**item, "entryId": str(item["entryId"])} for item in kept]
    return {**row, "decisions": decisions}


@attrs.frozen(eq=False)
class _Activated:
    """The active lore, the state after it, and the draws it took, in either mode."""

    lore: ActivatedLore
    state: SessionState
    draws: int
    result: AdapterResult | ScanResult


def _activate(
    frozen: FrozenInput, pending: PendingInput, context: ActivationContext, regex: RegexEngine, checkpoint: Checkpoint
) -> _Activated:
    if frozen.bound.scan is None:
        result = activate_books(_book_request(frozen, context), regex=regex, checkpoint=checkpoint)
        return _Activated(_activated(result, frozen.bound), frozen.state, 0, result)
    scanned = scan(_moment(frozen, pending), frozen.bound, frozen.bound.scan, regex, checkpoint)
    return _Activated(scanned.lore, scanned.state, scanned.draws, scanned.result)


def _moment(frozen: FrozenInput, pending: PendingInput) -> ScanMoment:
    resources = frozen.bound.resources
    names = macro_context(frozen.host_context, resources.character, resources.user)
    return ScanMoment(
        frozen.session_id,
        frozen.state,
        said(pending, frozen.history),
        (names.user, names.character),
        frozen.seed,
        frozen.trigger,
    )


def _book_request(frozen: FrozenInput, context: ActivationContext) -> BookRequest:
    bound = frozen.bound
    return BookRequest(
        book_ids=bound.books.effective_ids,
        books=bound.library_books,
        selection=bound.books,
        context=context,
        conversation_text=context.text,
        embedded=bound.embedded,
        options=frozen.options,
    )


def _activated(result: AdapterResult, bound: Bound) -> ActivatedLore:
    entries = tuple(entry for report in result.reports for entry in _lore(report, bound))
    diagnostics = tuple(
        Diagnostic(
            item.code,
            item.severity,
            item.message,
            tuple((key, value) for key, value in item.to_json().items() if key not in ("code", "severity", "message")),
        )
        for item in result.diagnostics
    )
    audit = tuple(report.audit() for report in result.reports)
    return ActivatedLore(entries, diagnostics, audit)


def _lore(report: BookReport, bound: Bound) -> Iterator[LoreEntry]:
    book = bound.library_books.get(report.resource_id)
    revision = book.revision if isinstance(book, LibraryBook) else None
    names = {lore_id(report.resource_id, each): each.entry.comment for each in report.activation.accepted}
    for entry in report.lore:
        yield LoreEntry(
            entry.content, entry.position, entry.id, entry.uid, names.get(entry.id), report.resource_id, revision
        )
