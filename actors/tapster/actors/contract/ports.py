"""What the contract's side needs of the host whose sessions it shows."""

from typing import Protocol

from tapster.actors.session import Assembled
from tapster.engine.policy import SandboxMode


class SessionHost(Protocol):
    """The sessions of one host as the contract's routes see them."""

    def is_running(self, session_id: str) -> bool:
        """Whether a turn of the session is under way."""

    def sandbox(self, session_id: str) -> SandboxMode | None:
        """The sandbox mode of a live session, None when it isn't live."""

    async def set_sandbox(self, session_id: str, mode: SandboxMode) -> None:
        """Append a sandbox mode to a live session."""

    async def preview(self, session_id: str) -> Assembled:
        """What the session would send now; changes nothing.

        Raises:
            TapsterError: the session doesn't exist or can't be assembled.
        """
