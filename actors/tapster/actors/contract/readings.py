"""What the contract's routes read of a session beside its records."""

import attrs

from tapster.engine.policy import RpIntent, RpState
from tapster.engine.trace import TraceSources


@attrs.frozen
class RpReading:
    """A session's roleplay mode and what is queued for its next step."""

    rp: RpState
    pending: RpIntent | None = None


@attrs.frozen
class AuditReading:
    """A session's records and the bytes that all records take."""

    sources: TraceSources
    persisted_bytes: int
