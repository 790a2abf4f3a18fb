"""Assembly presets: normalisation, stored form and revision.

Source: spec/assembler §3.
"""

from collections.abc import Sequence
from typing import Literal, TypeAlias

import attrs

from tapster.engine import limits
from tapster.engine.ecma import (
    Json,
    is_number,
    is_record,
    is_safe_integer,
    sha256_json,
    trim,
    utf16_length,
    utf16_slice,
)

from .errors import InvalidAssembly
from .history.policy import HistoryPolicy, normalise_policy
from .ids import is_rule_id, is_sid
from .layout import Layout, normalise_layout

FORMAT = "dsh-tavern-request-assembly"

Role: TypeAlias = Literal["preserve", "system", "user", "assistant"]
Lifetime: TypeAlias = Literal["request", "snapshot"]
Placement: TypeAlias = Literal["modules", "st", "native-roles", "native-slots"]
Delivery: TypeAlias = Literal["context", "pre-step"]

ROLES: tuple[Role, ...] = ("preserve", "system", "user", "assistant")
LIFETIMES: tuple[Lifetime, ...] = ("request", "snapshot")
TEXT_KINDS = frozenset({"custom", "dsh.text"})
"""Kinds whose rules carry hand-written text: their role is never ``preserve``."""
_DERIVED: dict[tuple[bool, str], Placement] = {
    (True, "preset-slots"): "native-slots",
    (True, "manual"): "native-roles",
    (False, "preset-slots"): "st",
    (False, "manual"): "modules",
}


@attrs.frozen
class Rule:
    """One line of a preset: which source, as what, where."""

    id: str
    kind: str
    enabled: bool = True
    role: Role = "preserve"
    lifetime: Lifetime = "request"
    depth: int | None = None
    text: str = ""
    name: str = ""
    delivery: Delivery | None = None
    input_mode: Literal["text"] | None = None

    @property
    def is_module(self) -> bool:
        """Whether the rule asks the source for its module, not for parsing the rule's text."""
        return self.input_mode is None

    def to_json(self) -> dict[str, Json]:
        value: dict[str, Json] = {}
        if self.delivery is not None:
            value["delivery"] = self.delivery
        if self.input_mode is not None:
            value["inputMode"] = self.input_mode
        value |= {
            "id": self.id,
            "kind": self.kind,
            "enabled": self.enabled,
            "role": self.role,
            "lifetime": self.lifetime,
            "depth": self.depth,
            "text": self.text,
            "name": self.name,
        }
        return value


@attrs.frozen
class AssemblyPreset:
    """A normalised preset; ``id`` is the caller's and no part of the stored form or the revision."""

    name: str
    rules: tuple[Rule, ...] = ()
    backend: Literal["native", "core"] | None = None
    placement: Placement = "modules"
    layout: Layout | None = None
    history_policy: HistoryPolicy | None = None
    id: str | None = None

    @property
    def is_native(self) -> bool:
        return self.backend == "native"

    @property
    def is_adaptive(self) -> bool:
        """Whether the standard backend orders the contributions itself."""
        return self.is_native and self.placement in ("native-roles", "native-slots")

    @property
    def is_list(self) -> bool:
        """List placement: a listed source keeps its own place."""
        return self.placement == "modules" or (self.layout is not None and self.layout.source == "manual")

    @property
    def revision(self) -> str:
        """The hash of the stored form."""
        return sha256_json(self.to_json())

    def to_json(self) -> dict[str, Json]:
        value: dict[str, Json] = {}
        if self.history_policy is not None:
            value["historyPolicy"] = self.history_policy.to_json()
        if self.backend is not None:
            value["backend"] = self.backend
        value |= {"format": FORMAT, "version": 1, "name": self.name, "placement": self.placement}
        if self.layout is not None:
            value["layout"] = self.layout.to_json()
        value["rules"] = [rule.to_json() for rule in self.rules]
        return value


def normalise_preset(value: Json) -> AssemblyPreset:
    """The stored form of a preset document; unknown keys, ``id`` among them, are dropped.

    Raises:
        InvalidAssembly: the first check of the contract that fails, in its order.
    """
    if not is_record(value) or value.get("format") != FORMAT or not _is_one(value.get("version")):
        raise InvalidAssembly(f"an assembly preset needs format {FORMAT} and version 1", code="PRESET_FORMAT_INVALID")
    name = value.get("name")
    if not isinstance(name, str) or not trim(name) or utf16_length(name) > limits.ASSEMBLY_NAME_UNITS:
        raise InvalidAssembly(
            f"a preset needs a name of at most {limits.ASSEMBLY_NAME_UNITS} characters", code="PRESET_NAME_INVALID"
        )
    rules = value.get("rules")
    if not isinstance(rules, list) or len(rules) > limits.ASSEMBLY_RULES:
        raise InvalidAssembly(f"a preset has at most {limits.ASSEMBLY_RULES} rules", code="PRESET_RULES_INVALID")
    if "backend" in value and value["backend"] not in ("native", "core"):
        raise InvalidAssembly("backend must be native or core", code="PRESET_BACKEND_INVALID")
    backend: Literal["native", "core"] | None = value.get("backend")
    layout = normalise_layout(value["layout"]) if "layout" in value else None
    return AssemblyPreset(
        name=trim(name),
        rules=normalise_rules(rules),
        backend=backend,
        placement=_placement(value.get("placement"), backend, layout),
        layout=layout,
        history_policy=normalise_policy(value["historyPolicy"]) if "historyPolicy" in value else None,
    )


