"""Strategies and manual positions: who decides where a node stands.

Source: spec/assembler §10.2, §10.6.
"""

from collections.abc import Mapping, Sequence

import attrs

from tapster.engine.ecma import Json

from .errors import AssemblyRefused
from .frozen import freeze
from .layout import Layout, PositionAnchor, PositionSetting
from .nodes import Draft
from .preset import AssemblyPreset
from .strategies import Strategy, StrategyInput, Verdict, matches_anchor, run_strategy


@attrs.frozen
class Stage:
    """What one strategy claimed; the first stage is the user's."""

    strategy: str
    node_ids: tuple[str, ...]

    def to_json(self) -> dict[str, Json]:
        return {"strategy": self.strategy, "nodeIds": list(self.node_ids)}


@attrs.define(eq=False)
class Ordering:
    """The ordering pass of one assembly; without a priority list only manual positions apply."""

    preset: AssemblyPreset
    layout: Layout
    strategies: Mapping[str, Strategy]
    diagnostics: list[dict[str, Json]]
    logical: bool
    overridden: frozenset[str] = frozenset()
    stages: list[Stage] = attrs.field(factory=list)

    def run(self, nodes: Sequence[Draft]) -> list[Draft]:
        """The nodes in their new order."""
        ordered = list(nodes)
        if self.layout.priority is not None:
            ordered = self._run_strategies(ordered, self.layout.priority)
        ordered = self._place_manually(ordered)
        self._report_conflicts(ordered)
        return ordered

    def _is_manual(self, node: Draft) -> bool:
        return not node.is_native and (node.entry.is_user_placed or node.id in self.overridden)

    def _run_strategies(self, nodes: list[Draft], priority: Sequence[str]) -> list[Draft]:
        manual = [node.id for node in nodes if self._is_manual(node)]
        self.stages.append(Stage("user", tuple(manual)))
        fixed = {node.id for node in nodes if node.is_native or node.is_snapshot or node.is_depth_anchor}
        remaining = {node.id for node in nodes} - fixed - set(manual)
        for strategy_id in priority:
            given = StrategyInput(
                nodes=freeze([node.strategy_json() for node in nodes]),
                remaining_node_ids=tuple(node.id for node in nodes if node.id in remaining),
                preset=self.preset,
                logical=self.logical,
            )
            verdict = run_strategy(self.strategies[strategy_id], given)
            nodes = self._apply(strategy_id, verdict, nodes)
            remaining -= verdict.claimed
        self._report_anchors(nodes)
        return nodes

    def _apply(self, strategy_id: str, verdict: Verdict, nodes: list[Draft]) -> list[Draft]:
        claimed = [node for node in nodes if node.id in verdict.claimed]
        self.stages.append(Stage(strategy_id, tuple(node.id for node in claimed)))
        self.diagnostics += verdict.diagnostics
        for node in claimed:
            node.decision = "resource-depth" if node.id in verdict.depth else strategy_id
            node.is_adapted = verdict.adapts
            if node.id in verdict.detached:
                node.slot_id = node.slot_owner = node.slot_owner_rule_id = node.lock_reason = None
            if node.id not in verdict.depth:
                node.depth = None
        if verdict.order is None:
            return nodes
        by_id = {node.id: node for node in nodes}
        ordered = [by_id[node_id] for node_id in verdict.order]
        if not self.logical and self.preset.is_native and _regions(ordered) != _regions(nodes):
            raise AssemblyRefused(
                f"the strategy {strategy_id} changes the order of delivery regions",
                code="POSITION_STRATEGY_INVALID",
                status=409,
            )
        return ordered

    def _report_anchors(self, nodes: Sequence[Draft]) -> None:
        """Report resource anchors that stand nowhere, or only in another region."""
        views = [node.strategy_json() for node in nodes]
        reported: set[tuple[str, str]] = set()
        for node in nodes:
            key = (node.module, node.entry.position.id)
            if node.anchor is None or node.decision != "default" or key in reported:
                continue
            reported.add(key)
            anchor = node.anchor.to_json()
            is_elsewhere = any(view["id"] != node.id and matches_anchor(view, anchor) for view in views)
            self._anchor_missing(key, anchor, "runtime" if is_elsewhere else "default", is_fatal=not is_elsewhere)

    def _anchor_missing(self, key: tuple[str, str], anchor: Json, winner: str, *, is_fatal: bool) -> None:
        if is_fatal and self.layout.fallback == "error":
            raise AssemblyRefused(
                f"the anchor of {key[0]}/{key[1]} is not in the request", code="POSITION_ANCHOR_MISSING", status=409
            )
        self.diagnostics.append(
            {
                "code": "POSITION_ANCHOR_MISSING",
                "sourceId": key[0],
                "positionId": key[1],
                "winner": winner,
                "anchor": anchor,
            }
        )

    def _place_manually(self, nodes: list[Draft]) -> list[Draft]:
        settings = [setting for setting in self.layout.settings if setting.enabled and setting.placement == "list"]
        _refuse_cycles(settings)
        done: set[tuple[str, str]] = set()
        by_key = {setting.key: setting for setting in settings}

        def place(setting: PositionSetting) -> None:
            if setting.key in done:
                return
            done.add(setting.key)
            anchor = setting.anchor
            if isinstance(anchor, PositionAnchor) and (anchor.source_id, anchor.position_id) in by_key:
                place(by_key[anchor.source_id, anchor.position_id])
            self._place(nodes, setting, settings[settings.index(setting) + 1 :])

        for setting in reversed(settings):
            place(setting)
        return nodes

    def _place(self, nodes: list[Draft], setting: PositionSetting, later: Sequence[PositionSetting]) -> None:
        group = [node for node in nodes if node.entry.is_user_placed and _at(node, setting.key)]
        if not group:
            return
        rest = [node for node in nodes if node not in group]
        index = self._place_index(rest, setting, later)
        for node in group:
            node.decision = "user"
            node.is_adapted = True
        nodes[:] = [*rest[:index], *group, *rest[index:]]

    def _place_index(self, rest: list[Draft], setting: PositionSetting, later: Sequence[PositionSetting]) -> int:
        anchor = setting.anchor
        if isinstance(anchor, PositionAnchor):
            key = (anchor.source_id, anchor.position_id)
            found = [index for index, node in enumerate(rest) if _at(node, key)]
            if found:
                return found[0] if anchor.side == "before" else found[-1] + 1
            self._anchor_missing(setting.key, anchor.to_json(), "user", is_fatal=True)
        elif anchor == "end":
            return len(rest)
        keys = {other.key for other in later}
        followers = (
            index
            for index, node in enumerate(rest)
            if node.entry.is_user_placed and (node.module, node.entry.position.id) in keys
        )
        return next(followers, len(rest))

    def _report_conflicts(self, nodes: Sequence[Draft]) -> None:
        for setting in self.layout.settings:
            if not setting.enabled or setting.placement != "list":
                continue
            loser = next((node for node in nodes if _at(node, setting.key) and node.decision != "user"), None)
            if loser is not None:
                self.diagnostics.append(
                    {
                        "code": "POSITION_CONFLICT",
                        "sourceId": setting.source_id,
                        "positionId": setting.position_id,
                        "winner": loser.decision,
                        "requested": "list",
                    }
                )


def _at(node: Draft, key: tuple[str, str]) -> bool:
    return (node.module, node.entry.position.id) == key


def _regions(nodes: Sequence[Draft]) -> list[str]:
    return [node.region for node in nodes]


def _refuse_cycles(settings: Sequence[PositionSetting]) -> None:
    by_key = {setting.key: setting for setting in settings}
    for setting in settings:
        seen = {setting.key}
        anchor = setting.anchor
        while isinstance(anchor, PositionAnchor):
            key = (anchor.source_id, anchor.position_id)
            if key in seen:
                raise AssemblyRefused(
                    f"the manual anchors of {setting.source_id}/{setting.position_id} form a circle",
                    code="POSITION_ANCHOR_CYCLE",
                    status=409,
                )
            seen.add(key)
            following = by_key.get(key)
            anchor = None if following is None else following.anchor
