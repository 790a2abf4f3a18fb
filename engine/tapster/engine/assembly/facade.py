"""Which backends are there, and whether a preset can run on them.

Source: spec/assembler §16.
"""

from collections.abc import Mapping

import attrs

from tapster.engine.ecma import Json

from .errors import AssemblyRefused
from .native_rules import validate_native
from .preset import AssemblyPreset
from .strategies import Strategy, require_strategies


@attrs.frozen
class Capabilities:
    """The backends of the moment."""

    native: bool = True
    core: bool = False
    core_installed: bool = False

    def to_json(self) -> dict[str, Json]:
        return {
            "native": self.native,
            "core": self.core,
            "coreExtensionInstalled": self.core_installed,
            "defaultBackend": "native",
            "nativeHistoryControl": False,
            "nativeRoles": ["system", "user"],
            "nativeUserDelivery": ["context", "pre-step"],
            "nativeUserEntersHistory": True,
        }

    @property
    def available(self) -> bool:
        return self.native or self.core


def require_available(
    preset: AssemblyPreset | None, capabilities: Capabilities, strategies: Mapping[str, Strategy]
) -> None:
    """Refuse a preset that can't run here; without one, refuse when no backend is there.

    Raises:
        AssemblyRefused: 409 ``POSITION_STRATEGY_UNAVAILABLE``, ``ASSEMBLY_NATIVE_UNAVAILABLE``,
            ``ASSEMBLY_NATIVE_UNSUPPORTED`` or ``REQUEST_ASSEMBLY_CORE_REQUIRED``.
    """
    if preset is not None:
        require_strategies(preset, strategies)
    wants_native = preset is None or preset.is_native
    if wants_native and not capabilities.native and (preset is not None or not capabilities.core):
        raise AssemblyRefused(
            "the host offers no prompt assembly hooks", code="ASSEMBLY_NATIVE_UNAVAILABLE", status=409
        )
    if preset is not None and preset.is_native:
        validate_native(preset)
    elif preset is not None and not capabilities.core:
        raise AssemblyRefused(
            "this strategy needs the core backend, which isn't installed",
            code="REQUEST_ASSEMBLY_CORE_REQUIRED",
            status=409,
        )


def preview_facts(preset: AssemblyPreset, capabilities: Capabilities) -> dict[str, Json]:
    """What a preview says beside the request: which backend it is for and what it doesn't include."""
    facts: dict[str, Json] = {
        "capability": capabilities.to_json(),
        "backend": "native" if preset.is_native else "core",
        "supported": preset.is_native or capabilities.core,
        "scope": "current-resources-and-durable-history",
        "pendingInputsIncluded": False,
    }
    if preset.is_native:
        facts["transport"] = {
            "system": "official-sections",
            "user": "durable-context-or-pre-step",
            "priorContributionsRemainInHistory": True,
        }
    return facts
