"""The error of a world book that cannot be read.

Source: spec/resources §6.1.
"""

from collections.abc import Sequence
from typing import Final

from tapster.engine.errors import FormatError
from tapster.engine.formats.documents import to_document

from .model import Diagnostic

LIMIT_CODES: Final = frozenset(f"WORLD_BOOK_{bound}_LIMIT" for bound in ("ENTRY", "NODE", "DEPTH", "STRING", "KEY"))


class WorldBookValidationError(FormatError):
    """A world book has errors; ``diagnostics`` holds everything that was found, warnings too."""

    code = "WORLD_BOOK_INVALID"

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        first = next(item for item in diagnostics if item.severity == "error")
        super().__init__(
            first.code, first.message, details={"diagnostics": [to_document(item) for item in diagnostics]}
        )
        self.diagnostics = tuple(diagnostics)

    @property
    def over_limit(self) -> bool:
        """Whether the book is over a bound of the structural guard, which no profile widens."""
        return any(item.severity == "error" and item.code in LIMIT_CODES for item in self.diagnostics)
