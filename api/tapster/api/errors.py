"""The one table from errors to HTTP answers.

Each family of contract routes has its own body shape and its own codes for errors that have none; Tapster's own routes
send ``{"code", "message", "details"}``. Whatever is not declared is a 500 that tells nothing; its class is logged.

Source: spec/http §3, spec/trace §12.
"""

import math
from collections.abc import Mapping
from typing import Literal, TypeAlias

import attrs

from tapster.engine.ecma import Json
from tapster.engine.errors import FormatError, RequestError, SourceError, StoreError, TapsterError
from tapster.runtime import ActorGone, Draining, ManyErrors, Overloaded, Quarantined, RuntimeFault

from .answers import Answer

Family: TypeAlias = Literal[
    "presets", "audit", "settings", "users", "world-books", "characters", "templates", "v2", "v3", "own"
]
GENERIC_CODES = frozenset(cls.code for cls in (TapsterError, RequestError, SourceError, FormatError, StoreError)) | {
    "REQUEST_BODY_TOO_LARGE",
    "REQUEST_BODY_TIMEOUT",
}
"""Codes of classes that say only whose fault it is; a family puts its own code in their place."""

UNCODED = frozenset({"WORLD_BOOK_INVALID", "UNSUPPORTED_FILE"})
"""Codes of our own for format errors that the contract gives none: its routes send their family's."""

RETRY_AFTER_S = 1
MAX_MESSAGE = 1_000


@attrs.frozen
class Shape:
    """How a family writes errors: where the text goes, and the codes for errors that have none."""

    is_object: bool
    invalid: str | None
    failed: str | None
    extras: tuple[str, ...] = ()


SHAPES: Mapping[Family, Shape] = {
    "presets": Shape(False, None, None),
    "audit": Shape(False, None, None),
    "settings": Shape(False, None, None),
    "users": Shape(True, "INVALID_USER_REQUEST", "USER_API_ERROR"),
    "world-books": Shape(True, "INVALID_WORLD_BOOK_REQUEST", "WORLD_BOOK_API_ERROR"),
    "characters": Shape(True, "INVALID_CHARACTER_REQUEST", "CHARACTER_API_ERROR", ("field", "details")),
    "templates": Shape(True, "INVALID_SESSION_TEMPLATE_REQUEST", "SESSION_TEMPLATE_API_ERROR", ("diagnostics",)),
}

FAULT_STATUS: Mapping[type[RuntimeFault], int] = {
    Overloaded: 503,
    Draining: 503,
    ActorGone: 503,
    Quarantined: 503,
}

CODE_STATUS: Mapping[str, int] = {
    "ARTIFACT_TOO_LARGE": 413,
    "CHARACTER_DOCUMENT_TOO_LARGE": 413,
    "CHARACTER_WORLD_BOOK_TOO_LARGE": 413,
    "CHARACTER_ID_EXISTS": 409,
    "CHARACTER_NOT_FOUND": 404,
    "CHARACTER_PLAYTHROUGH_DETACH_REQUIRED": 409,
    "PLAY_CHARACTER_RELINK_CONFLICT": 409,
    "SESSION_CONFIGURATION_UNAVAILABLE": 409,
    "SESSION_SELECTION_LIMIT_REACHED": 409,
    "SESSION_SELECTION_STORAGE_LIMIT_REACHED": 413,
    "RESOURCE_WORLD_BOOK_BINDING_LIMIT_REACHED": 409,
    "RESOURCE_WORLD_BOOK_BINDING_STORAGE_LIMIT_REACHED": 413,
    "USER_ID_EXISTS": 409,
    "USER_NOT_FOUND": 404,
    "USER_WORLD_BOOK_BINDING_LIMIT_REACHED": 409,
    "USER_WORLD_BOOK_BINDING_STORAGE_LIMIT_REACHED": 413,
    "WORLD_BOOK_ARTIFACT_TOO_LARGE": 413,
    "WORLD_BOOK_ID_EXISTS": 409,
    "WORLD_BOOK_NOT_FOUND": 404,
}
"""Statuses that a code alone decides, for errors that bring none."""

UNEXPECTED_TEXT = "the request failed inside Tapster; see the log of the server"


@attrs.frozen
class Failure:
    """An error as the families write it; ``code`` None when the error has none of its own."""

    status: int
    code: str | None
    message: str
    details: Mapping[str, object] = attrs.Factory(dict)
    retry_after_s: int | None = None


def failure_of(error: Exception) -> Failure:
    """What any error means to a client."""
    if isinstance(error, ManyErrors) and error.causes:
        return failure_of(error.causes[0])
    if isinstance(error, TapsterError):
        code = None if error.code in GENERIC_CODES else error.code
        return Failure(status_of(error), code, bounded(error.message), error.details)
    if isinstance(error, RuntimeFault):
        status = next((status for kind, status in FAULT_STATUS.items() if isinstance(error, kind)), 500)
        wait_s = math.ceil(error.retry_after_s) if isinstance(error, Overloaded) else RETRY_AFTER_S
        return Failure(status, error.code, bounded(str(error)), retry_after_s=wait_s if status == 503 else None)
    return Failure(500, None, UNEXPECTED_TEXT)


def bounded(message: str) -> str:
    """A message of a length that a person reads: what it quotes may be as long as a client made it."""
    return message if len(message) <= MAX_MESSAGE else message[:MAX_MESSAGE] + "…"


def status_of(error: TapsterError) -> int:
    """The status of a declared error: its own, else its code's, else by whose fault it is."""
    if error.status is not None:
        return error.status
    if error.code in CODE_STATUS:
        return CODE_STATUS[error.code]
    return 500 if isinstance(error, StoreError) or not isinstance(error, RequestError | SourceError) else 400


def error_answer(family: Family, error: Exception) -> Answer:
    """The answer of a family to an error."""
    failure = failure_of(error)
    headers = {} if failure.retry_after_s is None else {"Retry-After": str(failure.retry_after_s)}
    if failure.status in (408, 413):
        headers["Connection"] = "close"
    return Answer(_body(family, failure), failure.status, headers)


def _body(family: Family, failure: Failure) -> Json:
    if family == "own":
        code = failure.code or ("INVALID_REQUEST" if failure.status < 500 else "INTERNAL_ERROR")
        return {"code": code, "message": failure.message, "details": dict(failure.details)}
    if family == "v3":
        return {"ok": False, **_v3_error(failure)}
    if family == "v2":
        return {"ok": False, "error": failure.message, **({} if failure.code is None else {"code": failure.code})}
    shape = SHAPES[family]
    if not shape.is_object:
        return {"ok": False, "error": failure.message}
    own = None if failure.code in UNCODED else failure.code
    error: dict[str, Json] = {
        "code": own or (shape.invalid if failure.status < 500 else shape.failed),
        "message": failure.message,
    }
    for name in shape.extras:
        value = _details(failure) if name == "details" else failure.details.get(name)
        if value:
            error[name] = value
    return {"ok": False, "error": error}


def _details(failure: Failure) -> dict[str, object]:
    return {name: value for name, value in failure.details.items() if name != "field"}


def _v3_error(failure: Failure) -> dict[str, Json]:
    """v3 tells nothing of an error on the server's side but one fixed text."""
    if failure.status == 500:
        return {"code": "TRACE_READ_FAILED", "error": "the trace records could not be read"}
    return {"code": failure.code or "INVALID_REQUEST", "error": failure.message}
