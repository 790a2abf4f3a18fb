"""Why each entry is in or out, in words (English and Chinese) and as data."""

from collections.abc import Iterator

from tapster.engine.activation.sillytavern import ScanResult
from tapster.engine.activation.tavern import AdapterResult

from .explanation import Explanation as Explanation
from .sillytavern import explain_decision as explain_decision
from .sillytavern import explain_scan as explain_scan
from .tavern import explain_book_decision as explain_book_decision
from .tavern import explain_books as explain_books
from .words import Language as Language


def explain(result: ScanResult | AdapterResult, language: Language = "en") -> Iterator[Explanation]:
    """The explanation of every entry of an activation, whichever mode it ran in."""
    if isinstance(result, ScanResult):
        return explain_scan(result, language)
    return explain_books(result, language)
