"""One host's sessions and the library, as the contract's HTTP routes reach them."""

from typing import final

import attrs

from tapster.actors.library import (
    Characters,
    Library,
    Presets,
    Relations,
    Settings,
    Templates,
    Users,
    WorldBooks,
)
from tapster.actors.store import HOME_HOST, Store
from tapster.actors.store.files.traces import LegacyTraces
from tapster.actors.traces import TraceOutbox
from tapster.engine.trace import RetentionLimits
from tapster.runtime import Clock, Ids, Lifecycle, Phase

from .ports import SessionHost
from .roleplay import Roleplay
from .selections import ContractSelections
from .sessions import ContractSessions
from .traces import ContractTraces


@final
@attrs.frozen
class ContractView:
    """What ``tapster.api`` serves under the contract's root; its parts are the library's own where nothing is added."""

    presets: Presets
    characters: Characters
    world_books: WorldBooks
    users: Users
    relations: Relations
    settings: Settings
    templates: Templates
    selections: ContractSelections
    roleplay: Roleplay
    traces: ContractTraces
    sessions: ContractSessions
    lifecycle: Lifecycle

    @property
    def is_draining(self) -> bool:
        """Whether a shutdown has begun."""
        return self.lifecycle.phase.value in (Phase.DRAINING, Phase.STOPPING, Phase.STOPPED)


def contract_view(
    library: Library,
    store: Store,
    host: SessionHost,
    *,
    clock: Clock,
    ids: Ids,
    lifecycle: Lifecycle | None = None,
    outbox: TraceOutbox | None = None,
    limits: RetentionLimits | None = None,
    legacy: LegacyTraces | None = None,
    host_id: str = HOME_HOST,
) -> ContractView:
    """The view over open parts; it holds nothing that has to be closed."""
    roleplay = Roleplay(library, host, host_id, clock, ids)
    selections = ContractSelections(library, host, host_id, roleplay)
    return ContractView(
        presets=library.presets,
        characters=library.characters,
        world_books=library.world_books,
        users=library.users,
        relations=library.relations,
        settings=library.settings,
        templates=library.templates,
        selections=selections,
        roleplay=roleplay,
        traces=ContractTraces(store, outbox, host_id, limits, legacy),
        sessions=ContractSessions(selections, host),
        lifecycle=lifecycle or Lifecycle(),
    )
