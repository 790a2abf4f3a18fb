"""What a host asks for when it assembles a request by a preset, and what it is given to deliver.

Source: spec/assembler §11.4, §12.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol, final

import attrs
import trio

from tapster.engine.assembly import (
    AssemblyPreset,
    AssemblyRefused,
    AssemblyResult,
    Carried,
    HistoryPolicies,
    NativePlan,
    PresetStore,
    Projection,
    RequestContext,
    Section,
    StoredPolicy,
    freeze_context,
    native_messages,
    official_text,
    plan_native,
    project_system_snapshots,
)
from tapster.engine.assembly.native_plan import PREVIEW_MESSAGE_ID, SYSTEM_MESSAGE_ID
from tapster.engine.ecma import Json

from .registrations import Sources
from .resolve import assemble


@attrs.frozen(eq=False)
class NativeAsked:
    """A step of the standard backend, before its prompt is rendered.

    Attributes:
        sections: the official sections, as every other provider left them.
        durable: the session's messages with their system text.
        claimed: the input that the step has claimed.
        variables: the host's prompt variables.
    """

    turn: int
    step: int
    sections: tuple[Section, ...]
    variables: Mapping[str, str]
    durable: tuple[Json, ...]
    claimed: tuple[Json, ...] = ()
    preview: bool = False

    def context(self, preset: AssemblyPreset, assets: Mapping[str, Json], session_id: str) -> RequestContext:
        """The frozen context of the request.

        Raises:
            AssemblyRefused: ``NATIVE_PREVIEW_VARIABLE_UNAVAILABLE`` (409).
        """
        system_id = PREVIEW_MESSAGE_ID if self.preview else SYSTEM_MESSAGE_ID
        text = official_text(self.sections, self.variables)
        return freeze_context(
            preset,
            native_messages(self.durable, text, self.claimed, system_id),
            assets=assets,
            input_ids=[str(message["id"]) for message in self.claimed],
            session_id=session_id,
            turn=self.turn,
            step=self.step,
            preview=self.preview,
        )

    def plan(self, context: RequestContext, result: AssemblyResult) -> NativePlan:
        """What the host delivers.

        Raises:
            AssemblyRefused: the standard backend can't keep what came out (409).
        """
        preset = context.preset
        has_official = any(rule.enabled and rule.kind == "native-system" for rule in preset.rules)
        return plan_native(
            result,
            context.native_messages,
            self.durable,
            self.sections,
            self.variables,
            turn=self.turn,
            step=self.step,
            reconciles=preset.is_adaptive or not has_official,
        )


@attrs.frozen(eq=False)
class CoreAsked:
    """A request of the advanced backend, about to leave.

    Attributes:
        messages: the host's own request.
        input_ids: which of them are the step's input.
        carried: snapshots and marks of the session's last replaced request.
        system_update: what the model can do with a system message within the history.
    """

    turn: int
    step: int
    messages: tuple[Json, ...]
    input_ids: tuple[str, ...] = ()
    sections: tuple[Section, ...] = ()
    variables: Mapping[str, str] = attrs.field(factory=dict)
    carried: Carried = attrs.field(factory=Carried)
    system_update: str | None = None
    preview: bool = False

    def context(self, preset: AssemblyPreset, assets: Mapping[str, Json], session_id: str) -> RequestContext:
        """The frozen context of the request; a preview has no rendered prompt yet, so it brings the sections.

        Raises:
            AssemblyRefused: ``NATIVE_PREVIEW_VARIABLE_UNAVAILABLE`` (409).
        """
        messages = self.messages
        if self.preview:
            text = official_text(self.sections, self.variables)
            messages = native_messages(messages, text, system_id=PREVIEW_MESSAGE_ID)
        return freeze_context(
            preset,
            messages,
            assets=assets,
            input_ids=self.input_ids,
            session_id=session_id,
            turn=self.turn,
            step=self.step,
            preview=self.preview,
        )

    def project(self, context: RequestContext, result: AssemblyResult) -> Projection:
        """The physical request.

        Raises:
            AssemblyRefused: nothing is left (``ASSEMBLY_EMPTY``), it is too large (413), or no model takes it (409).
        """
        projection = project_system_snapshots(
            result, context.native_messages, system_prompt_update=self.system_update, preview=self.preview
        )
        if not projection.messages and not self.preview:
            raise AssemblyRefused("the assembled request is empty", code="ASSEMBLY_EMPTY")
        return projection


class Requests(Protocol):
    """Makes the requests of a host's sessions; a declared error refuses the request as a whole."""

    def applied(self, session_id: str) -> AssemblyPreset | None:
        """What the session has applied, None for nothing."""

    def policy(self, session_id: str) -> StoredPolicy:
        """What of old messages the session's requests carry."""

    async def native(self, session_id: str, asked: NativeAsked) -> NativePlan:
        """A step of the standard backend."""

    async def core(self, session_id: str, asked: CoreAsked) -> Projection:
        """A request of the advanced backend."""


Assets = Callable[[str], Awaitable[Mapping[str, Json]]]
"""Gives the read-only assets of a session's request."""


async def no_assets(session_id: str) -> Mapping[str, Json]:
    """The assets of a host that has none."""
    del session_id
    await trio.lowlevel.checkpoint()
    return {}


@final
@attrs.define(eq=False)
class PlainRequests:
    """``Requests`` of a host without Tavern: the sources and nothing else.

    Attributes:
        presets: which preset a session has applied.
        policies: what of old messages later requests carry.
        assets: gives the assets of a request.
    """

    sources: Sources
    presets: PresetStore
    policies: HistoryPolicies
    assets: Assets = no_assets

    def applied(self, session_id: str) -> AssemblyPreset | None:
        """As ``Requests.applied``."""
        return self.presets.selection(session_id)

    def policy(self, session_id: str) -> StoredPolicy:
        """As ``Requests.policy``."""
        return self.policies.read(session_id)

    async def native(self, session_id: str, asked: NativeAsked) -> NativePlan:
        """As ``Requests.native``."""
        context = await self._context(session_id, asked)
        return asked.plan(context, await assemble(self.sources, context))

    async def core(self, session_id: str, asked: CoreAsked) -> Projection:
        """As ``Requests.core``."""
        context = await self._context(session_id, asked)
        return asked.project(context, await assemble(self.sources, context, asked.carried))

    async def _context(self, session_id: str, asked: NativeAsked | CoreAsked) -> RequestContext:
        preset = self.presets.selection(session_id)
        if preset is None:
            raise AssemblyRefused(f"session {session_id} has no strategy", code="ASSEMBLY_PRESET_NOT_FOUND", status=404)
        return asked.context(preset, await self.assets(session_id), session_id)
