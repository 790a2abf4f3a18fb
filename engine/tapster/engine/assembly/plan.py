"""The resolution plan: which source is asked for what, in which order.

Source: spec/assembler §6 steps 1-4.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import attrs

from tapster.engine.ecma import Json

from .context import RequestContext
from .definition import Registration
from .errors import AssemblyRefused, InvalidAssembly
from .frozen import thaw
from .preset import Rule
from .registry import SourceRegistry
from .strategies import Strategy, require_strategies


@attrs.frozen(eq=False)
class Job:
    """One question to one source.

    Attributes:
        index: its place in the plan; results count in this order.
        rule: the rule it is asked for, listed in the preset or made for a dependency.
        registration: the source as captured.
        mode: ``module`` asks ``resolve``, ``text`` asks ``parse_text``.
        is_listed: whether the rule is in the preset.
        after: indexes of the jobs that must end before this one starts.
    """

    index: int
    rule: Rule
    registration: Registration
    mode: Literal["module", "text"]
    is_listed: bool
    after: tuple[int, ...]

    @property
    def source_id(self) -> str:
        return self.registration.id


@attrs.frozen(eq=False)
class Plan:
    """What a request asks for, fixed at its start.

    Attributes:
        context: the frozen context.
        jobs: in order.
        strategies: as captured.
        render_text: the registry's default renderer.
        diagnostics: what is already known to be missing.
    """

    context: RequestContext
    jobs: tuple[Job, ...]
    strategies: Mapping[str, Strategy]
    render_text: Callable[..., object] | None
    diagnostics: tuple[dict[str, Json], ...]


def plan_request(registry: SourceRegistry, context: RequestContext) -> Plan:
    """The jobs of a request, with registrations and strategies captured.

    Raises:
        InvalidAssembly: a rule or dependency that the captured sources can't serve.
        AssemblyRefused: a position or strategy the layout insists on is missing (409).
    """
    preset = context.preset
    if not preset.is_native and preset.placement in ("native-roles", "native-slots"):
        raise InvalidAssembly("native placement needs the native backend", code="PRESET_PLACEMENT_INVALID")
    sources = registry.capture()
    strategies = registry.strategies.capture()
    require_strategies(preset, strategies)
    planner = _Planner(context, sources)
    planner.check_positions()
    for rule in preset.rules:
        if rule.enabled:
            planner.visit(rule, is_listed=True)
    diagnostics = (*_seed_diagnostics(context), *planner.missing, *planner.diagnostics)
    return Plan(context, tuple(planner.jobs), strategies, registry.render_text, diagnostics)


def _seed_diagnostics(context: RequestContext) -> list[dict[str, Json]]:
    given = context.assets.get("diagnostics")
    records = [thaw(record) for record in given if isinstance(record, dict)] if isinstance(given, list) else []
    return [record for record in records if not _is_settled(record, context)]


def _is_settled(record: Mapping[str, Json], context: RequestContext) -> bool:
    """Whether an approximation the loader reported doesn't happen under this placement."""
    if record.get("code") != "WORLD_BOOK_POSITION_APPROXIMATED":
        return False
    preset = context.preset
    is_at_depth = "at_depth" in (record.get("requestedPosition"), record.get("position"), record.get("requested"))
    if is_at_depth and (preset.placement == "st" or preset.is_adaptive):
        return True
    entries = context.assets.get("loreEntries")
    known = (
        {str(entry.get("id")) for entry in entries if isinstance(entry, dict)} if isinstance(entries, list) else set()
    )
    return preset.is_adaptive and str(record.get("entryId", record.get("id"))) in known


@attrs.define(eq=False)
class _Planner:
    context: RequestContext
    sources: Mapping[str, Registration]
    jobs: list[Job] = attrs.field(factory=list)
    missing: list[dict[str, Json]] = attrs.field(factory=list)
    diagnostics: list[dict[str, Json]] = attrs.field(factory=list)
    _visiting: list[str] = attrs.field(factory=list)
    _done: dict[str, int | None] = attrs.field(factory=dict)

    @property
    def rules(self) -> Sequence[Rule]:
        return self.context.preset.rules

    def check_positions(self) -> None:
        """Report layout settings whose position nobody declares."""
        layout = self.context.preset.layout
        for setting in layout.settings if layout is not None else ():
            source = self.sources.get(setting.source_id)
            if source is not None and any(position.id == setting.position_id for position in source.positions):
                continue
            if setting.enabled and layout is not None and layout.fallback == "error":
                raise AssemblyRefused(
                    f"no source declares the position {setting.source_id}/{setting.position_id}",
                    code="POSITION_SOURCE_MISSING",
                    status=409,
                )
            self.missing.append(
                {
                    "code": "POSITION_SOURCE_MISSING",
                    "sourceId": setting.source_id,
                    "positionId": setting.position_id,
                }
            )

    def visit(self, rule: Rule, *, is_listed: bool) -> int | None:
        """Add the job of a rule after those it depends on; None when its source is not registered."""
        kind = rule.kind
        if kind in self._visiting:
            raise InvalidAssembly(f"the sources depend on each other in a circle: {kind}", code="SOURCE_CYCLE")
        if rule.id in self._done:
            return self._done[rule.id]
        source = self.sources.get(kind)
        if source is None:
            self.diagnostics.append({"code": "ASSEMBLY_SOURCE_UNAVAILABLE", "sourceId": kind, "ruleId": rule.id})
            self._done[rule.id] = None
            return None
        self._check(rule, source)
        self._visiting.append(kind)
        found = [self._visit_dependency(dependency) for dependency in source.definition.dependencies]
        self._visiting.pop()
        after = tuple(index for index in found if index is not None)
        mode: Literal["module", "text"] = "module" if rule.is_module else "text"
        job = Job(len(self.jobs), rule, source, mode, is_listed, after)
        self.jobs.append(job)
        self._done[rule.id] = job.index
        return job.index

    def _visit_dependency(self, kind: str) -> int | None:
        listed = next((rule for rule in self.rules if rule.kind == kind and rule.is_module), None)
        if listed is not None:
            return self.visit(listed, is_listed=True)
        return self.visit(self._synthetic(kind), is_listed=False)

    def _synthetic(self, kind: str) -> Rule:
        source = self.sources.get(kind)
        if source is None:
            return Rule(f"reference-{kind}", kind, enabled=False)
        roles, lifetimes = source.definition.roles, source.definition.lifetimes
        return Rule(
            f"reference-{kind}",
            kind,
            enabled=False,
            role="preserve" if "preserve" in roles else roles[0],
            lifetime="request" if "request" in lifetimes else lifetimes[0],
        )

    def _check(self, rule: Rule, source: Registration) -> None:
        definition, kind = source.definition, rule.kind
        if not rule.is_module and definition.parse_text is None:
            raise InvalidAssembly(f"{kind} takes no hand-written text", code="SOURCE_TEXT_UNSUPPORTED")
        if rule.is_module and definition.resolve is None:
            raise InvalidAssembly(f"{kind} only parses hand-written text", code="SOURCE_MODULE_UNSUPPORTED")
        if (
            rule.role not in definition.roles
            or rule.lifetime not in definition.lifetimes
            or (rule.depth is not None and definition.depth is False)
        ):
            raise InvalidAssembly(
                f"{kind} doesn't support the role, lifetime or depth of rule {rule.id}", code="RULE_UNSUPPORTED"
            )
        same = [other for other in self.rules if other.kind == kind and other.is_module]
        if rule.is_module and definition.multiple is not True and len(same) > 1:
            raise InvalidAssembly(f"{kind} may be listed once", code="SOURCE_RULE_DUPLICATE")
