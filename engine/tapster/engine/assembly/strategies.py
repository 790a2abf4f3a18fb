"""Ordering strategies: the contract, the registry, and running one.

A strategy sees whole nodes, frozen, and says which of the remaining ones it claims and how all are ordered.
Source: spec/assembler §10.6.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import attrs

from tapster.engine.ecma import Json, stringify

from .errors import AssemblyRefused, InvalidAssembly, StrategyInvalid
from .frozen import freeze, thaw
from .ids import is_sid
from .layout import BUILTIN_STRATEGIES
from .preset import AssemblyPreset


@attrs.frozen
class StrategyInput:
    """What a strategy sees.

    Attributes:
        nodes: all nodes in order, as read-only JSON.
        remaining_node_ids: those it may claim.
        preset: the normalised preset.
        logical: whether roles and delivery regions are still open.
    """

    nodes: Sequence[Mapping[str, Json]]
    remaining_node_ids: tuple[str, ...]
    preset: AssemblyPreset
    logical: bool


@attrs.frozen
class StrategyResult:
    """What a strategy decides.

    Attributes:
        claimed_node_ids: a unique subset of the remaining ones; nobody claims them again.
        order: a permutation of all node ids; unclaimed nodes keep their relative order.
        adapt_position: whether claimed nodes count as placed by the strategy; default: when ``order`` is given.
        detach_slot_node_ids: claimed nodes that leave their slot.
        depth_node_ids: claimed nodes that keep the depth they have.
        diagnostics: JSON records copied into the result.
    """

    claimed_node_ids: Sequence[str]
    order: Sequence[str] | None = None
    adapt_position: bool | None = None
    detach_slot_node_ids: Sequence[str] = ()
    depth_node_ids: Sequence[str] = ()
    diagnostics: Sequence[Json] = ()


class Execute(Protocol):
    """A strategy's function: synchronous, without side effects."""

    def __call__(self, given: StrategyInput, /) -> StrategyResult: ...


@attrs.frozen(eq=False)
class Strategy:
    """A registered strategy."""

    id: str
    plugin_id: str
    name: tuple[str, str]
    execute: Execute


def _descriptor(strategy: Strategy) -> dict[str, Json]:
    return {"id": strategy.id, "pluginId": strategy.plugin_id, "name": list(strategy.name)}


@attrs.define(eq=False)
class StrategyRegistry:
    """The ordering strategies, the three built-in ones first."""

    _strategies: dict[str, Strategy] = attrs.field(factory=dict)
    generation: int = 0

    version = 1
    """The strategy protocol's version."""

    def __attrs_post_init__(self) -> None:
        for strategy in builtin_strategies():
            self._strategies[strategy.id] = strategy

    def register(self, strategy: Strategy) -> Callable[[], None]:
        """Make a strategy available to layouts; the returned disposer removes this registration only.

        Raises:
            InvalidAssembly: ``STRATEGY_INVALID`` or ``STRATEGY_DUPLICATE``.
        """
        is_named = len(strategy.name) == 2 and all(isinstance(text, str) and text for text in strategy.name)
        if not is_sid(strategy.id) or strategy.id == "user" or not is_sid(strategy.plugin_id) or not is_named:
            raise InvalidAssembly(
                "a strategy needs an id other than user, a pluginId and a name in two languages",
                code="STRATEGY_INVALID",
            )
        if not callable(strategy.execute):
            raise InvalidAssembly(f"{strategy.id}: execute must be callable", code="STRATEGY_INVALID")
        if strategy.id in self._strategies:
            raise InvalidAssembly(f"the strategy {strategy.id} is already registered", code="STRATEGY_DUPLICATE")
        self._strategies[strategy.id] = strategy
        self.generation += 1

        def dispose() -> None:
            if self._strategies.get(strategy.id) is strategy:
                del self._strategies[strategy.id]
                self.generation += 1

        return dispose

    def capture(self) -> dict[str, Strategy]:
        """The strategies as they are now; a request keeps them to its end."""
        return dict(self._strategies)

    def descriptors(self) -> list[dict[str, Json]]:
        """Descriptors in registration order."""
        return [_descriptor(strategy) for strategy in self._strategies.values()]


def require_strategies(preset: AssemblyPreset, strategies: Mapping[str, Strategy]) -> None:
    """Refuse a preset whose priority names a strategy nobody registered.

    Raises:
        AssemblyRefused: ``POSITION_STRATEGY_UNAVAILABLE`` (409).
    """
    priority = preset.layout.priority if preset.layout is not None else None
    for strategy_id in priority or ():
        if strategy_id not in strategies:
            raise AssemblyRefused(
                f"no strategy {strategy_id} is registered", code="POSITION_STRATEGY_UNAVAILABLE", status=409
            )


@attrs.frozen
class Verdict:
    """A checked answer of a strategy."""

    claimed: frozenset[str]
    order: tuple[str, ...] | None
    adapts: bool
    detached: frozenset[str]
    depth: frozenset[str]
    diagnostics: tuple[dict[str, Json], ...]


def run_strategy(strategy: Strategy, given: StrategyInput) -> Verdict:
    """Run a strategy and check its answer; what it raises passes.

    Raises:
        InvalidAssembly: ``STRATEGY_ASYNC``: it didn't answer at once.
        StrategyInvalid: ``POSITION_STRATEGY_INVALID`` (409).
    """
    result: object = strategy.execute(given)
    if inspect.isawaitable(result):
        if inspect.iscoroutine(result):
            result.close()
        raise InvalidAssembly(f"the strategy {strategy.id} must answer at once", code="STRATEGY_ASYNC")
    verdict = _checked(result, given) if isinstance(result, StrategyResult) else None
    if verdict is None:
        raise StrategyInvalid(f"the strategy {strategy.id} answered outside its contract")
    return verdict


