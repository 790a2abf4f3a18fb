"""Selections as the contract's routes change them: never under a running agent, and with roleplay mode following.

Source: spec/http §3, §5.
"""

from collections.abc import Mapping
from typing import Final, final

from tapster.actors.library import Library
from tapster.actors.store import ResourceKind, SessionKey
from tapster.engine.ecma import Json
from tapster.engine.errors import RequestError
from tapster.engine.policy import Selection

from .ports import SessionHost
from .roleplay import Roleplay

_FAMILIES: Final[Mapping[str, str]] = {
    "presetId": "PRESET",
    "characterCardId": "CHARACTER",
    "userId": "USER",
    "worldBookIds": "WORLD_BOOK",
}


class AgentRunning(RequestError):
    """A selection can't change while the session's agent works; ``code`` names what was to be selected."""

    code = "AGENT_RUNNING"
    kind = "Error"
    status = 409


@final
class ContractSelections:
    """The selections of one host's sessions."""

    def __init__(self, library: Library, host: SessionHost, host_id: str, roleplay: Roleplay) -> None:
        self._library = library
        self._host = host
        self._host_id = host_id
        self._roleplay = roleplay

    async def get(self, session_id: str) -> Selection:
        """A session's selection, the defaults when it has none of its own."""
        return await self._library.selections.get(SessionKey(self._host_id, session_id))

    async def select(self, session_id: str, patch: Mapping[str, Json]) -> Selection:
        """Write members of a selection.

        Raises:
            AgentRunning: a turn is under way; ``<FAMILY>_AGENT_RUNNING``.
            ResourceNotFound: something named doesn't exist; nothing was written.
        """
        if self._host.is_running(session_id):
            family = next((name for key, name in _FAMILIES.items() if key in patch), "SESSION")
            raise AgentRunning(
                f"session {session_id!r} is answering; change what it has selected when it is done",
                code=f"{family}_AGENT_RUNNING",
            )
        previous = (await self.get(session_id)).character_card_id
        selection = await self._library.selections.select(SessionKey(self._host_id, session_id), patch)
        if "characterCardId" in patch:
            await self._roleplay.card_changed(session_id, previous, selection.character_card_id)
            return await self.get(session_id)
        return selection

    async def summary(self, kind: ResourceKind, resource_id: str) -> Json:
        """A resource for display, None when it's gone."""
        return await self._library.selections.summary(kind, resource_id)
