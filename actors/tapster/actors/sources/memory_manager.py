"""A memory manager as a source, through its public interface.

Source: spec/assembler §19.
"""

import inspect
from collections.abc import Awaitable, Mapping
from typing import ClassVar, Protocol

import attrs

from tapster.engine.assembly import AssemblyRefused, InvalidAssembly, RequestContext, Rule
from tapster.engine.assembly.frozen import thaw
from tapster.engine.assembly.preset import Lifetime
from tapster.engine.ecma import Json, sha256_json
from tapster.engine.errors import TapsterError

from .interface import Output, Source

SOURCE_ID = "memory-manager.resources"
PLUGIN_ID = "dsh-memory-manager"
_REGISTRY_VERSION = 1


class MemoryManager(Protocol):
    """What a memory manager offers to requests."""

    def request_assembly_resources(self) -> Json:
        """``{available, entries[{id, adapterId, configurationSnapshot{config, revision}}]}``, detached, at once."""

    def trigger(self, request: Json) -> Awaitable[Json]:
        """Run one retrieval: ``{matched, value, resourceRevision, configRevision, strategyRevision}``.

        Raises an error with a ``code`` when it can't; cancelling it ends the retrieval.
        """


@attrs.frozen
class _Found:
    blocks: list[dict[str, Json]] = attrs.field(factory=list)
    diagnostics: list[dict[str, Json]] = attrs.field(factory=list)


class MemorySource(Source):
    """Every resource the manager offers, retrieved for this request; one that fails is told and left out."""

    id: ClassVar[str] = SOURCE_ID
    plugin_id: ClassVar[str] = PLUGIN_ID
    name: ClassVar[str] = "Memory"
    lifetimes: ClassVar[tuple[Lifetime, ...]] = ("request",)
    content_guide: ClassVar[Json] = {
        "contains": ["记忆管理器检索到的内容", "What the memory manager retrieves"],
        "origin": ["记忆管理器中的资源", "Resources of the memory manager"],
        "editable": ["在记忆管理器中可编辑", "Yes, in the memory manager"],
        "editAt": ["记忆管理器页面", "The memory manager's page"],
    }

    def __init__(self, manager: MemoryManager, registry_version: int = _REGISTRY_VERSION) -> None:
        if registry_version != _REGISTRY_VERSION:
            raise AssemblyRefused(
                f"the memory manager knows source protocol {registry_version}, this is {_REGISTRY_VERSION}",
                code="MEMORY_PROTOCOL_UNSUPPORTED",
            )
        if not callable(getattr(manager, "request_assembly_resources", None)):
            raise InvalidAssembly("the memory manager has no request_assembly_resources", code="MEMORY_MANAGER_INVALID")
        self._manager = manager

    def module_available(self, asked: Mapping[str, Json]) -> bool:
        offered = self._manager.request_assembly_resources()
        return offered.get("available") is True and len(offered.get("entries") or []) > 0

    async def resolve(self, context: RequestContext, rule: Rule) -> Output:
        offered = self._manager.request_assembly_resources()
        if offered.get("available") is not True:
            return {"blocks": [], "diagnostics": [{"code": "MEMORY_CONFIG_UNAVAILABLE"}]}
        found = _Found()
        for entry in offered.get("entries") or []:
            await self._retrieve(entry, context, found)
        return {"blocks": found.blocks, "diagnostics": found.diagnostics}

    async def _retrieve(self, entry: Mapping[str, Json], context: RequestContext, found: _Found) -> None:
        try:
            answer = self._manager.trigger(_question(entry, context))
            result = await answer if inspect.isawaitable(answer) else answer
        except Exception as error:  # noqa: BLE001 - told as a diagnostic; the other resources still count
            found.diagnostics.append(_unavailable(entry, error))
            return
        text = _text(result)
        if result.get("matched") is False or not text:
            return
        versions = {
            "entityId": entry["id"],
            "resourceRevision": result.get("resourceRevision"),
            "configRevision": result.get("configRevision"),
            "strategyRevision": result.get("strategyRevision"),
        }
        block_id = f"v1-{sha256_json(versions)}"
        found.blocks.append(
            {
                "type": "text",
                "id": block_id,
                "role": "system",
                "text": text,
                "source": {"resourceId": entry["id"], "field": "content"},
            }
        )
        found.diagnostics.append(
            {
                "code": "MEMORY_RESOURCE_VERSION",
                "blockId": block_id,
                "adapterId": entry.get("adapterId"),
                **versions,
            }
        )


def _question(entry: Mapping[str, Json], context: RequestContext) -> dict[str, Json]:
    return {
        "id": entry["id"],
        "configurationSnapshot": entry.get("configurationSnapshot"),
        "mode": "retrieve",
        "preview": True,
        "event": {
            "on": "before_model_request",
            "eventId": "readonly-resolver",
            "scope": {"sessionId": context.session_id},
            "turn": context.turn,
            "step": context.step,
            "nativeMessages": thaw(context.native_messages),
        },
    }


def _text(result: Mapping[str, Json]) -> str:
    value = result.get("value")
    text = value.get("text") if isinstance(value, dict) else value
    return text if isinstance(text, str) else ""


def _unavailable(entry: Mapping[str, Json], error: Exception) -> dict[str, Json]:
    code = error.code if isinstance(error, TapsterError) else getattr(error, "code", None)
    return {
        "code": "MEMORY_RESOURCE_UNAVAILABLE",
        "adapterId": entry.get("adapterId"),
        "entityId": entry["id"],
        "reason": code if isinstance(code, str) else "SOURCE_ERROR",
        "message": str(error)[:300],
    }