def _is_one(value: Json) -> bool:
    return is_number(value) and value == 1


def _placement(value: Json, backend: str | None, layout: Layout | None) -> Placement:
    if layout is not None:
        return _DERIVED[backend == "native", layout.source]
    known: dict[str, Placement] = {"st": "st", "native-roles": "native-roles", "native-slots": "native-slots"}
    return known.get(value, "modules") if isinstance(value, str) else "modules"


def normalise_rules(rules: Sequence[Json]) -> tuple[Rule, ...]:
    """The rules of a preset, checked one by one.

    Raises:
        InvalidAssembly: the first check that fails.
    """
    seen: set[str] = set()
    found = []
    for value in rules:
        if not is_record(value) or not is_rule_id(value.get("id")) or value["id"] in seen:
            raise InvalidAssembly("each rule needs an id of its own", code="RULE_ID_INVALID")
        seen.add(value["id"])
        found.append(_rule(value))
    return tuple(found)


def _rule(value: dict[str, Json]) -> Rule:
    where = f"rule {value['id']}"
    _check(is_sid(value.get("kind")), where, "kind must name a source", "RULE_KIND_INVALID")
    if "delivery" in value:
        allowed = value["delivery"] in ("context", "pre-step")
        _check(allowed, where, "delivery must be context or pre-step", "RULE_DELIVERY_INVALID")
    is_text_kind = value["kind"] in TEXT_KINDS
    role: Json = value.get("role")
    role = ("user" if is_text_kind else "preserve") if role is None else role
    _check(role in ROLES, where, f"role must be one of {', '.join(ROLES)}", "RULE_ROLE_INVALID")
    lifetime: Json = "request" if value.get("lifetime") is None else value["lifetime"]
    _check(lifetime in LIFETIMES, where, "lifetime must be request or snapshot", "RULE_LIFETIME_INVALID")
    depth = value.get("depth")
    _check(depth is None or is_depth(depth), where, "depth must be 0 to 10000", "RULE_DEPTH_INVALID")
    text = "" if value.get("text") is None else value["text"]
    is_short = isinstance(text, str) and utf16_length(text) <= limits.ASSEMBLY_RULE_TEXT_UNITS
    _check(is_short, where, f"text exceeds {limits.ASSEMBLY_RULE_TEXT_UNITS} characters", "RULE_TEXT_INVALID")
    if "inputMode" in value:
        known = value["inputMode"] in ("source", "text")
        _check(known, where, "inputMode must be source or text", "RULE_INPUT_MODE_INVALID")
    name = value.get("name")
    return Rule(
        id=value["id"],
        kind=value["kind"],
        enabled=value.get("enabled") is not False,
        role="system" if is_text_kind and role == "preserve" else role,
        lifetime=lifetime,
        depth=None if depth is None else int(depth),
        text=text,
        name=utf16_slice(name, 0, limits.ASSEMBLY_NAME_UNITS) if isinstance(name, str) else "",
        delivery=value.get("delivery"),
        input_mode="text" if value.get("inputMode") == "text" else None,
    )


def _check(condition: bool, where: str, detail: str, code: str) -> None:
    if not condition:
        raise InvalidAssembly(f"{where}: {detail}", code=code)


def is_depth(value: Json) -> bool:
    """Whether a value is a depth: an integer from 0 to the limit."""
    return is_safe_integer(value) and 0 <= value <= limits.ASSEMBLY_DEPTH


def move_rule(rules: Sequence[Rule], rule_id: str, target_id: str) -> tuple[Rule, ...]:
    """The rules with one moved to the place its target had; unknown or equal ids change nothing."""
    ids = [rule.id for rule in rules]
    if rule_id == target_id or rule_id not in ids or target_id not in ids:
        return tuple(rules)
    place = ids.index(target_id)
    kept = list(rules)
    kept.insert(place, kept.pop(ids.index(rule_id)))
    return tuple(kept)
