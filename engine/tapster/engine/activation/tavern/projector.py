"""From accepted candidates to lore entries, diagnostics and the audit's decisions.

Source: spec/activation §6.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

import attrs

from tapster.engine.activation.keys import TOO_LONG, UNSAFE_DISABLED
from tapster.engine.ecma import Json
from tapster.engine.formats.world_books import WorldBook, WorldBookEntry
from tapster.engine.lazy_list import LazyList

from .candidate import Candidate
from .decision import (
    EMPTY_CONTENT,
    EXACT_POSITIONS,
    Decision,
    LorePosition,
    lore_position,
    text_with_resource_id,
    withheld_reason,
)
from .run import Activation

_REGEX_CODES = {UNSAFE_DISABLED: "WORLD_BOOK_REGEX_DISABLED", TOO_LONG: "WORLD_BOOK_REGEX_TOO_LONG"}


@attrs.frozen
class LoreEntry:
    """One delivered entry; content is raw, macros run later."""

    id: str
    uid: int | str
    content: str
    position: LorePosition

    def to_json(self) -> Json:
        """The entry in the contract's field names."""
        return attrs.asdict(self)


@attrs.frozen
class ActivationDiagnostic:
    """One finding of an activation; ``details`` hold the members that belong to its code."""

    code: str
    severity: Literal["error", "warning", "info"]
    message: str
    resource_id: str | None = None
    entry_id: int | str | None = None
    details: Mapping[str, Json] = attrs.field(factory=dict)

    def to_json(self) -> Json:
        """The diagnostic in the contract's field names; ids only where it has them."""
        value: dict[str, Json] = {"code": self.code, "severity": self.severity, "message": self.message}
        if self.resource_id is not None:
            value["resourceId"] = self.resource_id
        if self.entry_id is not None:
            value["entryId"] = self.entry_id
        return value | dict(self.details)


def lore_id(resource_id: str, candidate: Candidate) -> str:
    """The id of a delivered entry."""
    if not resource_id:
        return candidate.key
    return f"{resource_id}:{candidate.entry.uid if candidate.entry.uid != '' else candidate.key}"


def lore_entries(resource_id: str, activation: Activation) -> tuple[LoreEntry, ...]:
    """The delivered entries in rank order."""
    return tuple(
        LoreEntry(
            lore_id(resource_id, candidate),
            candidate.entry.uid,
            candidate.entry.content,
            lore_position(candidate.entry),
        )
        for candidate in activation.accepted
        if withheld_reason(candidate.entry) is None
    )


def decisions(resource_id: str, activation: Activation) -> Iterator[Decision]:
    """The decision on every entry: rejected in index order, then accepted in rank order."""
    return (_decision(resource_id, activation, index) for index in range(activation.entry_count))


def decision_list(resource_id: str, activation: Activation) -> LazyList:
    """The same as JSON; what the text didn't touch is written once for the book, not for each request."""

    def written(index: int) -> str | None:
        rest = activation.untouched_text(index)
        return None if rest is None else text_with_resource_id(resource_id, rest)

    return LazyList(activation.entry_count, lambda index: _decision(resource_id, activation, index).to_json(), written)


def _decision(resource_id: str, activation: Activation, index: int) -> Decision:
    rejected = len(activation.rejected)
    if index < rejected:
        return Decision.rejected(resource_id, activation.rejected[index])
    return Decision.accepted(resource_id, activation.accepted[index - rejected])


def book_diagnostics(resource_id: str, book: WorldBook, activation: Activation) -> Iterator[ActivationDiagnostic]:
    """The diagnostics of one book: its own, regex keys, then what the projection had to do."""
    for own in book.diagnostics:
        yield ActivationDiagnostic(own.code, own.severity, own.message, resource_id, None, {"path": own.path})
    yield from _regex_diagnostics(resource_id, (*activation.accepted, *activation.rejected))
    for candidate in activation.accepted:
        diagnostic = _projection_diagnostic(resource_id, candidate.entry)
        if diagnostic is not None:
            yield diagnostic


def _regex_diagnostics(resource_id: str, candidates: Iterable[Candidate]) -> Iterator[ActivationDiagnostic]:
    for candidate in candidates:
        for invalid in candidate.evaluation.invalid_keys:
            yield ActivationDiagnostic(
                _REGEX_CODES.get(invalid.code, "WORLD_BOOK_INVALID_REGEX"),
                "warning",
                f"the {invalid.key_set} regex key {invalid.key!r} was not run: {invalid.code}",
                resource_id,
                candidate.entry.uid,
                {"keySet": invalid.key_set, "detail": invalid.code},
            )


def _projection_diagnostic(resource_id: str, entry: WorldBookEntry) -> ActivationDiagnostic | None:
    withheld = withheld_reason(entry)
    if withheld == EMPTY_CONTENT:
        code, message = "WORLD_BOOK_EMPTY_CONTENT_SKIPPED", "the entry activated but has no content"
        return ActivationDiagnostic(code, "info", message, resource_id, entry.uid)
    if withheld is not None:
        code, message = "WORLD_BOOK_OUTLET_SKIPPED", "the entry belongs to an outlet, which this renderer lacks"
        return ActivationDiagnostic(code, "info", message, resource_id, entry.uid)
    if entry.position in EXACT_POSITIONS:
        return None
    message = f"position {entry.position} became {lore_position(entry)!r} of the character definition"
    return ActivationDiagnostic("WORLD_BOOK_POSITION_APPROXIMATED", "warning", message, resource_id, entry.uid)
