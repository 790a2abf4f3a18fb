"""The embedded host's assembler asks the sessions: each request is made by the session's own actor.

Source: spec/assembler §11.4, §12, §16 "Preview"; design §4 rules 3, 4.
"""

from collections.abc import Sequence
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
from tapster.actors.hosts.port import SessionNotFound
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
)
from tapster.engine.ecma import Json

from .directory import Sessions
from .messages import AssembleRequest, PreviewRequest
from .strategy import Made, NoStrategy

DRAFT_ID: Final = "preview-draft"
SNAPSHOT_ID: Final = "preview-runtime-context"


@final
@attrs.define(eq=False)
class SessionRequests:
    """``Requests`` of the embedded host with Tavern's sessions in it."""

    host: EmbeddedHost
    sessions: Sessions
    workshop: Workshop

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

    async def preview(
        self, assembler: EmbeddedAssembler, agent: Agent, draft: str | None, preset: AssemblyPreset | None
    ) -> Made:
        """What the session would send now by its strategy, or by another one; nothing is recorded or changed.

        Raises:
            NoStrategy: none is applied and none is given.
            TapsterError: what the assembly itself would raise.
        """
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


def draft_messages(draft: str | None) -> tuple[Json, ...]:
    """A draft as the input that a step would have claimed."""
    if draft is None:
        return ()
    content = [{"type": "text", "text": draft}]
    return ({"id": DRAFT_ID, "role": "user", "content": content, "source": {"kind": "user"}},)