def _checked(result: StrategyResult, given: StrategyInput) -> Verdict | None:
    ids = [str(node["id"]) for node in given.nodes]
    claimed = _unique(result.claimed_node_ids, frozenset(given.remaining_node_ids))
    if claimed is None:
        return None
    detached = _unique(result.detach_slot_node_ids, claimed)
    with_depth = frozenset(str(node["id"]) for node in given.nodes if node.get("depth") is not None)
    depth = _unique(result.depth_node_ids, claimed & with_depth)
    if detached is None or depth is None or not isinstance(result.adapt_position, bool | None):
        return None
    order = None if result.order is None else _order(result.order, ids, claimed)
    diagnostics = _diagnostics(result.diagnostics)
    if (result.order is not None and order is None) or diagnostics is None:
        return None
    adapts = order is not None if result.adapt_position is None else result.adapt_position
    return Verdict(claimed, order, adapts, detached, depth, diagnostics)


def _unique(values: object, allowed: frozenset[str]) -> frozenset[str] | None:
    if not isinstance(values, list | tuple) or not all(isinstance(value, str) for value in values):
        return None
    found = frozenset(values)
    return found if len(found) == len(values) and found <= allowed else None


def _order(values: object, ids: list[str], claimed: frozenset[str]) -> tuple[str, ...] | None:
    if not isinstance(values, list | tuple) or sorted(map(str, values)) != sorted(ids):
        return None
    order = tuple(str(value) for value in values)
    fixed = [node_id for node_id in ids if node_id not in claimed]
    return order if [node_id for node_id in order if node_id not in claimed] == fixed else None


def _diagnostics(values: object) -> tuple[dict[str, Json], ...] | None:
    if not isinstance(values, list | tuple) or not all(isinstance(value, dict) for value in values):
        return None
    try:
        stringify(list(values))
    except TypeError:
        return None
    return tuple(thaw(freeze(value)) for value in values)


def _by_slot(given: StrategyInput) -> StrategyResult:
    nodes = {str(node["id"]): node for node in given.nodes}
    return StrategyResult([node_id for node_id in given.remaining_node_ids if _has_slot(nodes[node_id])])


def _has_slot(node: Mapping[str, Json]) -> bool:
    return node.get("slotId") is not None or node.get("slotOwner") is not None or node.get("module") == "preset"


def _by_resource(given: StrategyInput) -> StrategyResult:
    nodes = {str(node["id"]): node for node in given.nodes}
    anchored = [node_id for node_id in given.remaining_node_ids if nodes[node_id].get("resourceAnchor") is not None]
    order = [str(node["id"]) for node in given.nodes]
    moved = [node_id for node_id in anchored if _is_movable(nodes, order, node_id)]
    for group in _groups(nodes, moved):
        place = _place(nodes, [node_id for node_id in order if node_id not in group], group)
        rest = [node_id for node_id in order if node_id not in group]
        order = [*rest[:place], *group, *rest[place:]]
    deep = [
        node_id
        for node_id in given.remaining_node_ids
        if node_id not in moved and nodes[node_id].get("depth") is not None
    ]
    return StrategyResult(
        claimed_node_ids=[*moved, *deep],
        order=order if moved else None,
        detach_slot_node_ids=moved,
        depth_node_ids=deep,
    )


def matches_anchor(node: Mapping[str, Json], anchor: Mapping[str, Json]) -> bool:
    """Whether a node is the content a resource anchor names."""
    fields = anchor.get("fields")
    return node.get("module") == anchor["sourceId"] and (fields is None or node["source"]["field"] in fields)


def _is_movable(nodes: Mapping[str, Mapping[str, Json]], order: Sequence[str], node_id: str) -> bool:
    anchor, region = nodes[node_id]["resourceAnchor"], nodes[node_id].get("region")
    return any(
        other != node_id and matches_anchor(nodes[other], anchor) and nodes[other].get("region") == region
        for other in order
    )


def _groups(nodes: Mapping[str, Mapping[str, Json]], moved: Sequence[str]) -> list[list[str]]:
    groups: dict[tuple[str, str], list[str]] = {}
    for node_id in moved:
        key = (str(nodes[node_id]["ruleId"]), str(nodes[node_id]["positionId"]))
        groups.setdefault(key, []).append(node_id)
    return list(groups.values())


def _place(nodes: Mapping[str, Mapping[str, Json]], rest: Sequence[str], group: Sequence[str]) -> int:
    anchor, region = nodes[group[0]]["resourceAnchor"], nodes[group[0]].get("region")
    found = [
        index
        for index, node_id in enumerate(rest)
        if matches_anchor(nodes[node_id], anchor) and nodes[node_id].get("region") == region
    ]
    if not found:
        return len(rest)
    return found[0] if anchor["side"] == "before" else found[-1] + 1


def _the_rest(given: StrategyInput) -> StrategyResult:
    return StrategyResult(given.remaining_node_ids)


def builtin_strategies() -> tuple[Strategy, ...]:
    """The three strategies every registry has, under the same contract as any other."""
    names = (("预设", "Preset"), ("资源", "Resource"), ("默认", "Default"))
    functions: tuple[Execute, ...] = (_by_slot, _by_resource, _the_rest)
    return tuple(
        Strategy(strategy_id, "tapster", name, execute)
        for strategy_id, name, execute in zip(BUILTIN_STRATEGIES, names, functions, strict=True)
    )
