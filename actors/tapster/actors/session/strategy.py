"""A request by the session's strategy: everything frozen first, then all sources at once, all or nothing.

Source: design §4 rule 4; spec/assembler §5, §6, §11-§12; spec/loader §1.
"""

from collections.abc import Callable, Mapping

import attrs

from tapster.actors.sources import assemble
from tapster.actors.sources.requests import CoreAsked, NativeAsked
from tapster.actors.store.values import SessionKey
from tapster.actors.strategies import Workshop
from tapster.engine.activation import SessionState
from tapster.engine.assembly import (
    AssemblyPreset,
    AssemblyResult,
    NativePlan,
    Node,
    Projection,
    RequestContext,
    Section,
    preview_facts,
    require_available,
)
from tapster.engine.assembly.tavern import after_tavern_assembly
from tapster.engine.assembly.tavern.memory import MVU_SOURCE, TEMPLATE_SOURCE
from tapster.engine.ecma import Json
from tapster.engine.errors import TapsterError
from tapster.engine.limits import PROFILE_BYTES_DEFAULT
from tapster.engine.profile import PROFILE_SECTION
from tapster.engine.text.templates import Surroundings
from tapster.engine.trace import NamedPart, PartSource

from .assets import request_assets
from .compute import Computed, FrozenInput
from .messages import Assembled
from .rolls import Rolls

POLICY_SECTION = "rp:policy"
DRAFT_ID = "preview-draft"
_KINDS = {"persona": "user"}
"""Module -> the kind of resource that a record names."""
Lease = Callable[[], None]


class NoStrategy(TapsterError):
    """The session has no strategy that could make its request."""

    code = "ASSEMBLY_PRESET_NOT_FOUND"
    status = 404

    def __init__(self, session_id: str) -> None:
        super().__init__(f"session {session_id} has no strategy; apply one first")


@attrs.frozen(eq=False)
class Made:
    """A request by a strategy, with what the host delivers of it.

    Attributes:
        plan: of the standard backend, None on the other.
        projection: of the advanced backend, None on the other.
        draws: how many draws its sources and macros took.
        revisions: of the resources it was made from, by id.
        generation: of the registry whose sources it was made from.
        sent: the messages as the host would send them, where a preview knows how it delivers.
    """

    preset: AssemblyPreset
    context: RequestContext
    result: AssemblyResult
    plan: NativePlan | None
    projection: Projection | None
    draws: int
    revisions: Mapping[str, str] = attrs.field(factory=dict)
    generation: int = 0
    sent: tuple[Mapping[str, Json], ...] | None = None

    @property
    def messages(self) -> tuple[Mapping[str, Json], ...]:
        """The messages of the request, as far as its backend decides them."""
        if self.sent is not None:
            return self.sent
        return self.result.messages if self.projection is None else self.projection.messages

    def state(self, computed: Computed) -> SessionState:
        """The session's state after the request: a request that threw dice counts once, whoever threw them."""
        is_first = self.draws > 0 and not computed.draws
        return attrs.evolve(computed.state, rolled=computed.state.rolled + is_first)

    def parts(self) -> tuple[NamedPart, ...]:
        """Where each section and context of the standard backend comes from, for the record."""
        if self.plan is None:
            return ()
        nodes = {node.id: node for node in self.result.nodes}
        return tuple(
            NamedPart(part.name, part.text, (_source(nodes[part.node_id], self.revisions).to_json(),))
            for part in self.plan.parts
        )

    def evidence(self) -> dict[str, Json]:
        """What the record keeps of it: no text, no message."""
        return {
            **strategy_facts(self.preset),
            "registryGeneration": self.generation,
            "sources": [{"id": each["id"], "version": each["version"]} for each in self.result.sources],
            "diagnostics": [each.get("code") for each in self.result.diagnostics],
        }

    def noting(self, diagnostic: dict[str, Json]) -> "Made":
        """The same with one more diagnostic."""
        result = attrs.evolve(self.result, diagnostics=(*self.result.diagnostics, diagnostic))
        if self.projection is None:
            return attrs.evolve(self, result=result)
        diagnostics = (*self.projection.diagnostics, diagnostic)
        return attrs.evolve(self, result=result, projection=attrs.evolve(self.projection, diagnostics=diagnostics))

    def shown(self, workshop: Workshop) -> dict[str, Json]:
        """The request as a preview shows it."""
        assembly = (self.result if self.projection is None else self.projection).metadata()
        messages = [dict(message) for message in self.messages]
        return {"messages": messages, **assembly, **preview_facts(self.preset, workshop.capabilities)}


