"""Tapster's actors behind the ports of the HTTP layer."""

from collections.abc import Mapping
from typing import Any, final

import attrs

from tapster.actors.contract import ContractTraces, RpReading
from tapster.actors.introspection import RuntimeReading, read_runtime
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
from tapster.actors.store import HOME_HOST, ResourceKind
from tapster.actors.store.files.traces import LegacyTraces
from tapster.actors.tapster import Tapster
from tapster.engine.ecma import Json
from tapster.engine.policy import RequestResult, Selection
from tapster.runtime import Phase

from .backing_sessions import SessionsPort
from .backing_strategies import StrategiesPort
from .backing_upkeep import UpkeepPort


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

    async def set(self, session_id: str, *, active: bool) -> tuple[RequestResult, RpReading]:
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
class ImportsPort:
    """``ports.Imports``."""

    tapster: Tapster

    async def import_file(self, file_name: str, data: bytes) -> Json:
        """Take a file into the library, whole or not at all."""
        report = await self.tapster.library.imports.import_file(file_name, data)
        return {
            "fileName": report.file_name,
            "profile": report.profile,
            "resources": [{"kind": each.kind, "id": each.id, "name": each.name} for each in report.resources],
            "notes": [{"code": note.code, "message": note.message, "path": note.path} for note in report.notes],
        }


@final
@attrs.frozen
class RuntimePort:
    """``ports.Runtime``."""

    tapster: Tapster

    def reading(self) -> RuntimeReading:
        """One look at everything that lives."""
        return read_runtime(self.tapster)


@final
@attrs.define(eq=False)
class Backing:
    """``ports.Tapster`` over the open runtime."""

    tapster: Tapster
    legacy: LegacyTraces | None = None

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
    def traces(self) -> ContractTraces:
        retention = self.tapster.config.store.retention
        return ContractTraces(self.tapster.store, self.tapster.outbox, HOME_HOST, retention, self.legacy)

    @property
    def sessions(self) -> SessionsPort:
        return SessionsPort(self.tapster)

    @property
    def strategies(self) -> StrategiesPort:
        return StrategiesPort(self.tapster)

    @property
    def imports(self) -> ImportsPort:
        return ImportsPort(self.tapster)

    @property
    def runtime(self) -> RuntimePort:
        return RuntimePort(self.tapster)

    @property
    def upkeep(self) -> UpkeepPort:
        return UpkeepPort(self.tapster)

    @property
    def is_draining(self) -> bool:
        return self.tapster.lifecycle.phase.value not in (Phase.STARTING, Phase.READY)


def _alert(alert: Any) -> Json:
    if alert is None:
        return None
    return {"id": alert.id, "sessionId": alert.session_id, "toolName": alert.tool_name, "at": alert.at}
