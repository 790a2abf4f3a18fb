"""Strategies, sources, variables and stored templates behind the HTTP layer's port."""

from collections.abc import Mapping, Sequence
from typing import Final, final

import attrs

from tapster.actors.hosts.port import SessionNotFound
from tapster.actors.session.embedded import embedded_key
from tapster.actors.session.state import STEP_START
from tapster.actors.sources.embedded import EVIDENCE
from tapster.actors.strategies import preview_policy
from tapster.actors.tapster import Tapster
from tapster.engine.assembly import (
    TAVERN_DEFAULT_ID,
    AssemblyPreset,
    SourceRegistry,
    StrategyRegistry,
    actual_assembly_result,
    normalise_preset,
)
from tapster.engine.assembly.actual import OWNERS
from tapster.engine.assembly.history import normalise_policy
from tapster.engine.assembly.history.policies import Mode, capabilities
from tapster.engine.assembly.store import STORE_TOO_LARGE, read_store, stored_json
from tapster.engine.ecma import Json, is_record
from tapster.engine.errors import RequestError, StoreError
from tapster.engine.mvu import VariableResource
from tapster.engine.mvu.shelf import Mode as ManagementMode

NOBODY: Final = "no-session"
"""Whose bindings a preview without a session takes: those of a session that has none."""


class ScopeNotFound(RequestError):
    """There is no such session."""

    code = "SCOPE_CATALOG_NOT_FOUND"
    kind = "Error"
    status = 404


