"""The phases of a process: serving, draining, stopped."""

import enum
from typing import final

import attrs

from .errors import Draining
from .watch import Watched


class Phase(enum.Enum):
    """How far a shutdown has come."""

    STARTING = "starting"
    READY = "ready"
    DRAINING = "draining"
    STOPPING = "stopping"
    STOPPED = "stopped"


_ORDER = list(Phase)


@final
@attrs.define(eq=False)
class Lifecycle:
    """The phase of this process; it only ever moves forward."""

    phase: Watched[Phase] = attrs.field(factory=lambda: Watched(Phase.STARTING))

    def advance(self, phase: Phase) -> None:
        """Move on; an earlier or equal phase changes nothing."""
        if _ORDER.index(phase) > _ORDER.index(self.phase.value):
            self.phase.set(phase)

    def admit(self) -> None:
        """Let a new call in.

        Raises:
            Draining: a shutdown has begun.
        """
        if _ORDER.index(self.phase.value) >= _ORDER.index(Phase.DRAINING):
            raise Draining
