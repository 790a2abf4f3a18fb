"""The log of mutating operations: what happened to what, never any text.

A log is a pure recorder: each call gives the line to write, or None when there is nothing to say.

Source: spec/http §10.
"""

import re
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

import attrs

from tapster.engine.ecma import Json, is_number, utf16_slice

Level: TypeAlias = Literal["info", "warn"]

PREFIX: Final = "dsh-tavern.operation "
UNKNOWN_ERROR: Final = "UNKNOWN_ERROR"
_UNITS: Final[Mapping[str, int]] = {
    "operationId": 128,
    "operation": 96,
    "stage": 96,
    "result": 96,
    "errorCode": 96,
    "status": 0,
    "durationMs": 0,
    "method": 32,
    "sessionId": 128,
    "playthroughId": 128,
    "path": 512,
}
"""The members of a line in their order, with the UTF-16 units kept of a string; 0 for a number."""

_PLACES: Final = ("method", "sessionId", "playthroughId", "path")
"""The members that a caller may give; the others come from the call itself."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


@attrs.frozen
class OperationLine:
    """One line: its level and its payload."""

    level: Level
    payload: Mapping[str, Json]


@attrs.define
class OperationLog:
    """The lines of one operation; after a terminal one nothing more is said."""

    operation_id: str
    operation: str
    started_at_ms: float
    _is_over: bool = False
    _duration_ms: float = 0

    def start(self, fields: Mapping[str, Json]) -> OperationLine | None:
        """The operation began."""
        return self._line("info", "start", fields, {})

    def stage(self, name: str, fields: Mapping[str, Json]) -> OperationLine | None:
        """The operation came to a named point."""
        return self._line("info", name, fields, {})

    def success(
        self, now_ms: float, fields: Mapping[str, Json], result: str = "ok", status: Json = None
    ) -> OperationLine | None:
        """The operation is done."""
        ending = {"result": result, "status": status, "durationMs": self._elapsed(now_ms)}
        return self._end("info", "success", fields, ending)

    def failure(
        self, now_ms: float, fields: Mapping[str, Json], code: Json = None, status: Json = None
    ) -> OperationLine | None:
        """The operation failed."""
        named = code if isinstance(code, str) and code else UNKNOWN_ERROR
        ending = {"result": "failure", "errorCode": named, "status": status, "durationMs": self._elapsed(now_ms)}
        return self._end("warn", "failure", fields, ending)

    def _end(
        self, level: Level, stage: str, fields: Mapping[str, Json], ending: Mapping[str, Json]
    ) -> OperationLine | None:
        line = self._line(level, stage, fields, ending)
        self._is_over = True
        return line

    def _elapsed(self, now_ms: float) -> float:
        self._duration_ms = max(self._duration_ms, now_ms - self.started_at_ms)
        return self._duration_ms

    def _line(
        self, level: Level, stage: str, fields: Mapping[str, Json], ending: Mapping[str, Json]
    ) -> OperationLine | None:
        if self._is_over:
            return None
        places = {name: fields.get(name) for name in _PLACES}
        named = {**places, **ending, "operationId": self.operation_id, "operation": self.operation, "stage": stage}
        shown = {name: _shown(named.get(name), units) for name, units in _UNITS.items()}
        return OperationLine(level, {name: value for name, value in shown.items() if value is not None})


def _shown(value: Json, units: int) -> Json:
    if units == 0:
        return value if is_number(value) else None
    return utf16_slice(_CONTROL.sub("\ufffd", value), 0, units) if isinstance(value, str) else None
