"""The assembler on the embedded host: a session's applied preset decides what each of its requests is.

Both backends listen on the host's waterfalls. ``native`` contributes sections, contexts and pre-step messages; ``core``
replaces the request's messages and leaves evidence in the log. A refusal ends the turn; nothing partial is ever sent.

Source: spec/assembler §11.4, §12, §18; spec/history_policy §4-§6.
"""

from collections.abc import Callable, Sequence
from typing import Final

import attrs

from tapster.actors.hosts.embedded import (
    Agent,
    Assembly,
    EmbeddedHost,
    Enter,
    InboxChange,
    NamedText,
    Next,
    PreStep,
    PreStepDecision,
    PromptContext,
    StatusChange,
    StepContext,
    StreamCall,
)
from tapster.engine.assembly import (
    AssemblyPreset,
    Capabilities,
    Carried,
    NativePlan,
    Section,
    StoredPolicy,
    StrategyRegistry,
    joins_step,
    read_carried,
    removed_contexts,
    require_available,
)
from tapster.engine.assembly.actual import OWNERS
from tapster.engine.assembly.history import (
    DEFAULT_POLICY,
    Filtered,
    HistoryPolicy,
    ReasoningSafety,
    filter_history,
    plan_standard,
    runtime_context_refresh,
)
from tapster.engine.ecma import Json
from tapster.engine.projection import Event
from tapster.engine.projection.events import STEP_END, STEP_START, USER_MESSAGE, SurfaceReplace

from .requests import CoreAsked, NativeAsked, Requests

OWNER: Final = "dsh-prompt-assembler"
EVIDENCE: Final = "request/assembly"
IN_HISTORY: Final = "in-history"


@attrs.define(eq=False)
class _Step:
    """What one step of an agent was prepared with."""

    turn: int
    step: int
    preset: AssemblyPreset
    sections: tuple[Section, ...] = ()
    plan: NativePlan | None = None


