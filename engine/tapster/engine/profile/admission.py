"""Which preset parameters a provider refused, and when a retry without them is allowed.

Source: spec/loader §10.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final, Literal, TypeAlias

import attrs

from tapster.engine.ecma import Json, utf16_slice
from tapster.engine.limits import ADMISSION_MAX_RETRIES, ADMISSION_MESSAGE_UNITS

Parameter: TypeAlias = Literal["temperature", "maxTokens", "reasoningEffort", "stop"]
PARAMETERS: Final[tuple[Parameter, ...]] = ("temperature", "maxTokens", "reasoningEffort", "stop")

_EFFORT_CODE: Final = "UNSUPPORTED_REASONING_EFFORT"
_OTHER_CAUSES: Final = (
    "AUTH", "QUOTA", "RATE_LIMIT", "CONTEXT_WINDOW", "ABORT", "TIMEOUT", "TRANSPORT", "SERVER", "NETWORK",
)  # fmt: skip
_OTHER_STATUSES: Final = frozenset({401, 402, 403, 408, 413, 429})
_REJECTION_CODES: Final = frozenset(
    {"INVALID_REQUEST", "UNSUPPORTED_PARAMETER", "INVALID_PARAMETER", _EFFORT_CODE, "HTTP_400", "HTTP_422"}
)
_REJECTION_STATUSES: Final = frozenset({400, 422})
_PHRASE: Final = re.compile(
    r"not supported|unsupported|(?:does not|doesn't) support|not allowed|not permitted|invalid|out of range"
    r"|must be|must not|\bonly (?:(?:the|a) )?(?:default|supported)|cannot (?:set|use|specify)|unrecognized"
    r"|unknown (?:parameter|argument)|extra inputs? (?:are )?not permitted",
    re.IGNORECASE,
)
_NAMES: Final[Mapping[Parameter, re.Pattern[str]]] = {
    "temperature": re.compile(r"\btemperature\b", re.IGNORECASE | re.ASCII),
    "maxTokens": re.compile(r"\bmax[ _-]?(?:completion[ _-]?|output[ _-]?)?tokens\b", re.IGNORECASE | re.ASCII),
    "reasoningEffort": re.compile(r"\breasoning[ _.-]?effort\b|\boutput_config\.effort\b", re.IGNORECASE | re.ASCII),
    "stop": re.compile(r"\bstop(?:[ _-]?sequences?)?\b", re.IGNORECASE | re.ASCII),
}


@attrs.frozen
class CallFailure:
    """How a model call failed, as the provider or the host's resolver told it."""

    code: str | None = None
    status: int | None = None
    message: str = ""


@attrs.frozen
class Withdrawal:
    """One parameter taken out of a request series."""

    parameter: Parameter
    stage: Literal["preflight", "provider"]
    code: str | None
    status: int | None = None

    def to_json(self) -> Json:
        """The withdrawal as traces hold it."""
        value: dict[str, Json] = {
            "parameter": self.parameter,
            "stage": self.stage,
            "reason": "parameter-rejected",
            "code": self.code,
        }
        return value if self.status is None else {**value, "status": self.status}


@attrs.frozen
class Series:
    """A request series' admission so far: what was withdrawn, and how often it was retried."""

    withdrawn: tuple[Withdrawal, ...] = ()
    retries: int = 0

    def admitted(self, supplied: Mapping[str, Json]) -> dict[str, Json]:
        """The preset's parameters without the withdrawn ones."""
        gone = {withdrawal.parameter for withdrawal in self.withdrawn}
        return {key: value for key, value in supplied.items() if key not in gone}


def rejected_parameters(failure: CallFailure, supplied: Iterable[str]) -> tuple[Parameter, ...]:
    """The preset's own parameters that a failure names as refused, in fixed order; empty for other failures."""
    code = (failure.code or "").upper()
    if not _may_be_rejection(code, failure.status):
        return ()
    given = set(supplied)
    if code == _EFFORT_CODE:
        return ("reasoningEffort",) if "reasoningEffort" in given else ()
    message = utf16_slice(failure.message, 0, ADMISSION_MESSAGE_UNITS)
    if not _PHRASE.search(message):
        return ()
    return tuple(name for name in PARAMETERS if name in given and _NAMES[name].search(message))


def _may_be_rejection(code: str, status: int | None) -> bool:
    if any(word in code for word in _OTHER_CAUSES):
        return False
    if status is not None and (status in _OTHER_STATUSES or status >= 500):
        return False
    return code in _REJECTION_CODES or status in _REJECTION_STATUSES


def withdraw_preflight(series: Series, failure: CallFailure, supplied: Mapping[str, Json]) -> Series | None:
    """The series without what the host's resolver refused; None when the error is another and must propagate."""
    return _withdraw(series, failure, supplied, "preflight")


def withdraw_after_error(
    series: Series, failure: CallFailure, supplied: Mapping[str, Json], *, output_started: bool, cancelled: bool
) -> Series | None:
    """The series to retry with, or None when the host's own error handling applies.

    A retry needs that no output started, nobody cancelled, a still applied parameter is named, and fewer than four
    retries were made.
    """
    if output_started or cancelled or series.retries >= ADMISSION_MAX_RETRIES:
        return None
    found = _withdraw(series, failure, supplied, "provider")
    return None if found is None else attrs.evolve(found, retries=series.retries + 1)


def _withdraw(
    series: Series, failure: CallFailure, supplied: Mapping[str, Json], stage: Literal["preflight", "provider"]
) -> Series | None:
    fields = rejected_parameters(failure, series.admitted(supplied))
    if not fields:
        return None
    taken = tuple(Withdrawal(field, stage, failure.code, failure.status) for field in fields)
    return attrs.evolve(series, withdrawn=(*series.withdrawn, *taken))
