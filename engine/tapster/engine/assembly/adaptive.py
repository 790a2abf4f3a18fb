"""Ordering for the standard backend: what the host delivers where, and as which role.

Source: spec/assembler §11.3.
"""

from collections.abc import Callable, Sequence

import attrs

from tapster.engine.ecma import Json

from .entries import Entries
from .errors import unsupported
from .layout_blocks import REGION_ORDER
from .nodes import Draft, Region
from .ownership import Ownership
from .preset import AssemblyPreset


@attrs.frozen
class PlacementControl:
    """Who places the blocks of one rule."""

    rule_id: str
    control: str
    owned: int
    independent: int

    def to_json(self) -> dict[str, Json]:
        return {
            "ruleId": self.rule_id,
            "control": self.control,
            "owned": self.owned,
            "independent": self.independent,
        }


@attrs.define(eq=False)
class Adaptive:
    """The adaptive ordering of one assembly.

    Attributes:
        preset: a preset with placement ``native-roles`` or ``native-slots``.
        diagnostics: where each adaptation is told.
        run_strategies: the logical ordering pass, None when it doesn't run here.
    """

    preset: AssemblyPreset
    diagnostics: list[dict[str, Json]]
    run_strategies: Callable[[list[Draft]], list[Draft]] | None
    has_slots: bool = False

    def run(self, drafts: Sequence[Draft]) -> list[Draft]:
        """The drafts in delivery order, roles and deliveries decided.

        Raises:
            AssemblyRefused: ``ASSEMBLY_NATIVE_UNSUPPORTED`` (409).
        """
        nodes = list(drafts)
        for index, node in enumerate(nodes):
            node.first_index = index
        history, conversation_input = self._anchor(nodes, "history"), self._anchor(nodes, "input")
        if self.preset.placement == "native-slots":
            self.has_slots = history.slot_owner is not None or conversation_input.slot_owner is not None
            if self.has_slots:
                nodes = self._around_spine(nodes, history, conversation_input)
            else:
                self.diagnostics.append({"code": "NATIVE_SLOTS_ABSENT"})
            self._restore_order(nodes, history, conversation_input)
            self._place_depth_boundaries(nodes, history)
        if self.run_strategies is not None:
            nodes = self.run_strategies(nodes)
        self._adapt_roles(nodes, history, conversation_input)
        self._choose_delivery(nodes, conversation_input)
        nodes.sort(key=lambda node: REGION_ORDER[node.region])
        self._report_moves(nodes)
        return nodes

    def _anchor(self, nodes: Sequence[Draft], kind: str) -> Draft:
        found = next((node for node in nodes if node.module == kind and node.is_native), None)
        if found is None:
            raise unsupported(f"native assembly must preserve {kind}")
        return found

    def _around_spine(self, nodes: list[Draft], history: Draft, given: Draft) -> list[Draft]:
        """Slot-owned nodes keep their order; each other one goes before the anchor of the next rule."""
        indexes = {rule.id: index for index, rule in enumerate(self.preset.rules)}
        spine = [node for node in nodes if node.slot_owner is not None]
        anchors = [(indexes.get(node.rule.id, len(indexes)), node) for node in (history, given)]
        for rule_id in dict.fromkeys(node.slot_owner_rule_id for node in spine):
            first = next(node for node in spine if node.slot_owner_rule_id == rule_id)
            anchors.append((indexes.get(rule_id or "", len(indexes)), first))
        others = [node for node in nodes if node.slot_owner is None]
        # The two native anchors come first, so that the rest can stand before them.
        others.sort(key=lambda node: node is not history and node is not given)
        for node in others:
            own = indexes.get(node.place_rule.id, len(indexes))
            following = [(index, anchor) for index, anchor in anchors if index > own and anchor in spine]
            if following:
                nearest = min(following, key=lambda item: item[0])[1]
                spine.insert(spine.index(nearest), node)
            else:
                spine.append(node)
        return spine

    def _restore_order(self, nodes: list[Draft], history: Draft, given: Draft) -> None:
        if nodes.index(history) < nodes.index(given):
            return
        if history.slot_owner is not None and given.slot_owner is not None:
            raise unsupported("the preset puts the input before the history")
        moved, fixed = (given, history) if history.slot_owner is not None else (history, given)
        nodes.remove(moved)
        nodes.insert(nodes.index(fixed) + (moved is given), moved)

    def _place_depth_boundaries(self, nodes: list[Draft], history: Draft) -> None:
        """World-book depths 1 and 0 become the edges of the history."""
        boundary = [node for node in nodes if node.module == "worldbook" and node.requested_depth in (0, 1)]
        for node in boundary:
            node.is_depth_anchor = True
            node.lock_reason = "native-depth-boundary"
            self.diagnostics.append(
                {
                    "code": "NATIVE_DEPTH_BOUNDARY",
                    "id": node.id,
                    "name": node.name,
                    "depth": node.requested_depth,
                    "placement": "before-history" if node.requested_depth == 1 else "after-history",
                }
            )
        ordered = sorted(boundary, key=lambda node: node.entry.block.order)
        for node in ordered:
            nodes.remove(node)
        before = [node for node in ordered if node.requested_depth == 1]
        after = [node for node in ordered if node.requested_depth == 0]
        index = nodes.index(history)
        nodes[index : index + 1] = [*before, history, *after]

    def _is_placed(self, node: Draft) -> bool:
        is_owned = self.has_slots and node.slot_owner is not None
        return is_owned or node.is_depth_anchor or node.is_adapted or node.is_overridden

    def _adapt_roles(self, nodes: Sequence[Draft], history: Draft, given: Draft) -> None:
        edge, input_edge = nodes.index(history), nodes.index(given)
        has_history_slot = self.has_slots and history.slot_owner is not None
        for index, node in enumerate(nodes):
            if node.is_native or not self._is_placed(node):
                continue
            node.authored_role = node.role
            is_owned = self.has_slots and node.slot_owner is not None and not (node.is_depth_anchor or node.is_adapted)
            if has_history_slot or not is_owned:
                wanted = "system" if index < edge else "user"
            else:
                wanted = "user" if index > input_edge else node.role
            if wanted != node.role:
                self._adjust_role(node, wanted)
        for node in nodes:
            if not node.is_native and node.role not in ("system", "user"):
                raise unsupported(f"native ordering can't keep the {node.role} role of {node.name}")

    def _adjust_role(self, node: Draft, wanted: str) -> None:
        layout = self.preset.layout
        if layout is not None and layout.identity == "preserve":
            raise unsupported(f"{node.name} would change its role from {node.role} to {wanted}")
        self.diagnostics.append(
            {"code": "NATIVE_ROLE_ADJUSTED", "id": node.id, "name": node.name, "from": node.role, "to": wanted}
        )
        node.role = wanted

    def _choose_delivery(self, nodes: Sequence[Draft], given: Draft) -> None:
        input_edge = nodes.index(given)
        for index, node in enumerate(nodes):
            if node.is_native:
                node.region = _native_region(node)
            elif node.role == "system":
                node.region, node.native_placement = "system", "system"
            else:
                self._deliver_user(node, index < input_edge)

    def _deliver_user(self, node: Draft, is_before_input: bool) -> None:
        delivery = "pre-step" if self._is_placed(node) else node.rule.delivery or "context"
        if delivery != node.rule.delivery and node.rule.delivery is not None:
            self.diagnostics.append(
                {
                    "code": "NATIVE_DELIVERY_ADJUSTED",
                    "id": node.id,
                    "name": node.name,
                    "from": node.rule.delivery,
                    "to": delivery,
                }
            )
        node.native_delivery = delivery
        if delivery == "pre-step" and is_before_input:
            node.region, node.native_placement = "before-input:pre-step", "before-input"
        else:
            node.region = "after-input:pre-step" if delivery == "pre-step" else "after-input:context"
            node.native_placement = "after-input"

    def _report_moves(self, nodes: Sequence[Draft]) -> None:
        for index, node in enumerate(nodes):
            if index != node.first_index and not node.is_native:
                self.diagnostics.append(
                    {
                        "code": "NATIVE_PLACEMENT_ADJUSTED",
                        "id": node.id,
                        "name": node.name,
                        "role": node.role,
                        "placement": node.native_placement,
                    }
                )


