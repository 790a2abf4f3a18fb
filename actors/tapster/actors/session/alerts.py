"""Alerts about tool calls that RP mode blocked: in memory, one a session, until someone takes it.

Source: spec/loader §12.3, spec/http §13.
"""

from typing import Final, final

import attrs

from tapster.runtime import Clock, Ids

KEPT: Final = 1_000
"""Alerts that nobody has taken; one more drops the one that has waited longest."""


@attrs.frozen
class RpAlert:
    """A blocked call; ``at`` is epoch milliseconds of the latest one."""

    id: str
    session_id: str
    tool_name: str
    at: int


@final
class RpAlerts:
    """The alerts of one host by session; a repeated block updates tool and time only."""

    def __init__(self, clock: Clock, ids: Ids) -> None:
        self._clock = clock
        self._ids = ids
        self._by_session: dict[str, RpAlert] = {}

    def record(self, session_id: str, tool_name: str) -> RpAlert:
        """Note a blocked call."""
        known = self._by_session.get(session_id)
        now = self._clock.now_ms()
        alert = (
            RpAlert(self._ids.uuid(), session_id, tool_name, now)
            if known is None
            else attrs.evolve(known, tool_name=tool_name, at=now)
        )
        if known is None and len(self._by_session) >= KEPT:
            del self._by_session[next(iter(self._by_session))]
        self._by_session[session_id] = alert
        return alert

    def find(self, session_id: str, alert_id: str | None = None) -> RpAlert | None:
        """The session's alert, with that id when one is given."""
        alert = self._by_session.get(session_id)
        return alert if alert is not None and alert_id in (None, alert.id) else None

    def take(self, session_id: str, alert_id: str | None = None) -> RpAlert | None:
        """The same, and it is gone."""
        alert = self.find(session_id, alert_id)
        if alert is not None:
            del self._by_session[session_id]
        return alert
