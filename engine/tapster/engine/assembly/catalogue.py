"""Presets that ship with the assembler, and those of plug-ins, withdrawable.

Source: spec/assembler §3.2, §14 last table, §15 ``registerPresets``.
"""

from collections.abc import Mapping, Sequence

import attrs

from tapster.engine.ecma import Json

from .errors import InvalidAssembly
from .ids import is_preset_id, is_sid
from .layout import BUILTIN_STRATEGIES, Layout
from .preset import AssemblyPreset, Rule, normalise_preset

NATIVE_ID = "builtin-native"
TAVERN_DEFAULT_ID = "builtin-native-slots"
_TAVERN_KINDS = ("native-system", "preset", "persona", "character", "worldbook", "history", "input", "phi")


def _rules(kinds: Sequence[str]) -> tuple[Rule, ...]:
    return tuple(Rule(kind, kind) for kind in kinds)


def bare_builtins() -> tuple[AssemblyPreset, ...]:
    """What the assembler offers alone."""
    return (
        AssemblyPreset(
            id=NATIVE_ID,
            name="DSH 原生 / DSH native",
            backend="native",
            rules=_rules(("native-system", "history", "input")),
        ),
    )


def tavern_builtins() -> tuple[AssemblyPreset, ...]:
    """What Tavern offers: slots first (its default), roles first, and the advanced one."""
    layout = Layout("preset-slots", "position", "source-order", priority=BUILTIN_STRATEGIES)
    rules = _rules(_TAVERN_KINDS)
    return (
        AssemblyPreset(
            id=TAVERN_DEFAULT_ID,
            name="酒馆预设槽位 / Tavern preset slots",
            backend="native",
            placement="native-slots",
            layout=layout,
            rules=rules,
        ),
        AssemblyPreset(
            id="builtin-native-roles",
            name="酒馆角色优先 / Tavern roles first",
            backend="native",
            placement="native-roles",
            rules=rules,
        ),
        AssemblyPreset(
            id="builtin-st",
            name="酒馆高级 / Tavern advanced",
            backend="core",
            placement="st",
            layout=layout,
            rules=rules,
        ),
    )


@attrs.frozen
class ProviderPreset:
    """A preset of a plug-in's catalogue."""

    plugin_id: str
    preset: AssemblyPreset


def read_catalogue(plugin_id: object, presets: object, taken: Mapping[str, object]) -> tuple[ProviderPreset, ...]:
    """A plug-in's presets, all of them or none.

    Args:
        plugin_id: who offers them.
        presets: JSON documents, each with an ``id``.
        taken: ids that already exist anywhere.

    Raises:
        InvalidAssembly: a bad plug-in id, preset id or preset, or an id that is taken.
    """
    if not isinstance(plugin_id, str) or not is_sid(plugin_id) or not isinstance(presets, list | tuple):
        raise InvalidAssembly("a preset catalogue needs a pluginId and a list", code="CATALOGUE_INVALID")
    found: dict[str, ProviderPreset] = {}
    for value in presets:
        preset_id: Json = value.get("id") if isinstance(value, dict) else None
        if not is_preset_id(preset_id):
            raise InvalidAssembly(f"{plugin_id} offers a preset without an id", code="CATALOGUE_PRESET_ID_INVALID")
        if preset_id in taken or preset_id in found:
            raise InvalidAssembly(f"the preset {preset_id} exists already", code="CATALOGUE_PRESET_DUPLICATE")
        found[preset_id] = ProviderPreset(plugin_id, attrs.evolve(normalise_preset(value), id=preset_id))
    return tuple(found.values())
