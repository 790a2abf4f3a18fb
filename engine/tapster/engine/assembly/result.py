"""The result of an assembly: messages, nodes, evidence.

Source: spec/assembler §13.
"""

from collections.abc import Mapping

import attrs

from tapster.engine.ecma import Json

from .adaptive import PlacementControl
from .layout import Layout
from .layout_blocks import LayoutBlock, layout_blocks
from .messages import Message
from .nodes import Node, node_marks
from .ordering import Stage
from .snapshots import SnapshotRecord


@attrs.frozen(eq=False)
class ResourceLayout:
    """How the layout came out."""

    policy: Layout | None
    slots: tuple[dict[str, Json], ...]
    nodes: tuple[Node, ...]
    stages: tuple[Stage, ...]
    strategies: tuple[dict[str, Json], ...]
    decisions: tuple[dict[str, Json], ...]

    @property
    def blocks(self) -> tuple[LayoutBlock, ...]:
        """The runs of nodes a user may move as one; worked out when asked for."""
        parts = {node.id: (node.rule_id, node.source.get("resourceId")) for node in self.nodes}
        overridden = frozenset(node.id for node in self.nodes if node.position_override)
        return tuple(layout_blocks(self.nodes, lambda node: parts[node.id], overridden))

    def to_json(self) -> dict[str, Json]:
        priority = None if self.policy is None else self.policy.priority
        return {
            "version": 1,
            "legacy": self.policy is None,
            "policy": None if self.policy is None else self.policy.to_json(),
            "slots": list(self.slots),
            "blocks": [block.to_json() for block in self.blocks],
            "priorityOrder": None if priority is None else list(priority),
            "sortingStages": [stage.to_json() for stage in self.stages],
            "strategies": list(self.strategies),
            "positionDecisions": list(self.decisions),
        }


@attrs.frozen(eq=False, kw_only=True)
class AssemblyResult:
    """One logical request with its provenance."""

    messages: tuple[Message, ...]
    nodes: tuple[Node, ...]
    snapshots: tuple[SnapshotRecord, ...]
    diagnostics: tuple[dict[str, Json], ...]
    placement_controls: tuple[PlacementControl, ...] | None
    sources: tuple[dict[str, Json], ...]
    extra_bytes: int
    preset_id: str | None
    preset_name: str
    preset_revision: str
    preview: bool
    compatibility: str | None
    layout: ResourceLayout
    deliveries: Mapping[str, str] = attrs.field(factory=dict)
    """Rule id -> how the preset wants its user text delivered, where it says so."""

    def to_json(self) -> dict[str, Json]:
        return {"messages": [dict(message) for message in self.messages], **self.metadata()}

    def metadata(self) -> dict[str, Json]:
        """Everything but the messages, as a recorded request keeps it."""
        value: dict[str, Json] = {
            "nodes": [node.to_json() for node in self.nodes],
            "snapshots": [record.to_json() for record in self.snapshots],
            "diagnostics": list(self.diagnostics),
        }
        if self.placement_controls is not None:
            value["placementControls"] = [control.to_json() for control in self.placement_controls]
        return value | {
            "sources": list(self.sources),
            "extraBytes": self.extra_bytes,
            "preset": {"id": self.preset_id, "name": self.preset_name, "revision": self.preset_revision},
            "preview": self.preview,
            "toolsSeparate": True,
            "evaluatedAt": "request-assembly",
            "compatibility": self.compatibility,
            "resourceLayout": self.layout.to_json(),
        }

    def marks(self) -> bytes:
        """What the next request of the session compares its nodes with: eight bytes for each."""
        return node_marks((node.id, node.hash) for node in self.nodes)
