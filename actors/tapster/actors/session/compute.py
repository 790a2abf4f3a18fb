"""The pure heart of an assembly: frozen input in, a finished profile out. It runs whole in a worker thread."""

from collections.abc import Iterator, Mapping

import attrs
import trio

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
from tapster.engine.policy import rp_policy_section
from tapster.engine.profile import (
    ActivatedLore,
    CompileRequest,
    Diagnostic,
    LoreEntry,
    ProfileSnapshot,
    compile_profile,
)
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
from tapster.runtime import Threads

from .ports import Bound
from .rolls import Rolls, RollSeed


@attrs.frozen(eq=False)
class FrozenInput:
    """Everything an assembly reads, as it was when it began.

    Attributes:
        draft: an extra message taken as if claimed (previews only).
        is_rp: whether RP mode holds.
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


@attrs.frozen(eq=False)
class Computed:
    """What came of it."""

    snapshot: ProfileSnapshot
    activation: ContextMetadata
    policy_text: str | None
    draws: int
    lore: AdapterResult


async def compute_in_thread(frozen: FrozenInput, regex: RegexEngine, threads: Threads) -> Computed:
    """``compute`` whole in a worker thread (design §4 rule 16).

    Raises:
        ProfileTooLarge: preset, card and persona alone are over the byte budget.

    Cancellation: the work sees it at its next checkpoint and ends, and only then is ``Cancelled`` raised. So requests
    that nobody waits for can't pile up in the threads.
    """
    return await threads.run(compute, frozen, regex, trio.from_thread.check_cancelled)


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
    lore = activate_books(_book_request(frozen, context), regex=per_request(regex), checkpoint=checkpoint)
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
            lore=_activated(lore, frozen, context.metadata),
            host_context=frozen.host_context,
            include_greeting=greeting_applies(frozen.history),
        ),
        draw,
        checkpoint=checkpoint,
    )
    policy = rp_policy_section(frozen.bound.policy_section, effective=frozen.is_rp)
    return Computed(snapshot, context.metadata, policy, rolls.taken, lore)


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


def _activated(result: AdapterResult, frozen: FrozenInput, metadata: ContextMetadata) -> ActivatedLore:
    entries = tuple(entry for report in result.reports for entry in _lore(report, frozen.bound))
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
    return ActivatedLore(entries, diagnostics, audit, frozen.bound.books.to_json(), metadata.to_json())


def _lore(report: BookReport, bound: Bound) -> Iterator[LoreEntry]:
    book = bound.library_books.get(report.resource_id)
    revision = book.revision if isinstance(book, LibraryBook) else None
    names = {lore_id(report.resource_id, each): each.entry.comment for each in report.activation.accepted}
    for entry in report.lore:
        yield LoreEntry(
            entry.content, entry.position, entry.id, entry.uid, names.get(entry.id), report.resource_id, revision
        )
