"""Which presets the standard backend takes, and what its context switches remove.

Source: spec/assembler §11.1, §11.2.
"""

from collections.abc import Sequence

from .errors import unsupported
from .preset import AssemblyPreset, Rule

CONTEXT_CONTROLS: dict[str, frozenset[str]] = {
    "dsh.runtime-context": frozenset({"sandbox:policy", "approval:policy", "subagent:delegation"}),
    "dsh.sandbox-policy": frozenset({"sandbox:policy"}),
    "dsh.approval-policy": frozenset({"approval:policy"}),
}
"""Control rule kind -> host context sections its absence removes."""


def validate_native(preset: AssemblyPreset) -> None:
    """Refuse a preset the standard backend can't keep.

    Raises:
        AssemblyRefused: ``ASSEMBLY_NATIVE_UNSUPPORTED`` (409), with ``detail``.
    """
    if not preset.is_native:
        raise unsupported("it is written for the core backend")
    for kind in ("history", "input"):
        if not any(rule.enabled and rule.kind == kind for rule in preset.rules):
            raise unsupported(f"native assembly must preserve {kind}")
    for rule in preset.rules:
        if rule.kind in CONTEXT_CONTROLS and _has_content(rule):
            raise unsupported(f"the context control {rule.id} takes no role, lifetime, depth or text")
    enabled = [rule for rule in preset.rules if rule.enabled]
    if preset.is_adaptive:
        if any(_needs_core(rule) or rule.role == "assistant" for rule in enabled):
            raise unsupported("native ordering has no snapshots, depths or assistant contributions")
        return
    _validate_listed(preset, enabled)


def _has_content(rule: Rule) -> bool:
    return rule.role != "preserve" or rule.lifetime != "request" or rule.depth is not None or rule.text != ""


def _needs_core(rule: Rule) -> bool:
    return rule.lifetime == "snapshot" or rule.depth is not None


def _validate_listed(preset: AssemblyPreset, rules: Sequence[Rule]) -> None:
    if preset.placement != "modules":
        raise unsupported("this placement needs the core backend")
    kinds = [rule.kind for rule in rules]
    history, given = kinds.index("history"), kinds.index("input")
    if given < history:
        raise unsupported("the input must follow the history")
    has_pre_step = False
    for index, rule in enumerate(rules):
        if rule.kind in ("history", "input") or rule.kind in CONTEXT_CONTROLS:
            continue
        if _needs_core(rule):
            raise unsupported("retained snapshots and insertion depths need the core backend")
        if rule.role == "assistant":
            raise unsupported("assistant contributions need the core backend")
        if rule.role != "user":
            if index > history:
                raise unsupported("system contributions must precede the history")
            continue
        if index < history:
            raise unsupported("user contributions must follow the history")
        is_pre_step = rule.delivery == "pre-step"
        if index < given and not is_pre_step:
            raise unsupported("user contexts follow the input; use pre-step before it")
        if index > given and has_pre_step and not is_pre_step:
            raise unsupported("user contexts precede pre-step messages after the input")
        has_pre_step = has_pre_step or (is_pre_step and index > given)


def removed_contexts(preset: AssemblyPreset) -> frozenset[str]:
    """Names of the host context sections that disabled controls take out of the prompt text."""
    removed: set[str] = set()
    for rule in preset.rules:
        if rule.kind in CONTEXT_CONTROLS and not rule.enabled:
            removed |= CONTEXT_CONTROLS[rule.kind]
    return frozenset(removed)