@final
@attrs.frozen
class StrategiesPort:
    """``ports.Strategies``."""

    tapster: Tapster

    async def overview(self, session_id: str | None) -> Json:
        """The catalogue, what can run, and what a session has applied."""
        strategies, workshop = self.tapster.strategies, self.tapster.workshop
        able = workshop.capabilities.to_json()
        applied = None if session_id is None else strategies.selection(embedded_key(session_id))
        return {
            "presets": [listed.to_json() for listed in strategies.catalogue()],
            "defaultPresetId": TAVERN_DEFAULT_ID,
            "selection": _selected(applied),
            "capability": able,
            "capabilities": able,
            "sourceProtocolVersion": SourceRegistry.version,
            "strategyProtocolVersion": StrategyRegistry.version,
            "strategies": workshop.sources.strategies.descriptors(),
            "sources": workshop.sources.registry.descriptors(session_id or ""),
        }

    async def create(self, value: Json) -> Json:
        """Save a new strategy."""
        return (await self.tapster.strategies.save(value)).to_json()

    async def get(self, preset_id: str) -> Json:
        """One strategy."""
        return self.tapster.strategies.get(preset_id).to_json()

    async def update(self, preset_id: str, value: Json) -> Json:
        """Save a strategy in the place of an own one."""
        return (await self.tapster.strategies.save(value, preset_id)).to_json()

    async def delete(self, preset_id: str) -> None:
        """Remove an own strategy."""
        await self.tapster.strategies.remove(preset_id)

    async def take_over(self, value: Json) -> bool:
        """Add the strategies and selections of an older store that this one lacks."""
        if not is_record(value):
            raise RequestError("document must be the JSON object of an assembly-presets.json")
        try:
            old = await self.tapster.ports.threads.run(read_store, value)
        except StoreError as error:
            raise RequestError(f"the document isn't a valid assembly-presets.json: {error.message}") from error
        try:
            return await self.tapster.strategies.migrate(old)
        except StoreError as error:
            if error.code == STORE_TOO_LARGE:
                raise RequestError(f"with this document {error.message}", code=error.code, status=413) from error
            raise

    async def select(self, session_id: str, preset_id: str | None) -> Json:
        """Copy a strategy to a session that exists; None is off."""
        await self._inspect(session_id)
        return _selected(await self.tapster.apply_strategy(session_id, preset_id))

    async def applied(self, session_id: str) -> Json:
        """What a session has applied: the snapshot, and whether it decided at all."""
        await self._inspect(session_id)
        key, strategies = embedded_key(session_id), self.tapster.strategies
        return {"selection": _selected(strategies.selection(key)), "isDecided": strategies.has_selection(key)}

    async def preview(self, session_id: str | None, preset_id: str | None, value: Json, draft: str | None) -> Json:
        """What would be sent now by a strategy: the given one, a named one, or the applied one."""
        if session_id is not None:
            await self._inspect(session_id)
        made = await self.tapster.preview_request(session_id or NOBODY, draft, self._tried(preset_id, value))
        return made.shown(self.tapster.workshop)

    def _tried(self, preset_id: str | None, value: Json) -> AssemblyPreset | None:
        if value is not None:
            given = value.get("id") if is_record(value) else None
            return attrs.evolve(normalise_preset(value), id=given if isinstance(given, str) else "draft")
        if preset_id is None:
            return None
        return attrs.evolve(self.tapster.strategies.get(preset_id).preset, id=preset_id)

    async def actual(self, session_id: str) -> Json:
        """The newest replaced request of a session as it was sent; never reconstructed."""
        await self._inspect(session_id)
        applied = self.tapster.strategies.selection(embedded_key(session_id))
        backend = "native" if applied is not None and applied.is_native else "core"
        for event in reversed((await self.tapster.history(session_id)).events):
            metadata: Json = event.data.get("metadata") if event.type == EVIDENCE else None
            if is_record(metadata) and metadata.get("owner") in OWNERS:
                request = actual_assembly_result(event.data).to_json()
                return {"request": request, "backend": "core", "recordKind": EVIDENCE, "seq": event.seq}
        return {"request": None, "backend": backend, "recordKind": EVIDENCE}

    # History policy -------------------------------------------------------------------------------------------------

    async def policy(self, session_id: str) -> Json:
        """A session's policy and what its mode can do."""
        await self._inspect(session_id)
        stored = self.tapster.strategies.policy(embedded_key(session_id))
        return {**stored.to_json(), "capabilities": capabilities(self._mode(session_id))}

    async def save_policy(self, session_id: str, value: Json, expected_revision: Json) -> Json:
        """Save a session's policy."""
        await self._inspect(session_id)
        mode = self._mode(session_id)
        saved = await self.tapster.strategies.save_policy(embedded_key(session_id), value, expected_revision, mode)
        return {**saved.to_json(), "capabilities": capabilities(mode)}

    async def preview_policy(self, session_id: str, value: Json, backend: str | None) -> Json:
        """What a policy would keep of a session's history."""
        await self._inspect(session_id)
        policy = None if value is None else normalise_policy(value)
        stored = self.tapster.strategies.policy(embedded_key(session_id))
        events = (await self.tapster.history(session_id)).events
        started = next((event.seq for event in reversed(events) if event.type == STEP_START), None)
        modes: Mapping[str | None, Mode] = {"native": "standard", "core": "advanced", None: self._mode(session_id)}
        current = started if self.tapster.is_running(session_id) else None
        threads = self.tapster.ports.threads
        return await threads.run(preview_policy, events, stored, policy, modes[backend], current)

    def _mode(self, session_id: str) -> Mode:
        applied = self.tapster.strategies.selection(embedded_key(session_id))
        return "standard" if applied is None or applied.is_native else "advanced"

    async def _inspect(self, session_id: str) -> None:
        try:
            await self.tapster.host.session(session_id).header()
        except SessionNotFound as error:
            raise ScopeNotFound(f"there is no session {session_id}") from error

    # Sources, variables, templates ----------------------------------------------------------------------------------

    async def sources(self, session_id: str | None) -> Json:
        """Every source with its use so far, and what became of each installed plug-in."""
        workshop = self.tapster.workshop
        readings = {each.source_id: each for each in workshop.sources.statistics()}
        described = workshop.sources.registry.descriptors(session_id or "")
        return {
            "sources": [{**each, "use": _use(readings.get(each["id"]))} for each in described],
            "plugins": [attrs.asdict(plugin, filter=_is_shown) for plugin in workshop.plugins],
        }

    async def variables(self, session_id: str) -> Json:
        """A session's variables, None when it has none."""
        return _resource(await self.tapster.requests.variables(session_id))

    async def set_variables_mode(self, session_id: str, mode: ManagementMode, expected: int) -> Json:
        """Let a session's variables be used, or keep them for a manager."""
        return _resource(await self.tapster.requests.set_variables_mode(session_id, mode, expected))

    async def patch_variables(self, session_id: str, operations: Json, expected: int, operation_id: str) -> Json:
        """Edit a session's variables by a JSON patch."""
        changed = await self.tapster.requests.patch_variables(
            session_id, operations, expected_revision=expected, operation_id=operation_id
        )
        return _resource(changed)

    async def templates(self) -> Sequence[Json]:
        """All stored templates."""
        return [template.to_json() for template in self.tapster.workshop.templates.list()]

    async def put_template(self, value: Json) -> Json:
        """Keep a stored template."""
        return (await self.tapster.workshop.templates.put(value)).to_json()

    async def delete_template(self, template_id: str) -> None:
        """Forget a stored template."""
        await self.tapster.workshop.templates.remove(template_id)


def _selected(preset: AssemblyPreset | None) -> Json:
    return None if preset is None else stored_json(preset)


def _use(reading: object) -> Json:
    if reading is None or not attrs.has(type(reading)):
        return None
    value = attrs.asdict(reading)  # type: ignore[arg-type]
    names = {"running": "running", "strays": "strays", "calls": "calls", "failures": "failures"}
    return {**{shown: value[name] for name, shown in names.items()}, "lastError": value["last_error"]}


def _is_shown(attribute: "attrs.Attribute[object]", value: object) -> bool:
    return attribute.name != "presets"


def _resource(resource: VariableResource | None) -> Json:
    if resource is None:
        return None
    return {
        "id": resource.id,
        "mode": resource.mode,
        "revision": resource.revision,
        "configRevision": resource.config_revision,
        "variables": None if resource.history is None else dict(resource.variables),
    }