@attrs.define(eq=False)
class EmbeddedAssembler:
    """Runs the applied preset of each session of an embedded host.

    Attributes:
        requests: makes the requests, and knows which preset a session has applied.
        strategies: the ordering strategies that a preset may name.
        system_update: what models can do with system messages within the history.
        reasoning: the host's word on leaving reasoning out.
    """

    host: EmbeddedHost
    requests: Requests
    strategies: StrategyRegistry
    capabilities: Capabilities = attrs.field(factory=lambda: Capabilities(core=True, core_installed=True))
    system_update: str | None = IN_HISTORY
    reasoning: ReasoningSafety = attrs.field(factory=ReasoningSafety)
    _claimed: dict[str, list[Json]] = attrs.field(factory=dict)
    _steps: dict[str, _Step] = attrs.field(factory=dict)

    def attach(self) -> Callable[[], None]:
        """Begin to listen, outside of everyone who listens by now; call the result to stop.

        Stopping converts no history.
        """
        hooks = self.host.hooks
        disposers = (
            hooks.inbox_claimed.add(self._on_claimed),
            hooks.status.add(self._on_status),
            hooks.assemble.add(self._on_assemble, prepend=True),
            hooks.pre_step.add(self._on_pre_step, prepend=True),
            hooks.stream.add(self._on_stream, prepend=True),
        )

        def detach() -> None:
            for dispose in disposers:
                dispose()

        return detach

    def _on_claimed(self, change: InboxChange) -> None:
        self._claimed.setdefault(change.agent.id, []).append(change.message)

    def _on_status(self, change: StatusChange) -> None:
        """Keep nothing of an agent that rests."""
        if change.status == "idle":
            self._claimed.pop(change.agent.id, None)
            self._steps.pop(change.agent.id, None)

    # Standard backend

    async def _on_assemble(self, value: Assembly, context: PromptContext, rest: Next[Assembly, Assembly]) -> Assembly:
        """Plan the step once every other provider has spoken."""
        if context.preview:
            return await rest(value)
        agent = context.agent
        claimed = self._claimed.pop(agent.id, [])
        self._steps.pop(agent.id, None)
        made = await rest(value)
        preset = self.requests.applied(agent.id)
        if preset is None:
            return made
        require_available(preset, self.capabilities, self.strategies.capture())
        removed = removed_contexts(preset)
        made = attrs.evolve(made, contexts=tuple(item for item in made.contexts if item.name not in removed))
        sections = tuple(Section(item.name, item.text, item.interpolate) for item in made.sections)
        step = self._steps[agent.id] = _Step(context.turn, context.step, preset, sections)
        if not preset.is_native:
            return made
        asked = NativeAsked(
            context.turn, context.step, sections, made.variables, agent.derive_messages(), tuple(claimed)
        )
        step.plan = await self.requests.native(agent.id, asked)
        return with_plan(made, step.plan)

    async def _on_pre_step(
        self, value: PreStep, context: StepContext, rest: Next[PreStep, PreStepDecision]
    ) -> PreStepDecision:
        """Clean the surface by the policy, and put contributions around what the step takes."""
        agent = context.agent
        policy = self.requests.policy(agent.id)
        cutoff = _newest(agent.log.events, STEP_END, default=-1)
        decision = await rest(value)
        if not isinstance(decision, Enter):
            return decision
        step = self._steps.get(agent.id)
        is_standard = step is None or step.preset.is_native
        # In advanced mode the requests are filtered instead; what the standard mode hid comes back.
        active = policy.policy if is_standard else DEFAULT_POLICY
        messages = list(decision.messages)
        history = agent.derive_messages()
        events = [event.to_json() for event in agent.log.events if _is_relevant(event)]
        refreshed = runtime_context_refresh(events, policy.policy, messages, cutoff, agent.new_id())
        if refreshed is not None:
            messages.append(dict(refreshed))
        starts = self._clean(agent, events, active, cutoff, policy.revision) or decision.starts_request_series is True
        plan = None if step is None else step.plan
        if plan is not None and joins_step("enter", messages, context.step, history):
            messages = list(plan.accept(messages))
            starts = starts or plan.reconciles_system
        return Enter(tuple(messages), starts_request_series=True if starts else decision.starts_request_series)

    def _clean(self, agent: Agent, events: Sequence[Json], policy: HistoryPolicy, cutoff: int, revision: int) -> bool:
        """Hide and restore, all without a wait between planning and writing; True when the series starts anew."""
        nodes = [event.seq for event in agent.log.surface.nodes]
        plan = plan_standard(events, nodes, agent.derive_messages(), policy, cutoff_seq=cutoff, revision=revision)
        for operation in plan.operations:
            event = operation.event(policy, revision)
            target = SurfaceReplace(operation.target_seq, operation.target_seq)
            agent.log.append(event["type"], event["data"], target, tuple(operation.source_event_seqs))
        return bool(plan.operations) or plan.reconcile_system

    # Advanced backend

    async def _on_stream(self, call: StreamCall, context: StepContext, rest: Next[StreamCall, None]) -> None:
        """Replace the request's messages, and leave evidence of what was sent."""
        step = self._steps.get(context.agent.id)
        request = call.request
        is_ours = step is not None and (step.turn, step.step) == (request.turn, request.step)
        if step is None or not is_ours or step.preset.is_native or request.purpose is not None:
            await rest(call)
            return
        messages = await self._replace(context.agent, step, request.messages, has_tools=bool(request.tools))
        await rest(attrs.evolve(call, request=attrs.evolve(request, messages=messages)))

    async def _replace(self, agent: Agent, step: _Step, native: Sequence[Json], *, has_tools: bool) -> tuple[Json, ...]:
        events = agent.log.events
        started = _newest(events, STEP_START, default=0)
        inputs = [event.data["id"] for event in events[started:] if event.type == USER_MESSAGE]
        asked = CoreAsked(
            step.turn,
            step.step,
            tuple(native),
            tuple(inputs),
            step.sections,
            carried=carried_by(events),
            system_update=self.system_update,
        )
        projection = await self.requests.core(agent.id, asked)
        filtered, policy = self.filtered(agent, projection.messages, started, has_tools=has_tools)
        messages = tuple(dict(message) for message in filtered.messages)
        metadata = {
            "owner": OWNER,
            "assembly": projection.metadata(),
            "historyPolicy": {**filtered.audit, "revision": policy.revision},
        }
        evidence = {"turn": step.turn, "step": step.step, "messages": list(messages), "metadata": metadata}
        agent.log.append(EVIDENCE, evidence, ignorable=True)
        # What the record points to must be there before the request is.
        await agent.log.flush()
        return messages

    def filtered(
        self, agent: Agent, messages: Sequence[Json], started: int, *, has_tools: bool
    ) -> tuple[Filtered, StoredPolicy]:
        """A replaced request after the history policy, and the policy.

        Args:
            started: seq of the step's start; what the log holds before it is old.
            has_tools: whether the request offers tools.
        """
        policy = self.requests.policy(agent.id)
        filtered = filter_history(
            messages,
            (event.to_json() for event in agent.log.events if _is_relevant(event)),
            policy.policy,
            current_step_seq=started,
            reasoning=attrs.evolve(self.reasoning, tools_present=self.reasoning.tools_present or has_tools),
            retain_current_system=True,
        )
        return filtered, policy


def with_plan(made: Assembly, plan: NativePlan) -> Assembly:
    """The prompt with what the standard backend contributes."""
    added = tuple(NamedText(item.name, item.text) for item in plan.contexts)
    return attrs.evolve(
        made,
        sections=tuple(NamedText(item.name, item.text, item.interpolate) for item in plan.sections),
        contexts=(*made.contexts, *added),
        variables={**made.variables, **plan.variables},
    )


def _newest(events: Sequence[Event], kind: str, *, default: int) -> int:
    return next((event.seq for event in reversed(events) if event.type == kind), default)


def _is_relevant(event: Event) -> bool:
    return event.surface_op is not None or event.type == STEP_END


def carried_by(events: Sequence[Event]) -> Carried:
    """What the session's last replaced request left for this one."""
    for event in reversed(events):
        if event.type == EVIDENCE:
            metadata = event.data.get("metadata")
            if isinstance(metadata, dict) and metadata.get("owner") in OWNERS:
                return read_carried(metadata.get("assembly"))
    return Carried()
