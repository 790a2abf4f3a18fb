"""Tavern sessions inside the embedded host: its hooks ask the session actors.

Source: spec/loader §1, §11; design §4 rule 6.
"""

from collections.abc import Iterator, Mapping
from typing import Final, Literal, final

import attrs

from tapster.actors.hosts.embedded import (
    Agent,
    AgentCreated,
    Assembly,
    EmbeddedHost,
    Enter,
    NamedText,
    Next,
    PreStep,
    PreStepDecision,
    PromptContext,
    RequestFailed,
    SessionEvent,
    StatusChange,
    StepContext,
    StreamCall,
    ToolExecution,
)
from tapster.actors.providers import CallConfig
from tapster.actors.sources.embedded import EmbeddedAssembler
from tapster.actors.store.values import HOME_HOST, SessionKey
from tapster.engine.ecma import Json
from tapster.engine.errors import TapsterError
from tapster.engine.policy import BLOCK_REASON, guard_tool
from tapster.engine.profile import PROFILE_ORDER, PROFILE_SECTION
from tapster.engine.trace import AssemblyPart, ObservedRequest, OfficialAssembly
from tapster.runtime import LogSink, RuntimeFault

from .admission import ParameterAdmission
from .alerts import RpAlerts
from .directory import Sessions
from .messages import (
    Assemble,
    Assembled,
    BeginRequest,
    CommitQueuedRp,
    EventsLogged,
    RequestErrored,
    RequestLeft,
    RequestPrepared,
)
from .roleplay import RpAnswer

POLICY_SECTION: Final = "rp:policy"
POLICY_ORDER: Final = 45
SAMPLING: Final = ("temperature", "maxTokens", "reasoningEffort", "stop")
"""Members of a call config that only a preset sets here (spec/loader §10)."""


def embedded_key(session_id: str) -> SessionKey:
    """The key of a session of the embedded host."""
    return SessionKey(HOME_HOST, session_id)


