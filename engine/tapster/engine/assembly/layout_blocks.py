"""Layout blocks: runs of nodes that a user moves as one, and the moves.

Source: spec/assembler §10.7.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Protocol

import attrs

from tapster.engine.ecma import Json, stringify

from .errors import AssemblyRefused, layout_unsupported
from .layout import Layout, Override
from .nodes import Draft, Region
from .preset import AssemblyPreset

REGION_ORDER: dict[Region, int] = {
    "system": 0,
    "history": 1,
    "before-input:pre-step": 2,
    "input": 3,
    "after-input:context": 4,
    "after-input:pre-step": 5,
}


class Placeable(Protocol):
    """What a layout block is made of: a draft or a finished node."""

    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def module(self) -> str: ...
    @property
    def role(self) -> str: ...
    @property
    def lifetime(self) -> str: ...
    @property
    def layout_group(self) -> str: ...
    @property
    def slot_id(self) -> str | None: ...
    @property
    def depth(self) -> int | None: ...
    @property
    def region(self) -> Region: ...
    @property
    def lock_reason(self) -> str | None: ...
    @property
    def is_runtime(self) -> bool: ...
    @property
    def original_role(self) -> str | None: ...


@attrs.frozen(eq=False)
class LayoutBlock:
    """One run of adjacent nodes of the same origin."""

    id: str
    nodes: tuple[Placeable, ...]
    is_overridden: bool = False

    @property
    def first(self) -> Placeable:
        return self.nodes[0]

    @property
    def is_fixed(self) -> bool:
        return any(node.is_runtime for node in self.nodes)

    @property
    def binding(self) -> str:
        return "runtime" if self.is_fixed else "slot" if self.first.slot_id is not None else "free"

    @property
    def limitations(self) -> list[str]:
        if self.first.region.endswith(":context"):
            return ["NATIVE_CONTEXT_REUSES_HISTORY_POSITION"]
        return ["RUNTIME_POSITION_FIXED"] if self.is_fixed else []

    def to_json(self) -> dict[str, Json]:
        return {
            "id": self.id,
            "name": self.first.name,
            "region": self.first.region,
            "slotId": self.first.slot_id,
            "binding": self.binding,
            "movable": self.binding == "free",
            "overridable": self.binding == "slot",
            "originalRoles": _unique(node.original_role or node.role for node in self.nodes),
            "effectiveRoles": _unique(node.role for node in self.nodes),
            "reason": "user-override" if self.is_overridden else self.first.lock_reason or "source-order",
            "internalOrder": "source-defined",
            "retention": self.first.lifetime,
            "limitations": self.limitations,
            "nodeIds": [node.id for node in self.nodes],
            "entries": [{"id": node.id, "name": node.name, "role": node.role} for node in self.nodes],
        }


def _unique(values: Iterator[str]) -> list[str]:
    return list(dict.fromkeys(values))


def layout_blocks(
    nodes: Sequence[Placeable],
    key_parts: Callable[[Placeable], tuple[str, str | None]],
    overridden: frozenset[str] = frozenset(),
) -> list[LayoutBlock]:
    """The blocks of nodes in order.

    Args:
        nodes: drafts or finished nodes.
        key_parts: the rule id and resource id of a node.
        overridden: ids of nodes a user moved.
    """

    def key(node: Placeable) -> str:
        rule_id, resource_id = key_parts(node)
        parts = [rule_id, node.module, resource_id, node.layout_group, node.slot_id, node.depth, node.role, node.region]
        return stringify(parts)

    runs = [(run_key, tuple(run)) for run_key, run in groupby(nodes, key)]
    counts: dict[str, int] = {}
    for run_key, _ in runs:
        counts[run_key] = counts.get(run_key, 0) + 1
    return [
        LayoutBlock(
            id=f"block:{run_key}:0" if counts[run_key] == 1 else f"block:{run_key}:run:{run[0].id}",
            nodes=run,
            is_overridden=run[0].id in overridden,
        )
        for run_key, run in runs
    ]


def draft_blocks(nodes: Sequence[Draft]) -> list[LayoutBlock]:
    """The blocks of drafts."""
    parts: Mapping[str, tuple[str, str | None]] = {
        node.id: (node.rule.id, node.entry.block.resource_id) for node in nodes
    }
    return layout_blocks(nodes, lambda node: parts[node.id])


def overridden_ids(nodes: Sequence[Draft], layout: Layout) -> frozenset[str]:
    """Ids of the nodes in blocks that an override names as its target."""
    if not layout.overrides:
        return frozenset()
    targets = {override.target for override in layout.overrides}
    return frozenset(node.id for block in draft_blocks(nodes) if block.id in targets for node in block.nodes)


def apply_overrides(
    nodes: list[Draft], preset: AssemblyPreset, layout: Layout, diagnostics: list[dict[str, Json]]
) -> list[Draft]:
    """The nodes with the user's block moves applied, one after another.

    Raises:
        AssemblyRefused: ``ASSEMBLY_LAYOUT_UNSUPPORTED`` or, with fallback ``error``, ``LAYOUT_TARGET_MISSING`` (409).
    """
    for override in layout.overrides:
        blocks = {block.id: block for block in draft_blocks(nodes)}
        missing = next((part for part in ("target", "anchor") if getattr(override, part) not in blocks), None)
        if missing is None:
            nodes = _move(nodes, blocks[override.target], blocks[override.anchor], override)
            if preset.is_adaptive:
                follow_regions(nodes)
            continue
        if layout.fallback == "error":
            raise AssemblyRefused(
                f"the {missing} of a layout override is no longer there", code="LAYOUT_TARGET_MISSING", status=409
            )
        diagnostics.append({"code": "LAYOUT_TARGET_MISSING", **override.to_json(), "missing": missing})
    return nodes


def _move(nodes: list[Draft], target: LayoutBlock, anchor: LayoutBlock, override: Override) -> list[Draft]:
    if target.is_fixed:
        raise layout_unsupported(f"{target.first.name} has a place that can't be changed")
    if target.binding == "slot" and not override.detach:
        raise layout_unsupported(f"{target.first.name} belongs to a slot; detach it to move it")
    moved_ids = {node.id for node in target.nodes}
    anchor_ids = {node.id for node in anchor.nodes}
    moved = [node for node in nodes if node.id in moved_ids]
    rest = [node for node in nodes if node.id not in moved_ids]
    places = [index for index, node in enumerate(rest) if node.id in anchor_ids]
    index = places[0] if override.side == "before" else places[-1] + 1
    for node in moved:
        node.decision, node.is_overridden = "user", True
        if override.detach:
            node.slot_id = node.slot_owner = node.slot_owner_rule_id = node.lock_reason = None
    return [*rest[:index], *moved, *rest[index:]]


def follow_regions(nodes: list[Draft]) -> None:
    """Let pre-step blocks cross the input; refuse every other inversion of regions."""
    seen_input = False
    for node in nodes:
        if node.region == "input":
            seen_input = True
        elif node.region.endswith(":pre-step"):
            node.region = "after-input:pre-step" if seen_input else "before-input:pre-step"
            node.native_placement = "after-input" if seen_input else "before-input"
    order = [REGION_ORDER[node.region] for node in nodes]
    if order != sorted(order):
        raise layout_unsupported("the move would change the order in which the host delivers content")