def _native_region(node: Draft) -> Region:
    if node.module == "history":
        return "history"
    return "input" if node.module == "input" else "system"


def placement_controls(entries: Entries, ownership: Ownership, nodes: Sequence[Draft]) -> list[PlacementControl]:
    """For each rule who places its blocks: a slot owner, the rule itself, the host, or nobody."""
    owned: dict[str, int] = {}
    independent: dict[str, int] = {}

    def count(counts: dict[str, int], rule_id: str) -> None:
        counts[rule_id] = counts.get(rule_id, 0) + 1

    for entry in entries:
        owner = ownership.owners.get(entry.key)
        if owner is not None and owner[1].job.registration.owns_slots and entry.block.type == "text":
            count(owned, entry.job.rule.id)
    for node in nodes:
        own_rule = node.entry.job.rule.id
        if node.is_depth_anchor or (node.slot_id is None and node.slot_owner is not None):
            count(owned, own_rule)
        if node.slot_id is None and not node.is_depth_anchor:
            count(independent, own_rule)
    return [
        PlacementControl(rule.id, "native", 0, 0)
        if rule.kind in ("history", "input")
        else PlacementControl(
            rule.id,
            _control(entries, rule.kind, owned.get(rule.id, 0), independent.get(rule.id, 0)),
            owned.get(rule.id, 0),
            independent.get(rule.id, 0),
        )
        for rule in entries.preset.rules
    ]


def _control(entries: Entries, kind: str, owned: int, independent: int) -> str:
    if any(job.source_id == kind and job.registration.owns_slots for job in entries.jobs):
        return "preset"
    if owned:
        return "mixed" if independent else "preset"
    return "independent" if independent else "empty"
