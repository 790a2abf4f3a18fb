"""The embedded host's assembler asks the sessions: each request is made by the session's own actor.

Source: spec/assembler §11.4, §12, §16 "Preview"; design §4 rules 3, 4.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, final

import attrs

from tapster.actors.hosts.embedded import (
    Agent,
    Assembly,
    EmbeddedHost,
    PromptContext,
    assemble_prompt,
    context_sections,
    due_snapshot,
)
from tapster.actors.hosts.port import HostSession, SessionNotFound
from tapster.actors.sources.embedded import EmbeddedAssembler, carried_by, with_plan
from tapster.actors.sources.requests import CoreAsked, NativeAsked
from tapster.actors.store.values import HOME_HOST, SessionKey
from tapster.actors.strategies import Workshop
from tapster.engine.assembly import (
    PREVIEW_MESSAGE_ID,
    AssemblyPreset,
    NativePlan,
    Projection,
    Section,
    StoredPolicy,
    removed_contexts,
    require_available,
)
from tapster.engine.ecma import Json
from tapster.engine.mvu import VariableResource
from tapster.engine.mvu.shelf import Mode
from tapster.runtime import ActorGone

from .actor import SessionPorts
from .cold import cold_request
from .directory import Sessions
from .messages import AssembleRequest, PreviewRequest
from .strategy import Made, NoStrategy, draft_messages

SNAPSHOT_ID: Final = "preview-runtime-context"


@final
@attrs.define(eq=False)
class SessionRequests:
    """``Requests`` of the embedded host with Tavern's sessions in it, and what people ask about them.

    Attributes:
        assembler: delivers the requests; set once it has these.
    """

    host: EmbeddedHost
    sessions: Sessions
    ports: SessionPorts
    assembler: EmbeddedAssembler | None = None

    @property
    def workshop(self) -> Workshop:
        """Sources and strategies."""
        assert self.ports.workshop is not None, "sessions with strategies have a workshop"
        return self.ports.workshop

    def applied(self, session_id: str) -> AssemblyPreset | None:
        """As ``Requests.applied``."""
        return self.workshop.strategies.selection(SessionKey(HOME_HOST, session_id))

    def policy(self, session_id: str) -> StoredPolicy:
        """As ``Requests.policy``."""
        return self.workshop.strategies.policy(SessionKey(HOME_HOST, session_id))

    async def native(self, session_id: str, asked: NativeAsked) -> NativePlan:
        """As ``Requests.native``."""
        made = await self._made(session_id, AssembleRequest(asked))
        assert made.plan is not None, "a native request has a plan"
        return made.plan

    async def core(self, session_id: str, asked: CoreAsked) -> Projection:
        """As ``Requests.core``."""
        made = await self._made(session_id, AssembleRequest(asked))
        assert made.projection is not None, "a core request has a projection"
        return made.projection

    async def apply(self, session_id: str, preset_id: str | None) -> AssemblyPreset | None:
        """Copy a strategy that can run here to a session; None is deliberately off.

        Raises:
            AssemblyRefused: there is no such strategy (404), or it can't run here (409).
        """
        workshop = self.workshop
        if preset_id is not None:
            preset = workshop.strategies.get(preset_id).preset
            require_available(preset, workshop.capabilities, workshop.sources.strategies.capture())
        return await workshop.strategies.apply(SessionKey(HOME_HOST, session_id), preset_id)

    async def variables(self, session_id: str) -> VariableResource | None:
        """A session's variables, begun if its card declares some; None when it declares none.

        Raises:
            SessionNotFound: there is none of that id.
            MvuError: what the card declares can't be used.
        """
        with self.reading(session_id) as key:
            return await self._variables(key)

    async def set_variables_mode(self, session_id: str, mode: Mode, expected_config_revision: int) -> VariableResource:
        """Let a session's variables be used, or keep them for a manager.

        Raises:
            SessionNotFound, MvuError: as ``variables``.
            VariablesUnavailable: there are none.
            MvuEditRefused: ``REVISION_CONFLICT``.
        """
        with self.reading(session_id) as key:
            await self._variables(key)
            return await self.workshop.variables.set_mode(
                key, mode, expected_config_revision, await self._next_seq(session_id)
            )

    async def patch_variables(
        self, session_id: str, operations: Json, *, expected_revision: int, operation_id: str
    ) -> VariableResource:
        """Edit a session's variables by a JSON patch.

        Raises:
            SessionNotFound, MvuError: as ``variables``.
            VariablesUnavailable, MvuEditRefused: as ``Variables.patch``.
        """
        with self.reading(session_id) as key:
            await self._variables(key)
            return await self.workshop.variables.patch(
                key,
                operations,
                expected_revision=expected_revision,
                operation_id=operation_id,
                seq=await self._next_seq(session_id),
            )

    @contextmanager
    def reading(self, session_id: str) -> Iterator[SessionKey]:
        """What is read of a session that sleeps stays in memory for this block only."""
        key = SessionKey(HOME_HOST, session_id)
        with self.workshop.variables.kept(key):
            try:
                yield key
            finally:
                if not self.sessions.knows(key):
                    self.ports.library.forget(key)

    async def _variables(self, key: SessionKey) -> VariableResource | None:
        header = await self.host.session(key.session).header()
        bound = await self.ports.library.bound(key)
        await self.workshop.variables.activate(key, bound.resources.character, header.created_at)
        return self.workshop.variables.active(key)

    async def _next_seq(self, session_id: str) -> int:
        return len((await self.host.session(session_id).inspect()).events)

    async def preview(self, session_id: str, draft: str | None, preset: AssemblyPreset | None) -> Made:
        """What a session would send now by its strategy, or by another one; nothing is recorded or changed.

        A session that sleeps isn't woken, and one that the host doesn't know is taken as empty; neither has official
        sections.

        Raises:
            NoStrategy: none is applied and none is given.
            TapsterError: what the assembly itself would raise.
        """
        agent = self.host.agent(session_id)
        if agent is not None and self.assembler is not None:
            try:
                return await self._preview(self.assembler, agent, draft, preset)
            except ActorGone as gone:
                # Put to sleep in this very moment: then it is looked at as it sleeps.
                if gone.taken:
                    raise
        session: HostSession | None = self.host.session(session_id)
        try:
            await self.host.session(session_id).header()
        except SessionNotFound:
            session = None
        with self.reading(session_id) as key:
            return await cold_request(key, session, self.ports, draft, preset)

    async def _preview(
        self, assembler: EmbeddedAssembler, agent: Agent, draft: str | None, preset: AssemblyPreset | None
    ) -> Made:
        strategy = preset or self.applied(agent.id)
        if strategy is None:
            raise NoStrategy(agent.id)
        prompt = await assemble_prompt(PromptContext(agent, 0, 0, preview=True))
        sections = tuple(Section(item.name, item.text, item.interpolate) for item in prompt.sections)
        durable, claimed = agent.derive_messages(), draft_messages(draft)
        asked: NativeAsked | CoreAsked
        if strategy.is_native:
            asked = NativeAsked(0, 0, sections, prompt.variables, durable, claimed, preview=True)
        else:
            asked = CoreAsked(
                0,
                0,
                (*durable, *claimed),
                tuple(message["id"] for message in claimed),
                sections,
                prompt.variables,
                carried_by(agent.log.events),
                assembler.system_update,
                preview=True,
            )
        made = await self._made(agent.id, PreviewRequest(asked, preset, draft))
        if made.plan is not None:
            return attrs.evolve(made, sent=delivered(prompt, made.plan, strategy, durable, claimed))
        assert made.projection is not None, "a core request has a projection"
        filtered, _ = assembler.filtered(agent, made.projection.messages, agent.seq, has_tools=bool(prompt.tools))
        return attrs.evolve(made, projection=attrs.evolve(made.projection, messages=tuple(filtered.messages)))

    async def _made(self, session_id: str, message: AssembleRequest | PreviewRequest) -> Made:
        agent = self.host.agent(session_id)
        if agent is None:
            raise SessionNotFound(session_id)
        made: Made = await self.sessions.ask(SessionKey(HOME_HOST, session_id), agent.session, message)
        return made


def delivered(
    prompt: Assembly, plan: NativePlan, preset: AssemblyPreset, durable: Sequence[Json], claimed: Sequence[Json]
) -> tuple[Json, ...]:
    """The request as the host would send it by a plan of the standard backend."""
    removed = removed_contexts(preset)
    kept = tuple(item for item in prompt.contexts if item.name not in removed)
    sections = context_sections(with_plan(attrs.evolve(prompt, contexts=kept), plan))
    content = [{"type": "text", "text": plan.system_text}]
    system = [{"id": PREVIEW_MESSAGE_ID, "role": "system", "content": content}] if plan.system_text else []
    history = [message for message in durable if message.get("role") != "system"]
    return (*system, *history, *plan.accept((*claimed, *due_snapshot(SNAPSHOT_ID, sections, durable))))
