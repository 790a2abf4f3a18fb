"""Tapster's actors behind the ports of the HTTP layer."""

from collections.abc import Mapping
from typing import Any, final

import attrs

from tapster.actors.hosts.port import SessionNotFound
from tapster.actors.library import (
    Characters,
    Presets,
    Relations,
    Settings,
    Templates,
    Users,
    WorldBooks,
)
from tapster.actors.session.embedded import embedded_key
from tapster.actors.store import ResourceKind
from tapster.actors.tapster import Tapster
from tapster.engine.ecma import Json
from tapster.engine.errors import TapsterError
from tapster.engine.policy import Selection
from tapster.engine.trace import (
    History,
    Inspection,
    NoHistory,
    TraceSources,
    inspect_failed,
    needs_history,
)
from tapster.runtime import Phase

from .ports import AuditReading, RpOutcome, RpReading


@final
@attrs.frozen
class SelectionsPort:
    """``ports.Selections``."""

    tapster: Tapster

    async def get(self, session_id: str) -> Selection:
        """A session's selection, the defaults when it has none of its own."""
        return await self.tapster.library.selections.get(embedded_key(session_id))

    async def select(self, session_id: str, patch: Mapping[str, Json]) -> Selection:
        """Bind resources, unless the agent is running."""
        return await self.tapster.select(session_id, patch)

    async def summary(self, kind: ResourceKind, resource_id: str) -> Json:
        """A resource's summary, None when it is gone."""
        return await self.tapster.library.selections.summary(kind, resource_id)


@final
@attrs.frozen
class RoleplayPort:
    """``ports.Roleplay``."""

    tapster: Tapster

    async def get(self, session_id: str) -> RpReading:
        """What is stored and what is queued."""
        answer = await self.tapster.roleplay(session_id)
        return RpReading(answer.stored, answer.pending)

    async def set(self, session_id: str, *, active: bool) -> tuple[RpOutcome, RpReading]:
        """Switch it as ``/rp`` and ``/rp off`` do."""
        answer = await self.tapster.roleplay(session_id, active)
        return answer.outcome, RpReading(answer.stored, answer.pending)

    async def alert(self, session_id: str, alert_id: str | None) -> Json:
        """The session's alert, None when there is none."""
        return _alert(self.tapster.tavern.alerts.find(session_id, alert_id))

    async def take_alert(self, session_id: str, alert_id: str | None) -> Json:
        """The same, and it is gone."""
        return _alert(self.tapster.tavern.alerts.take(session_id, alert_id))


@final
@attrs.frozen
class TracesPort:
    """``ports.Traces``: a read first waits, at most a second, for earlier writes of its session."""

    tapster: Tapster

    async def sources(self, session_id: str) -> TraceSources:
        """A session's records in write order."""
        key = embedded_key(session_id)
        await self.tapster.outbox.settled(key)
        return TraceSources(records=await self.tapster.store.traces(key))

    async def history(self, record: Mapping[str, Json]) -> History:
        """One cold inspect, only when the record refers to the host's history."""
        if not needs_history(record):
            return NoHistory()
        try:
            found = await self.tapster.history(str(record["sessionId"]))
        except SessionNotFound as error:
            return inspect_failed(type(error).__name__, error.code)
        except TapsterError as error:
            return inspect_failed(type(error).__name__, error.code)
        return Inspection(found.meta, [event.to_json() for event in found.events])

    async def storage(self) -> Mapping[str, Json]:
        """The retention in force."""
        return self.tapster.config.store.retention.limits.to_json()

    async def audits(self, session_id: str) -> AuditReading:
        """The audits of a session's records, and the bytes that retention counts."""
        sources = await self.sources(session_id)
        _, size = await self.tapster.store.trace_size()
        return AuditReading(sources, size)


@final
@attrs.frozen
class SessionsPort:
    """``ports.Sessions``."""

    tapster: Tapster

    async def active(self, session_id: str) -> Json:
        """What the session would send now, without text and without claimed input."""
        assembled = await self.tapster.preview(session_id)
        snapshot = assembled.snapshot
        audit = snapshot.audit
        preset = snapshot.resources.preset
        return {
            "selected": None if preset is None else {"id": preset.id, "name": preset.name},
            "selection": audit["selection"],
            "sessionSelection": audit["sessionSelection"],
            "worldBookSelection": audit["worldBookSelection"],
            "resources": audit["resources"],
            "callConfig": snapshot.call_config.to_json(),
            "diagnostics": audit["diagnostics"],
            "audit": audit,
        }


@final
@attrs.define(eq=False)
class Backing:
    """``ports.Tapster`` over the open runtime."""

    tapster: Tapster

    @property
    def presets(self) -> Presets:
        return self.tapster.library.presets

    @property
    def characters(self) -> Characters:
        return self.tapster.library.characters

    @property
    def world_books(self) -> WorldBooks:
        return self.tapster.library.world_books

    @property
    def users(self) -> Users:
        return self.tapster.library.users

    @property
    def relations(self) -> Relations:
        return self.tapster.library.relations

    @property
    def selections(self) -> SelectionsPort:
        return SelectionsPort(self.tapster)

    @property
    def templates(self) -> Templates:
        return self.tapster.library.templates

    @property
    def settings(self) -> Settings:
        return self.tapster.library.settings

    @property
    def roleplay(self) -> RoleplayPort:
        return RoleplayPort(self.tapster)

    @property
    def traces(self) -> TracesPort:
        return TracesPort(self.tapster)

    @property
    def sessions(self) -> SessionsPort:
        return SessionsPort(self.tapster)

    @property
    def is_draining(self) -> bool:
        return self.tapster.lifecycle.phase.value not in (Phase.STARTING, Phase.READY)


def _alert(alert: Any) -> Json:
    if alert is None:
        return None
    return {"id": alert.id, "sessionId": alert.session_id, "toolName": alert.tool_name, "at": alert.at}
