"""Roleplay mode of a host's sessions: who wants it, what is queued for the next step, and what was blocked.

Source: spec/loader §12.1, §12.3; spec/http §5.4.
"""

from typing import Final, final

import attrs
import trio

from tapster.actors.library import Library
from tapster.actors.store import SessionKey
from tapster.engine.contract import UiSettings, check_ui_settings
from tapster.engine.ecma import Json
from tapster.engine.policy import (
    RequestResult,
    RpIntent,
    RpSession,
    RpState,
    card_bound_intent,
    command_intent,
    commit_rp,
    request_rp,
)
from tapster.runtime import Clock, Ids

from .ports import SessionHost

MAX_ALERTS: Final = 256
"""Alerts are kept in memory for sessions that someone may still look at; the oldest leaves."""


@attrs.frozen
class RpReading:
    """A session's roleplay mode and what is queued for its next step."""

    rp: RpState
    pending: RpIntent | None = None


@attrs.frozen
class RpAlert:
    """A tool call that roleplay mode blocked; ``at`` in epoch milliseconds."""

    id: str
    session_id: str
    tool_name: str
    at: int

    def to_json(self) -> dict[str, Json]:
        """The alert under its contract names."""
        return {"id": self.id, "sessionId": self.session_id, "toolName": self.tool_name, "at": self.at}


@final
class Roleplay:
    """The roleplay modes of one host's sessions; changes of them follow each other."""

    def __init__(self, library: Library, host: SessionHost, host_id: str, clock: Clock, ids: Ids) -> None:
        self._library = library
        self._host = host
        self._host_id = host_id
        self._clock = clock
        self._ids = ids
        self._pending: dict[str, RpIntent] = {}
        self._alerts: dict[str, RpAlert] = {}
        # One lock for all: a change is rare, and it waits for one durable write.
        self._changing = trio.Lock()

    async def get(self, session_id: str) -> RpReading:
        """What is stored and what is queued."""
        selection = await self._library.selections.get(self._key(session_id))
        return RpReading(selection.rp, self._pending.get(session_id))

    async def set(self, session_id: str, *, active: bool) -> tuple[RequestResult, RpReading]:
        """Turn it on or off as ``/rp`` does; a running turn keeps its mode until its next step."""
        return await self._request(session_id, command_intent(on=active))

    async def card_changed(self, session_id: str, previous: str | None, card: str | None) -> None:
        """Follow a card that was bound or unbound, if the setting says so."""
        stored = (await self.get(session_id)).rp
        follows = (await self._ui_settings()).rp_follow_character
        wanted = card_bound_intent(stored, previous=previous, card=card, follow=follows)
        if wanted is not None:
            await self._request(session_id, wanted)

    async def commit_pending(self, session_id: str) -> None:
        """Carry out what was queued; called at a session's step boundary."""
        async with self._changing:
            wanted = self._pending.pop(session_id, None)
            if wanted is not None:
                await self._commit(session_id, (await self.get(session_id)).rp, wanted)

    def block(self, session_id: str, tool_name: str) -> None:
        """Record a blocked call; a repeat updates the tool and the time of an alert that nobody took."""
        known = self._alerts.pop(session_id, None)
        alert_id = known.id if known else self._ids.uuid()
        self._alerts[session_id] = RpAlert(alert_id, session_id, tool_name, self._clock.now_ms())
        if len(self._alerts) > MAX_ALERTS:
            del self._alerts[next(iter(self._alerts))]

    async def alert(self, session_id: str, alert_id: str | None = None) -> Json:
        """The session's alert, None when there is none or it has another id."""
        await trio.lowlevel.checkpoint()
        found = self._alerts.get(session_id)
        return None if found is None or alert_id not in (None, found.id) else found.to_json()

    async def take_alert(self, session_id: str, alert_id: str | None = None) -> Json:
        """The session's alert, which is then gone."""
        found = await self.alert(session_id, alert_id)
        if found is not None:
            del self._alerts[session_id]
        return found

    async def _request(self, session_id: str, wanted: RpIntent) -> tuple[RequestResult, RpReading]:
        async with self._changing:
            reading = await self.get(session_id)
            session = RpSession(
                reading.rp,
                reading.pending,
                live=self._host.sandbox(session_id) is not None,
                turn_open=self._host.is_running(session_id),
            )
            decision = request_rp(session, wanted)
            self._pending.pop(session_id, None)
            if decision.pending is not None:
                self._pending[session_id] = decision.pending
            if decision.commit is not None:
                await self._commit(session_id, reading.rp, decision.commit)
            return decision.result, await self.get(session_id)

    async def _commit(self, session_id: str, stored: RpState, wanted: RpIntent) -> None:
        commit = commit_rp(stored, wanted, self._host.sandbox(session_id))
        await self._library.selections.save_rp(self._key(session_id), commit.state)
        if commit.sandbox is not None:
            await self._host.set_sandbox(session_id, commit.sandbox)

    async def _ui_settings(self) -> UiSettings:
        stored = await self._library.settings.get("ui-settings")
        if stored is None:
            return UiSettings()
        return check_ui_settings({name: value for name, value in stored.items() if name != "schemaVersion"})

    def _key(self, session_id: str) -> SessionKey:
        return SessionKey(self._host_id, session_id)