async def make_request(
    workshop: Workshop,
    key: SessionKey,
    preset: AssemblyPreset,
    asked: NativeAsked | CoreAsked,
    frozen: FrozenInput,
    computed: Computed,
    lease: Lease,
) -> Made:
    """Ask every source that the preset names, and place what they give.

    Args:
        frozen: what the session was when the request began.
        computed: its activation.
        lease: raises when what was frozen no longer holds; called last, in the same step as the return.

    Raises:
        TapsterError: the request is refused as a whole.
    """
    require_available(preset, workshop.capabilities, workshop.sources.strategies.capture())
    asked = attrs.evolve(asked, sections=placed(asked.sections, computed.policy_text))
    assets = request_assets(frozen, computed, asked.sections, asked.variables)
    context = asked.context(preset, assets, key.session)
    rolls, generation = Rolls(frozen.seed, "request"), workshop.sources.revision.value
    workshop.draws.give(context, rolls, _surroundings(frozen))
    carried = asked.carried if isinstance(asked, CoreAsked) else None
    result = await assemble(
        workshop.sources, context, carried, after=after_tavern_assembly, max_bytes=PROFILE_BYTES_DEFAULT
    )
    plan = asked.plan(context, result) if isinstance(asked, NativeAsked) else None
    projection = asked.project(context, result) if isinstance(asked, CoreAsked) else None
    lease()
    revisions = {use.id: use.revision for use in frozen.bound.uses}
    return Made(preset, context, result, plan, projection, rolls.taken, revisions, generation)


def strategy_facts(preset: AssemblyPreset | None) -> dict[str, Json]:
    """Which strategy makes a request, as a record keeps it."""
    if preset is None:
        return {}
    backend = "native" if preset.is_native else "core"
    return {"id": preset.id, "name": preset.name, "revision": preset.revision, "backend": backend}


def with_request(assembled: Assembled, made: Made) -> Assembled:
    """What the session hands over, with the parts that its strategy added."""
    snapshot = attrs.evolve(assembled.snapshot, sections=made.parts())
    draws = assembled.draws + made.draws
    return attrs.evolve(assembled, snapshot=snapshot, draws=draws, strategy=made.evidence())


def uses_variables(preset: AssemblyPreset) -> bool:
    """Whether a strategy asks for the session's variables, itself or through stored templates."""
    return any(rule.enabled and rule.kind in (MVU_SOURCE, TEMPLATE_SOURCE) for rule in preset.rules)


def placed(sections: tuple[Section, ...], policy: str | None) -> tuple[Section, ...]:
    """The official sections of a session with a strategy: no second profile, and the policy where it belongs."""
    return tuple(
        attrs.evolve(section, text=policy or section.text, interpolate=False)
        if section.name == POLICY_SECTION
        else section
        for section in sections
        if section.name != PROFILE_SECTION
    )


def _surroundings(frozen: FrozenInput) -> Surroundings:
    seed = int(Rolls(frozen.seed, "templates")() * 0x7FFF_FFFF) + 1
    return Surroundings(frozen.seed.now_ms, seed)


def _source(node: Node, revisions: Mapping[str, str]) -> PartSource:
    field, resource_id = str(node.source.get("field")), node.source.get("resourceId")
    is_entry = node.module == "worldbook"
    entry_id = field.removeprefix("worldbook:") if is_entry else None
    return PartSource(
        kind=_KINDS.get(node.module, node.module),
        field="content" if is_entry else field,
        text=node.text,
        resource_id=resource_id if isinstance(resource_id, str) else None,
        resource_revision=revisions.get(str(resource_id)),
        is_entry=is_entry,
        qualified_entry_id=entry_id,
        entry_id=None if entry_id is None else entry_id.rpartition(":")[2],
        entry_name=node.name if is_entry else None,
    )


def draft_messages(draft: str | None) -> tuple[Json, ...]:
    """A draft as the input that a step would have claimed."""
    if draft is None:
        return ()
    content = [{"type": "text", "text": draft}]
    return ({"id": DRAFT_ID, "role": "user", "content": content, "source": {"kind": "user"}},)