@final
@attrs.define(eq=False)
class EmbeddedTavern:
    """Joins an embedded host to the sessions; ``attach`` registers every listener.

    Attributes:
        assembler: makes the requests of sessions that have a strategy; None leaves every session its profile.
    """

    host: EmbeddedHost
    sessions: Sessions
    alerts: RpAlerts
    log: LogSink
    assembler: EmbeddedAssembler | None = None
    _admission: ParameterAdmission = attrs.field(factory=ParameterAdmission)
    _official: dict[str, OfficialAssembly] = attrs.field(factory=dict)
    _applied: dict[str, Assembled] = attrs.field(factory=dict)

    def attach(self) -> None:
        """Listen to every hook that a session has part in."""
        hooks = self.host.hooks
        self.host.prompt.section(PROFILE_SECTION, "", order=PROFILE_ORDER)
        self.host.prompt.section(POLICY_SECTION, "", order=POLICY_ORDER)
        self.host.tools.guard(self._guard)
        hooks.agent_created.add(self._created)
        hooks.session_event.add(self._event)
        hooks.assemble.add(self._assemble)
        hooks.pre_step.add(self._pre_step)
        hooks.request.add(self._request)
        hooks.stream.add(self._stream, prepend=True)
        hooks.request_error.add(self._request_error, prepend=True)
        hooks.disposed.add(self._disposed)
        hooks.status.add(self._status)
        if self.assembler is not None:
            self.assembler.attach()
        # Outside of everyone: what it sees is the prompt as it is rendered.
        hooks.assemble.add(self._witness, prepend=True)
        hooks.in_use.append(self._is_in_use)

    async def _created(self, created: AgentCreated) -> None:
        agent = created.agent
        key = embedded_key(agent.id)
        # An agent that restarted has a new log in memory; the session starts afresh from it.
        await self.sessions.close(key)
        parent = agent.header.parent_session
        await self.sessions.open(key, agent.session, parent=None if parent is None else embedded_key(parent))
        session = self.sessions.find(key)
        if session is not None and session.wanted_sandbox is not None:
            agent.log.append("sandbox/mode", {"mode": session.wanted_sandbox})

    def _event(self, logged: SessionEvent) -> None:
        self.sessions.tell(embedded_key(logged.agent.id), EventsLogged())

    async def _assemble(
        self, assembly: Assembly, context: PromptContext, proceed: Next[Assembly, Assembly]
    ) -> Assembly:
        if context.preview:
            return await proceed(assembly)
        agent = context.agent
        self._applied.pop(agent.id, None)
        inner = await proceed(assembly)
        message = Assemble(context.turn, context.step)
        assembled: Assembled = await self.sessions.ask(embedded_key(agent.id), agent.session, message)
        self._applied[agent.id] = assembled
        return with_profile(inner, assembled)

    async def _witness(self, assembly: Assembly, context: PromptContext, proceed: Next[Assembly, Assembly]) -> Assembly:
        """Keep what the record says of the prompt."""
        if context.preview:
            return await proceed(assembly)
        self._official.pop(context.agent.id, None)
        whole = await proceed(assembly)
        self._official[context.agent.id] = official(whole)
        return whole

    async def _pre_step(
        self, given: PreStep, context: StepContext, proceed: Next[PreStep, PreStepDecision]
    ) -> PreStepDecision:
        decision = await proceed(given)
        if isinstance(decision, Enter):
            agent = context.agent
            answer: RpAnswer = await self.sessions.ask(embedded_key(agent.id), agent.session, CommitQueuedRp())
            pinned = "read-only" if self._is_rp(agent) and self._sandbox(agent) != "read-only" else None
            mode = answer.sandbox or pinned
            if mode is not None:
                agent.log.append("sandbox/mode", {"mode": mode})
        return decision

    async def _request(
        self, config: CallConfig, context: StepContext, proceed: Next[CallConfig, CallConfig]
    ) -> CallConfig:
        agent = context.agent
        await self._observe(agent, BeginRequest())
        # The seed repeats the last request's values; what the preset of today doesn't set must not linger.
        seed = {name: value for name, value in config.items() if name not in SAMPLING}
        merged: Mapping[str, Json] = {**agent.options.config(), **seed}
        merged = await proceed(merged)
        assembled = self._applied.get(agent.id)
        supplied = {} if assembled is None else assembled.snapshot.call_config.to_json()
        merged = await self._admission.admit(context, merged, supplied)
        prepared = RequestPrepared(
            context.turn, context.step, self._official.get(agent.id), self._admission.record(agent.id)
        )
        await self._observe(agent, prepared)
        return merged

    async def _stream(self, call: StreamCall, context: StepContext, proceed: Next[StreamCall, None]) -> None:
        if call.request.purpose is None:
            request = call.request
            observed = ObservedRequest(request.messages, None, request.provider, request.model, request.tools)
            await self._observe(context.agent, RequestLeft(observed))
        await proceed(call)

    async def _request_error(
        self,
        failed: RequestFailed,
        context: StepContext,
        proceed: Next[RequestFailed, Literal["retry"] | None],
    ) -> Literal["retry"] | None:
        decision = await proceed(failed) or self._admission.retry(context, failed)
        await self._observe(context.agent, RequestErrored(context.turn, context.step, decision == "retry"))
        return decision

    def _status(self, change: StatusChange) -> None:
        """Keep nothing of an agent that rests."""
        if change.status == "idle":
            self._official.pop(change.agent.id, None)
            self._applied.pop(change.agent.id, None)

    def _disposed(self, agent: Agent) -> None:
        self.sessions.release(embedded_key(agent.id))
        self._admission.forget(agent.id)
        self._official.pop(agent.id, None)
        self._applied.pop(agent.id, None)

    def _is_in_use(self, agent: Agent) -> bool:
        session = self.sessions.find(embedded_key(agent.id))
        return session is not None and session.is_asked

    def _guard(self, execution: ToolExecution) -> str | None:
        if not self._is_rp(execution.agent):
            return None
        workspace = execution.agent.header.cwd or execution.agent.options.cwd or None
        decision = guard_tool(execution.name, execution.arguments, workspace)
        if not decision.blocked:
            return None
        self.alerts.record(self._topmost_rp(execution.agent), execution.name)
        execution.agent.cancel({"kind": "hook", "reason": "rp-high-risk-block"}, keep_inbox=True)
        return BLOCK_REASON

    def _is_rp(self, agent: Agent) -> bool:
        return self.sessions.is_rp(embedded_key(agent.id))

    def _topmost_rp(self, agent: Agent) -> str:
        """The topmost live session along the parents that has RP mode on."""
        top, current = agent.id, agent.header.parent_session
        while current is not None:
            parent = self.host.agent(current)
            if parent is None:
                break
            top = current if self._is_rp(parent) else top
            current = parent.header.parent_session
        return top

    @staticmethod
    def _sandbox(agent: Agent) -> str | None:
        modes = (event.data["mode"] for event in reversed(agent.log.events) if event.type == "sandbox/mode")
        return next(modes, None)

    async def _observe(self, agent: Agent, message: object) -> None:
        """Tell a session what its capture needs; a record that can't be made never stops the request."""
        try:
            await self.sessions.ask(embedded_key(agent.id), agent.session, message)
        except (TapsterError, RuntimeFault) as error:
            self.log("warning", "trace.not-captured", session=agent.id, code=error.code)


def with_profile(assembly: Assembly, assembled: Assembled) -> Assembly:
    """The assembly with the profile expanded in its place; mode ``replace`` keeps only Tavern's own sections."""
    parts = tuple(NamedText(part.name, part.text, interpolate=False) for part in assembled.snapshot.sections)
    policy = assembled.policy_text
    replaces = assembled.snapshot.system_prompt_mode == "replace"

    def expanded() -> Iterator[NamedText]:
        for section in assembly.sections:
            if section.name == PROFILE_SECTION:
                yield from parts
            elif section.name == POLICY_SECTION:
                if policy:
                    yield NamedText(POLICY_SECTION, policy, interpolate=False)
            elif not replaces:
                yield section

    return attrs.evolve(assembly, sections=tuple(expanded()))


def official(assembly: Assembly) -> OfficialAssembly:
    """The assembly as a trace records it."""
    return OfficialAssembly(
        tuple(AssemblyPart(item.name, item.text, item.interpolate) for item in assembly.sections),
        tuple(AssemblyPart(item.name, item.text, item.interpolate) for item in assembly.contexts),
        assembly.variables,
    )
