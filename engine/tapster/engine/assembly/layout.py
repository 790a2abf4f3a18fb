"""The resource layout of a preset: where sources may stand and which strategies decide.

Source: spec/assembler §10.1.
"""

from typing import Literal

import attrs

from tapster.engine import limits
from tapster.engine.ecma import Json, is_number, is_record, utf16_length

from .errors import InvalidAssembly
from .ids import is_sid

BUILTIN_STRATEGIES = ("preset", "resource", "default")


@attrs.frozen
class Override:
    """A user's move of one layout block beside another."""

    target: str
    anchor: str
    side: Literal["before", "after"]
    detach: bool

    def to_json(self) -> dict[str, Json]:
        return {"target": self.target, "anchor": self.anchor, "side": self.side, "detach": self.detach}


@attrs.frozen
class PositionAnchor:
    """The position that a manually placed one stands beside."""

    source_id: str
    position_id: str
    side: Literal["before", "after"]

    def to_json(self) -> dict[str, Json]:
        return {"sourceId": self.source_id, "positionId": self.position_id, "side": self.side}


@attrs.frozen
class PositionSetting:
    """The user's switch and place for one declared position; ``anchor`` ``"end"`` is the end of the list."""

    source_id: str
    position_id: str
    enabled: bool
    placement: Literal["source", "list"]
    anchor: PositionAnchor | Literal["end"] | None = None

    @property
    def key(self) -> tuple[str, str]:
        return self.source_id, self.position_id

    def to_json(self) -> dict[str, Json]:
        value: dict[str, Json] = {
            "sourceId": self.source_id,
            "positionId": self.position_id,
            "enabled": self.enabled,
            "placement": self.placement,
        }
        if self.anchor is not None:
            value["anchor"] = self.anchor if isinstance(self.anchor, str) else self.anchor.to_json()
        return value


@attrs.frozen
class Layout:
    """A normalised layout policy; ``priority`` None means that no strategies run."""

    source: Literal["manual", "preset-slots"]
    identity: Literal["preserve", "position"]
    fallback: Literal["source-order", "error"]
    overrides: tuple[Override, ...] = ()
    priority: tuple[str, ...] | None = None
    positions: tuple[PositionSetting, ...] | None = None

    @property
    def settings(self) -> tuple[PositionSetting, ...]:
        return self.positions or ()

    def to_json(self) -> dict[str, Json]:
        value: dict[str, Json] = {
            "version": 1,
            "source": self.source,
            "identity": self.identity,
            "fallback": self.fallback,
            "overrides": [override.to_json() for override in self.overrides],
        }
        if self.priority is not None:
            value["priority"] = list(self.priority)
        if self.positions is not None:
            value["positions"] = [position.to_json() for position in self.positions]
        return value


def normalise_layout(value: Json) -> Layout:
    """A layout policy with unknown keys dropped and legacy priorities rewritten.

    Raises:
        InvalidAssembly: ``LAYOUT_POLICY_INVALID`` or ``LAYOUT_PRIORITY_INVALID``.
    """
    _require(is_record(value) and is_number(value.get("version")) and value["version"] == 1, "version must be 1")
    for field, allowed in (
        ("source", ("manual", "preset-slots")),
        ("identity", ("preserve", "position")),
        ("fallback", ("source-order", "error")),
    ):
        _require(value.get(field) in allowed, f"{field} must be one of {', '.join(allowed)}")
    return Layout(
        source=value["source"],
        identity=value["identity"],
        fallback=value["fallback"],
        overrides=_overrides(value.get("overrides")),
        priority=None if value.get("priority") is None else _priority(value["priority"]),
        positions=None if value.get("positions") is None else _positions(value["positions"]),
    )


def _require(condition: bool, detail: str) -> None:
    if not condition:
        raise InvalidAssembly(f"resource layout: {detail}", code="LAYOUT_POLICY_INVALID")


def _is_target(value: Json) -> bool:
    return isinstance(value, str) and 1 <= utf16_length(value) <= limits.LAYOUT_OVERRIDE_ID_UNITS


def _overrides(value: Json) -> tuple[Override, ...]:
    _require(
        isinstance(value, list) and len(value) <= limits.LAYOUT_OVERRIDES,
        f"overrides must be a list of at most {limits.LAYOUT_OVERRIDES}",
    )
    seen: set[str] = set()
    found = []
    for item in value:
        _require(
            is_record(item)
            and _is_target(item.get("target"))
            and _is_target(item.get("anchor"))
            and item["target"] != item["anchor"]
            and item["target"] not in seen
            and item.get("side") in ("before", "after")
            and isinstance(item.get("detach"), bool),
            "an override needs a target of its own, another anchor, a side and detach",
        )
        seen.add(item["target"])
        found.append(Override(item["target"], item["anchor"], item["side"], item["detach"]))
    return tuple(found)


def _priority(value: Json) -> tuple[str, ...]:
    if value in ("user", "preset"):
        return BUILTIN_STRATEGIES
    ids = [item for item in value if item != "user"] if isinstance(value, list) else []
    valid = (
        isinstance(value, list)
        and len(value) <= limits.LAYOUT_PRIORITY
        and all(is_sid(item) for item in ids)
        and len(set(ids)) == len(ids)
        and set(BUILTIN_STRATEGIES) <= set(ids)
    )
    if not valid:
        raise InvalidAssembly(
            "the priority order must list unique strategies and keep preset, resource and default",
            code="LAYOUT_PRIORITY_INVALID",
        )
    return tuple(ids)


def _positions(value: Json) -> tuple[PositionSetting, ...]:
    _require(
        isinstance(value, list) and len(value) <= limits.LAYOUT_POSITIONS,
        f"positions must be a list of at most {limits.LAYOUT_POSITIONS}",
    )
    found: list[PositionSetting] = []
    for item in value:
        _require(
            is_record(item)
            and is_sid(item.get("sourceId"))
            and is_sid(item.get("positionId"))
            and isinstance(item.get("enabled"), bool)
            and item.get("placement") in ("source", "list"),
            "a position needs sourceId, positionId, enabled and placement",
        )
        setting = PositionSetting(
            item["sourceId"], item["positionId"], item["enabled"], item["placement"], _anchor(item.get("anchor"))
        )
        _require(setting.key not in {known.key for known in found}, "each position may be set once")
        anchor = setting.anchor
        is_itself = isinstance(anchor, PositionAnchor) and (anchor.source_id, anchor.position_id) == setting.key
        _require(not is_itself, "a position can't be its own anchor")
        found.append(setting)
    return tuple(found)


def _anchor(value: Json) -> PositionAnchor | Literal["end"] | None:
    if value is None:
        return None
    if value == "end":
        return "end"
    _require(
        is_record(value)
        and is_sid(value.get("sourceId"))
        and is_sid(value.get("positionId"))
        and value.get("side") in ("before", "after"),
        'an anchor is "end" or names sourceId, positionId and side',
    )
    return PositionAnchor(value["sourceId"], value["positionId"], value["side"])
