"""A preview of a session that sleeps, or that its host has never heard of: computed without waking anyone."""

from collections.abc import Sequence

from tapster.actors.hosts.port import HostSession
from tapster.actors.sources.embedded import carried_by
from tapster.actors.sources.requests import CoreAsked, NativeAsked
from tapster.actors.store.values import SessionKey
from tapster.engine.assembly import AssemblyPreset
from tapster.engine.projection import Event, SessionHeader, derive_messages

from .actor import SessionPorts
from .compute import FrozenInput, compute_in_thread
from .finish import assembled_from
from .messages import Assembled
from .rolls import RollSeed
from .state import Followed
from .strategy import Made, NoStrategy, draft_messages, make_request, uses_variables


async def cold_preview(
    key: SessionKey, host: HostSession | None, ports: SessionPorts, draft: str | None = None
) -> Assembled:
    """What the session would send now; an unknown one is taken as empty.

    Raises:
        TapsterError: what a live preview would raise.
    """
    frozen, _ = await _freeze(key, host, ports, draft)
    return assembled_from(await compute_in_thread(frozen, ports.regex, ports.threads), frozen, ports.ids)


async def cold_request(
    key: SessionKey,
    host: HostSession | None,
    ports: SessionPorts,
    draft: str | None = None,
    preset: AssemblyPreset | None = None,
) -> Made:
    """What the session's strategy, or another one, would send now; the host's own sections aren't known here.

    Raises:
        NoStrategy: none is applied and none is given.
        TapsterError: what a live preview would raise.
    """
    workshop = ports.workshop
    strategy = preset or (None if workshop is None else workshop.strategies.selection(key))
    if workshop is None or strategy is None:
        raise NoStrategy(key.session)
    frozen, events = await _freeze(key, host, ports, draft, resolve_only=True)
    if uses_variables(strategy):
        await workshop.variables.look(key, frozen.bound.resources.character)
    computed = await compute_in_thread(frozen, ports.regex, ports.threads)
    durable, claimed = derive_messages(events), draft_messages(draft)
    asked: NativeAsked | CoreAsked
    if strategy.is_native:
        asked = NativeAsked(0, 0, (), {}, tuple(durable), claimed, preview=True)
    else:
        ids = tuple(message["id"] for message in claimed)
        asked = CoreAsked(0, 0, (*durable, *claimed), ids, carried=carried_by(events), preview=True)
    made = await make_request(workshop, key, strategy, asked, frozen, computed, lambda: None)
    return made.noting({"code": "NATIVE_SYSTEM_PREVIEW_UNAVAILABLE"})


async def _freeze(
    key: SessionKey, host: HostSession | None, ports: SessionPorts, draft: str | None, *, resolve_only: bool = False
) -> tuple[FrozenInput, Sequence[Event]]:
    now = ports.clock.now_ms()
    events: Sequence[Event] = ()
    header = SessionHeader(key.session, now)
    if host is not None:
        header, events = await host.header(), (await host.inspect()).events
    followed = Followed.rebuild(header, events)
    state = await ports.library.state(key, followed.seq)
    bound = await ports.library.bound(key)
    frozen = FrozenInput(
        key.session,
        followed.pending,
        followed.history(),
        bound,
        RollSeed(str(key), state.rolled, now),
        {},
        draft,
        bound.selection.rp.active,
        state=state,
        seq=followed.seq,
        resolve_only=resolve_only,
    )
    return frozen, events
