"""Every error the engine raises, as one tree.

TapsterError
├── RequestError      the caller is at fault (HTTP 400 unless ``status`` says otherwise)
├── SourceError       a file, card, template or peer is bad
│   └── FormatError   a resource file does not fit its format; ``slug`` names the check
└── StoreError        a stored document could not be read or written

Each class has a fixed ``code`` that callers may match on. Families whose codes come from a table of the
specification (one class, many rows) pass ``code`` when they are raised; the message is one sentence that
names the value at fault. ``kind`` is the error kind of the contract ("TypeError" or "Error").
"""

from typing import ClassVar, Literal

ErrorKind = Literal["TypeError", "Error"]


class TapsterError(Exception):
    """The root of every declared engine error.

    Attributes:
        code: stable machine word, never translated.
        kind: the contract's error kind.
        status: the HTTP status the contract fixes for it, or None for the table's default.
        details: JSON members that belong to the error (limits, ids, diagnostics).
    """

    code: str = "TAPSTER_ERROR"
    kind: ErrorKind = "Error"
    status: int | None = None
    default_code: ClassVar[str] = "TAPSTER_ERROR"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        status: int | None = None,
        details: dict[str, object] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        if code is not None:
            self.code = code
        if status is not None:
            self.status = status
        self.details: dict[str, object] = details or {}


class RequestError(TapsterError):
    """The caller asked for something that does not make sense."""

    code = "INVALID_REQUEST"
    kind: ErrorKind = "TypeError"


class SourceError(TapsterError):
    """A file, card, template or peer gave something unusable."""

    code = "SOURCE_INVALID"


class FormatError(SourceError):
    """A resource file does not fit its format; ``slug`` is the check of the specification's tables."""

    code = "FORMAT_INVALID"
    kind: ErrorKind = "TypeError"

    def __init__(
        self,
        slug: str,
        message: str,
        *,
        code: str | None = None,
        status: int | None = None,
        details: dict[str, object] | None = None,
    ) -> None:
        super().__init__(message, code=code, status=status, details=details)
        self.slug = slug


class StoreError(TapsterError):
    """A stored document could not be read or written."""

    code = "STORE_FAILED"
