"""The actor of one session: its pending input, its lease, the one live assembly, its previews and its capture.

Source: design §4 rules 3-8.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, ClassVar, final

import attrs
import trio

from tapster.actors.hosts.port import HostSession
from tapster.actors.sources.requests import CoreAsked, NativeAsked
from tapster.actors.store.values import ResourceUse, SessionKey
from tapster.actors.strategies import Workshop
from tapster.engine.activation import SessionState
from tapster.engine.assembly import AssemblyPreset
from tapster.engine.errors import StoreError, TapsterError
from tapster.engine.policy import RpIntent, SandboxMode
from tapster.engine.projection import Event
from tapster.engine.text.ports import RegexEngine
from tapster.runtime import Actor, Clock, Ids, Request, RuntimeFault, Threads, bounded_shield

from .capture import Capture, CaptureMoment, Written
from .compute import Computed, FrozenInput, compute_in_thread
from .finish import assembled_from
from .lease import AssemblyCancelled, LeaseLost, Revisions, Superseded
from .messages import (
    Applied,
    Assemble,
    Assembled,
    AssembleRequest,
    BeginRequest,
    CancelAssembly,
    CatchUp,
    CommitQueuedRp,
    EventsLogged,
    Leave,
    Preview,
    PreviewRequest,
    RequestErrored,
    RequestLeft,
    RequestPrepared,
    RequestRp,
)
from .ports import SessionLibrary, TraceSink
from .roleplay import Roleplay, RpAnswer
from .rolls import RollSeed
from .state import TURN_END, Followed
from .strategy import Made, NoStrategy, make_request, strategy_facts, with_request
from .variables import SessionVariables

TRIES = 2
"""A lost lease re-freezes once (design §4 rule 4)."""


@attrs.frozen
class SessionPorts:
    """What every session of a process is given."""

    library: SessionLibrary
    traces: TraceSink
    regex: RegexEngine
    threads: Threads
    clock: Clock
    ids: Ids
    workshop: Workshop | None = None


@attrs.frozen(eq=False)
class _Resolved:
    """The first half of a step by a strategy: everything its request is made from, and the lease on that."""

    turn: int
    step: int
    taken: Revisions
    frozen: FrozenInput
    computed: Computed


@final
class SessionActor(Actor):
    """Serves one session of one host.

    Attributes:
        wanted_sandbox: the mode that the start of RP mode asks the host to pin, None for no change.
    """

    declared: ClassVar[tuple[type[Exception], ...]] = (TapsterError,)

    def __init__(self, key: SessionKey, host: HostSession, ports: SessionPorts, *, parent: SessionKey | None) -> None:
        self.name = f"session:{key}"
        self.key = key
        self._host = host
        self._ports = ports
        self._parent = parent
        self._followed: Followed
        self._capture = Capture(key.session, ports.clock, ports.ids)
        self._catching_up = trio.Lock()
        self._switching_rp = trio.Lock()
        self._is_told = False
        self._under_way: Request | None = None
        self._assembled: Assembled | None = None
        self._resolved: _Resolved | None = None
        self._uses: tuple[ResourceUse, ...] = ()
        self.is_open = False
        self._variables = None if ports.workshop is None else SessionVariables(key, ports.workshop)
        self._state = SessionState()
        self._unsaved: tuple[int, SessionState] | None = None
        self._saving = trio.Lock()
        self._roleplay = Roleplay(key, ports.library)
        self.wanted_sandbox: SandboxMode | None = None

    @property
    def is_rp(self) -> bool:
        """Whether RP mode holds, published for the host's tool guard."""
        return self._roleplay.holds

    async def open(self) -> None:
        """Start in one awaited step: selection, pending input, RP mode (spec/loader §1).

        Raises:
            TapsterError: any part failed; the session isn't served.
        """
        header = await self._host.header()
        selection = await self._ports.library.ensure_selection(self.key, self._parent, header.seed_length)
        inspection = await self._host.inspect()
        self._followed = Followed.rebuild(header, inspection.events)
        self._state = await self._ports.library.state(self.key, self._followed.seq)
        if self._variables is not None:
            await self._variables.open(self._parent, header, inspection.events)
        self.wanted_sandbox = await self._roleplay.start(
            selection.rp, header, self._followed.sandbox, card_bound=selection.character_card_id is not None
        )
        self.is_open = True

    def receive(self, request: Request) -> None:
        """Start or cancel work; the state changes inside it, between waits."""
        match request.body:
            case Assemble():
                self._supersede(request, self._assemble)
            case AssembleRequest():
                self._supersede(request, self._assemble_request)
            case Preview():
                self.start(request, self._preview, request.body)
            case PreviewRequest():
                self.start(request, self._preview_request, request.body)
            case CancelAssembly():
                self._cancel_live(request.body.reason)
                request.settle()
            case RequestRp(wanted):
                self.start(request, self._request_rp, wanted)
            case CommitQueuedRp():
                self.start(request, self._commit_queued_rp)
            case EventsLogged():
                request.settle()
                self._follow_soon()
            case CatchUp():
                self.start(request, self._answer_applied)
            case Leave():
                self.start(request, self._leave)
            case BeginRequest():
                self.start(request, self._captured, self._capture.starting)
            case RequestPrepared(turn, step, assembly, parameters):
                assembled = self._assembled
                self.start(
                    request,
                    self._captured,
                    lambda: self._capture.begin(turn, step, assembly, assembled, parameters),
                )
            case RequestLeft(left):
                self.start(request, self._captured, lambda: self._capture.observed(left, self._followed.view()))
            case RequestErrored(turn, step, is_retry):
                self.start(request, self._captured, lambda: self._capture.request_failed(turn, step, is_retry))
            case _:
                raise TypeError(f"{self.name} has no answer to {type(request.body).__name__}")

    async def close(self) -> None:
        """Close a record that still waits for its request, and keep the last state."""
        try:
            self._write(self._capture.unloading())
            await self._save_soon()
            if self._variables is not None:
                await self._variables.count_soon()
        finally:
            if self._variables is not None:
                self._variables.release()

    # Assembly ---------------------------------------------------------------------------------------------------

    def _supersede(self, request: Request, work: Callable[..., Awaitable[Any]]) -> None:
        older = self._under_way
        if older is not None and not older.has_ended:
            older.cancel(Superseded(), "a newer assembly came")
        self._under_way = request
        self.start(request, work, request.body, older)

    def _cancel_live(self, reason: str) -> None:
        if self._under_way is not None and not self._under_way.has_ended:
            self._under_way.cancel(AssemblyCancelled(reason), reason)

    async def _assemble(self, message: Assemble, older: Request | None) -> Assembled:
        if older is not None:
            await older.wait_ended()
        self._assembled = self._resolved = None
        resolved = await self._resolve(message, message.turn, message.step)
        assembled = assembled_from(resolved.computed, resolved.frozen, self._ports.ids)
        if resolved.frozen.resolve_only:
            # The request is handed over by its second half; until then the claims are its successor's, too.
            self._resolved = resolved
            self._assembled = attrs.evolve(assembled, strategy=strategy_facts(self._applied()))
            return self._assembled
        # From here to the return nothing waits: claims are used up and the state moves on exactly when the profile is
        # handed over.
        self._hand_over(resolved, resolved.computed.state)
        self._assembled = assembled
        return assembled

    async def _assemble_request(self, message: AssembleRequest, older: Request | None) -> Made:
        if older is not None:
            await older.wait_ended()
        asked, resolved = message.asked, self._resolved
        if resolved is None or (resolved.turn, resolved.step) != (asked.turn, asked.step):
            resolved = await self._resolve(Assemble(asked.turn, asked.step), asked.turn, asked.step)
        try:
            made = await self._make(asked, resolved)
        except LeaseLost:
            resolved = await self._resolve_again(resolved)
            made = await self._make(asked, resolved)
        # As in ``_assemble``: nothing waits from here on.
        self._resolved = resolved
        self._hand_over(resolved, made.state(resolved.computed))
        self._assembled = with_request(assembled_from(resolved.computed, resolved.frozen, self._ports.ids), made)
        return made

    def _hand_over(self, resolved: _Resolved, state: SessionState) -> None:
        self._followed.drop_claims(resolved.frozen.pending)
        self._move_on(resolved.frozen.seq, state)

    async def _preview(self, message: Preview) -> Assembled:
        resolved = await self._resolve(message, draft=message.draft)
        return assembled_from(resolved.computed, resolved.frozen, self._ports.ids)

    async def _preview_request(self, message: PreviewRequest) -> Made:
        preset = message.preset or self._applied()
        resolved = await self._resolve(message, draft=message.draft, preset=preset)
        try:
            return await self._make(message.asked, resolved, preset)
        except LeaseLost:
            return await self._make(message.asked, await self._resolve_again(resolved), preset)

    async def _make(
        self, asked: NativeAsked | CoreAsked, resolved: _Resolved, preset: AssemblyPreset | None = None
    ) -> Made:
        workshop, preset = self._ports.workshop, preset or self._applied()
        if workshop is None or preset is None:
            raise NoStrategy(self.key.session)
        self._check(resolved)
        return await make_request(
            workshop, self.key, preset, asked, resolved.frozen, resolved.computed, lambda: self._check(resolved)
        )

    def _applied(self) -> AssemblyPreset | None:
        workshop = self._ports.workshop
        return None if workshop is None else workshop.strategies.selection(self.key)

    def _check(self, resolved: _Resolved) -> None:
        changed = self._ports.library.revisions(self.key).changed_since(resolved.taken)
        if changed:
            raise LeaseLost(changed)

    async def _resolve(
        self,
        message: Assemble | Preview | PreviewRequest,
        turn: int = 0,
        step: int = 0,
        *,
        draft: str | None = None,
        preset: AssemblyPreset | None = None,
    ) -> _Resolved:
        for _ in range(TRIES):
            await self._catch_up()
            applied = preset or self._applied()
            taken = self._ports.library.revisions(self.key)
            bound = await self._ports.library.bound(self.key)
            if self._variables is not None and applied is not None:
                card, is_preview = bound.resources.character, not isinstance(message, Assemble)
                await self._variables.ready(applied, card, is_preview=is_preview)
            frozen = FrozenInput(
                self.key.session,
                self._followed.pending if draft is None else attrs.evolve(self._followed.pending, claimed=()),
                self._followed.history(),
                bound,
                RollSeed(str(self.key), self._state.rolled, self._ports.clock.now_ms()),
                message.host_context,
                draft,
                self.is_rp,
                state=self._state,
                trigger=message.trigger,
                seq=self._followed.seq,
                # A plain preview shows what the books and the preset give, whoever sends it.
                resolve_only=applied is not None and not isinstance(message, Preview),
            )
            computed = await compute_in_thread(frozen, self._ports.regex, self._ports.threads)
            resolved = _Resolved(turn, step, taken, frozen, computed)
            changed = self._ports.library.revisions(self.key).changed_since(taken)
            if not changed:
                return resolved
        raise LeaseLost(changed)

    async def _resolve_again(self, lost: _Resolved) -> _Resolved:
        """The same moment of the conversation over what is bound by now; its claims may be used up already."""
        taken = self._ports.library.revisions(self.key)
        frozen = attrs.evolve(lost.frozen, bound=await self._ports.library.bound(self.key))
        computed = await compute_in_thread(frozen, self._ports.regex, self._ports.threads)
        return attrs.evolve(lost, taken=taken, frozen=frozen, computed=computed)

    # State ----------------------------------------------------------------------------------------------------

    def _move_on(self, seq: int, state: SessionState) -> None:
        if state != self._state:
            self._state = state
            self._unsaved = seq, state
            self.start_background(self._save_soon)

    async def _save_soon(self) -> None:
        try:
            await self._save()
        except (TapsterError, RuntimeFault):
            # Still unsaved: whoever prepares the request tries again and is told, and so does the next state.
            await trio.lowlevel.checkpoint()

    async def _save(self) -> None:
        """Make the newest state durable; the request it belongs to only leaves after that."""
        async with self._saving:
            unsaved = self._unsaved
            if unsaved is None:
                return
            await self._ports.library.save_state(self.key, *unsaved)
            if self._unsaved is unsaved:
                self._unsaved = None

    # Following the host -----------------------------------------------------------------------------------------

    def _follow_soon(self) -> None:
        if not self._is_told:
            self._is_told = True
            self.start_background(self._follow)

    async def _follow(self) -> None:
        self._is_told = False
        await self._catch_up()

    async def _catch_up(self) -> None:
        async with self._catching_up:
            for event in await self._host.own_events(self._followed.seq):
                if event.seq >= self._followed.seq:
                    self._followed.apply(event)
                    self._write(self._capture.logged(event.to_json(), self._followed.view))
                    self._note_reply(event)

    def _note_reply(self, event: Event) -> None:
        if event.type == TURN_END:
            # A session that rests keeps what its record may still name, and nothing of how it came about.
            self._uses = self._uses if self._assembled is None else self._assembled.uses
            self._resolved = self._assembled = None
        if self._variables is not None and self._variables.note(event):
            self.start_background(self._variables.count_soon)

    async def _request_rp(self, wanted: RpIntent | None) -> RpAnswer:
        await self._catch_up()
        async with self._switching_rp:
            if wanted is None:
                return RpAnswer("noop", self._roleplay.stored, self._roleplay.pending)
            async with self._rp_known():
                return await self._roleplay.request(wanted, self._followed)

    async def _commit_queued_rp(self) -> RpAnswer:
        async with self._switching_rp, self._rp_known():
            return await self._roleplay.commit_queued(self._followed)

    @asynccontextmanager
    async def _rp_known(self) -> AsyncIterator[None]:
        """Look when it isn't known what was stored; or end, and the next message builds the session from what is."""
        try:
            yield
        finally:
            if self._roleplay.is_in_doubt:
                with bounded_shield(), suppress(StoreError):
                    await self._roleplay.learn()  # noqa: ASYNC102 - bounded_shield is a shield with a deadline
            if self._roleplay.is_in_doubt:
                self.finish()

    async def _answer_applied(self) -> Applied:
        await self._catch_up()
        return Applied(self._followed.seq)

    async def _leave(self) -> None:
        try:
            await self._catch_up()
        finally:
            self.finish()

    # Capture ----------------------------------------------------------------------------------------------------

    async def _captured(self, moment: CaptureMoment) -> None:
        await self._catch_up()
        self._write(moment())
        await self._save()

    def _write(self, written: Written) -> None:
        uses = self._uses if self._assembled is None else self._assembled.uses
        for record in written.records:
            self._ports.traces.put(self.key, record, uses)
        if written.audits:
            self._ports.traces.put_audits(self.key, written.audits)
