"""How each session activates its world books, and what earlier requests left behind for that."""

from typing import final

from tapster.actors.store import DeleteDocument, PutDocument, SessionKey
from tapster.actors.store.session_documents import PutSessionState, SessionStates, settings_key
from tapster.engine.activation import ActivationSettings, SessionState
from tapster.engine.ecma import Json

from .core import LibraryCore
from .counters import Dependency

SETTINGS = "session-settings"


def settings_dependency(key: SessionKey) -> Dependency:
    """What an assembly depends on when it reads a session's settings."""
    return SETTINGS, str(key)


@final
class Activation:
    """Every method may raise a ``StoreError``."""

    def __init__(self, core: LibraryCore) -> None:
        self._core = core

    async def settings(self, key: SessionKey) -> ActivationSettings:
        """A session's settings; one that has none of its own is in mode ``tavern``, as the contract has it."""
        found = await self._core.store.document(settings_key(key))
        return ActivationSettings() if found is None else ActivationSettings.from_json(found.value)

    async def change(self, key: SessionKey, patch: Json) -> ActivationSettings:
        """Write members of a session's settings.

        Raises:
            RequestError: a member is unknown or doesn't fit; nothing was written.
        """
        return await self._core.ask(self._change, key, patch)

    async def remove(self, key: SessionKey) -> None:
        """Forget a session's settings."""
        await self._core.ask(self._remove, key)

    async def state(self, key: SessionKey, seq: int) -> SessionState:
        """The session's state as of a host seq."""
        found = await self._core.store.read(lambda tables: SessionStates(tables).at(key, seq))
        return SessionState() if found is None else SessionState.from_json(found)

    async def save_state(self, key: SessionKey, seq: int, state: SessionState) -> None:
        """Make a state durable under the next host event's seq."""
        await self._core.write(PutSessionState(key, seq, state.to_json(), self._core.clock.now_ms()))

    async def _remove(self, key: SessionKey) -> None:
        async with self._core.alone(SETTINGS, str(key)):
            write = DeleteDocument(settings_key(key))
            await self._core.write(write, lambda _: self._core.counters.changed(*settings_dependency(key)))

    async def _change(self, key: SessionKey, patch: Json) -> ActivationSettings:
        async with self._core.alone(SETTINGS, str(key)):
            after = (await self.settings(key)).changed(patch)
            write = PutDocument(settings_key(key), after.to_json(), self._core.clock.now_ms())
            await self._core.write(write, lambda _: self._core.counters.changed(*settings_dependency(key)))
            return after
