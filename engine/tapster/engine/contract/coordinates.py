"""Event coordinates: a seq is only valid in the log format it was read in.

Source: spec/http §9.
"""

import re
from typing import Final, final

import attrs

from tapster.engine.ecma import Json, is_safe_integer
from tapster.engine.errors import RequestError
from tapster.engine.trace.host import event_message, member

FIRST_EXPLICIT_VERSION = 4
"""From this log format on a client has to say which format its seqs belong to."""

_MIGRATED_ID = re.compile(r"v2-to-v3-system-[a-f0-9]{64}")


@final
class _Absent:
    """The type of `ABSENT`."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = _Absent()
"""A request that gave no version (JSON null is a given one, and an invalid one)."""


class CoordinatesInvalid(RequestError):
    """A given log format version can't be one."""

    code = "PLAY_COORDINATES_INVALID"
    status = 400


class CoordinatesMigrationRequired(RequestError):
    """Seqs of another log format would point at the wrong events."""

    code = "PLAY_COORDINATES_MIGRATION_REQUIRED"
    kind = "Error"
    status = 409


@attrs.frozen
class Coordinates:
    """Which log format a session's seqs belong to; the version is None when the host doesn't say."""

    version: int | None
    is_migrated: bool

    def to_json(self) -> dict[str, Json]:
        """The coordinates under their contract names."""
        return {"sessionFormatVersion": self.version, "migratedFromV2": self.is_migrated}


def coordinates_of(inspection: Json) -> Coordinates:
    """The coordinates of an inspected session."""
    version = member(inspection, "meta", "version")
    events = member(inspection, "events")
    is_migrated = any(
        member(event, "type") == "system/message" and _is_migrated_id(member(event_message(event), "id"))
        for event in (events if isinstance(events, list | tuple) else ())
    )
    return Coordinates(int(version) if is_safe_integer(version) else None, is_migrated)


def check_coordinates(requested: Json | _Absent, session: Coordinates) -> None:
    """Accept seqs of a log format version for a session.

    Raises:
        CoordinatesInvalid: the given version isn't a non-negative integer.
        CoordinatesMigrationRequired: it is another format than the session's, or must be given and isn't.
    """
    if isinstance(requested, _Absent):
        if session.is_migrated or (session.version is not None and session.version >= FIRST_EXPLICIT_VERSION):
            raise CoordinatesMigrationRequired(f"say which log format the seqs belong to; the session has {session}")
        return
    if not is_safe_integer(requested) or requested < 0:
        raise CoordinatesInvalid(f"{requested!r} is not a log format version")
    if session.version is not None and requested != session.version:
        raise CoordinatesMigrationRequired(f"the seqs are of log format {requested}, the session has {session.version}")


def _is_migrated_id(value: Json) -> bool:
    return isinstance(value, str) and _MIGRATED_ID.fullmatch(value) is not None
