"""The one error class of MVU; its code comes from the table of the specification.

Source: spec/text_and_mvu C1-C6.
"""

from tapster.engine.errors import SourceError


class MvuError(SourceError):
    """Variables, an update or a schema are not usable; ``code`` is one of the ``MVU_…`` words."""

    code = "MVU_JSON"

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message, code=code)


SKIPPED_CODES = frozenset({"MVU_SCHEMA", "MVU_PATH_MISSING"})
"""Errors that cost only the command they happen in."""
