"""How long traces stay: the contract's limits, and bounds that a person may add or raise.

Source: spec/trace §10; design §5.
"""

from collections.abc import Mapping
from typing import Any, final

import attrs

from tapster.engine.ecma import Json, is_safe_integer
from tapster.engine.trace import RetentionLimits, TraceBook
from tapster.engine.trace.retention import Key, Row

_EMPTY_FILE_BYTES = len('{"schemaVersion":4,"records":[]}')


@final
@attrs.frozen
class Retention:
    """What is kept of all sessions' traces, oldest write dropped first.

    Attributes:
        limits: count and bytes; the contract's by default.
        max_age_ms: records older than this go when another is written; None keeps any age.
        max_per_session: records of one session; None bounds only the total.
    """

    limits: RetentionLimits = attrs.Factory(RetentionLimits)
    max_age_ms: int | None = None
    max_per_session: int | None = None

    def to_json(self) -> dict[str, Json]:
        """The ``storage`` object of the API: the contract's members, and a bound only where one was added."""
        added = {"maxAgeMs": self.max_age_ms, "maxRecordsPerSession": self.max_per_session}
        return {**self.limits.to_json(), **{name: bound for name, bound in added.items() if bound is not None}}

    def is_over(self, records: int, size_bytes: int) -> bool:
        """Whether that many records of that many bytes are too much."""
        total = _EMPTY_FILE_BYTES + size_bytes + max(0, records - 1)
        return records > self.limits.max_records or total > self.limits.max_total_bytes

    def row(self, record: Mapping[str, Json], present: Mapping[str, Json] | None) -> Row:
        """The record as it's stored in place of the present one.

        Raises:
            RequestError: it isn't a schema-4 record with a usable session and id.
        """
        rows = list(self._book_of(present).put([record]).rows.values())
        return rows[-1]

    def audited(self, session: str, audit: Mapping[str, Json], present: Mapping[str, Json] | None) -> Row | None:
        """The record with its audit set; None when the present one stays as it is.

        Raises:
            RequestError: the audit has no capture id, or the session id is bad.
        """
        before = self._book_of(present)
        after = before.put_audits(session, [audit])
        return next(iter(after.rows.values())) if after != before else None

    @staticmethod
    def recorded_at(record: Mapping[str, Json]) -> int:
        """When a record was made, in epoch milliseconds; 0 when it doesn't say."""
        at: Any = record.get("recordedAt")
        return int(at) if is_safe_integer(at) else 0

    def _book_of(self, present: Mapping[str, Json] | None) -> TraceBook:
        rows: dict[Key, Row] = {}
        if present is not None:
            # The size of the present row plays no part: it's replaced, or measured again.
            rows[present["sessionId"], present["id"]] = Row(present, 0)
        return TraceBook(self.limits, rows)
