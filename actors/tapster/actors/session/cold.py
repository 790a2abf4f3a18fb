"""A preview of a session that sleeps, or that its host has never heard of: computed without waking anyone."""

from tapster.actors.hosts.port import HostSession
from tapster.actors.store.values import SessionKey
from tapster.engine.projection import SessionHeader

from .actor import SessionPorts
from .compute import FrozenInput, compute_in_thread
from .finish import assembled_from
from .messages import Assembled
from .rolls import RollSeed
from .state import Followed


async def cold_preview(
    key: SessionKey, host: HostSession | None, ports: SessionPorts, draft: str | None = None
) -> Assembled:
    """What the session would send now; an unknown one is taken as empty.

    Raises:
        TapsterError: what a live preview would raise.
    """
    now = ports.clock.now_ms()
    if host is None:
        followed = Followed.rebuild(SessionHeader(key.session, now), ())
    else:
        followed = Followed.rebuild(await host.header(), (await host.inspect()).events)
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
    )
    return assembled_from(await compute_in_thread(frozen, ports.regex, ports.threads), frozen, ports.ids)
