"""An open Tapster over a scripted provider, with a small library that sessions can be bound to."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs

from tapster.actors.hosts.embedded import Agent
from tapster.actors.providers import ScriptedProvider
from tapster.actors.session.embedded import embedded_key
from tapster.actors.store import SessionKey, StoreConfig
from tapster.actors.tapster import Tapster, TapsterConfig, open_tapster
from tapster.engine.assembly import text_of
from tapster.engine.ecma import stringify
from tests.support.assembly import HEAD
from tests.support.tavern import BOOK, PRESET

Json = Any
CARD = {
    "spec": "chara_card_v2",
    "spec_version": "2.0",
    "data": {
        "name": "Mira",
        "description": "{{char}} keeps the lamp.",
        "first_mes": "The lamp is lit.",
        "character_book": {
            "entries": [{"keys": [], "comment": "[initvar]", "content": "hp: 10\nmood: calm", "enabled": False}]
        },
    },
}
RULES = [{"id": "native-system", "kind": "native-system"}, {"id": "history", "kind": "history"}]
INPUT = {"id": "input", "kind": "input"}
Request = list[tuple[str, str]]


class StillClock:
    """A wall clock that stands, so that the same input has the same seed.

    Trio's own clock is the real one: it must not jump to a source's deadline while a thread works.
    """

    def now_ms(self) -> int:
        return 1_767_225_600_000


@attrs.define(eq=False)
class Stage:
    """A session with everything bound, and what it sends."""

    tapster: Tapster
    provider: ScriptedProvider

    async def begin(self, session_id: str = "s") -> None:
        """A session with preset, card, persona and book."""
        library = self.tapster.library
        presets = await library.presets.list()
        if not presets:
            await library.presets.import_text(stringify(PRESET), "P")
            await library.characters.import_file(stringify(CARD).encode(), "application/json", "mira.json")
            await library.world_books.import_file(stringify(BOOK).encode(), "harbour.json")
            await library.users.create({"name": "Lin", "description": "A journalist."})
        await self.tapster.create_session(session_id)
        await self.tapster.select(
            session_id,
            {
                "presetId": (await library.presets.list())[0]["id"],
                "characterCardId": (await library.characters.list())["characters"][0]["id"],
                "userId": (await library.users.list())[0]["id"],
                "worldBookIds": [(await library.world_books.list())[0]["id"]],
            },
        )

    async def use(self, backend: str, *rules: Mapping[str, Json], session_id: str = "s", **more: Json) -> None:
        """Apply a strategy of these rules."""
        preset = {**HEAD, "id": backend, "backend": backend, "rules": list(rules), **more}
        await self.tapster.strategies.apply_snapshot(self.key(session_id), preset)

    async def say(self, text: str, session_id: str = "s") -> Request:
        """Send a message; the request that went out, empty when none did."""
        sent = len(self.provider.requests)
        handle = await self.tapster.open_session(session_id)
        await handle.followup(text)
        await handle.when_idle()
        return shown(self.provider.requests[-1].messages) if len(self.provider.requests) > sent else []

    def agent(self, session_id: str = "s") -> Agent:
        """The live agent."""
        agent = self.tapster.host.agent(session_id)
        assert agent is not None
        return agent

    def ending(self, session_id: str = "s") -> Json:
        """How the last turn ended."""
        return [event for event in self.agent(session_id).log.events if event.type == "turn/end"][-1].data["reason"]

    @staticmethod
    def key(session_id: str) -> SessionKey:
        """The key of a session."""
        return embedded_key(session_id)


def shown(messages: Sequence[Mapping[str, Json]]) -> Request:
    """Role and text of each message."""
    return [(message["role"], text_of(message)) for message in messages]


@asynccontextmanager
async def open_stage(folder: Path, *, engine: str = "sqlite") -> AsyncIterator[Stage]:
    """Everything real but the model server and the clock."""
    provider = ScriptedProvider()
    config = TapsterConfig(StoreConfig(folder, engine=engine), idle_s=None)  # type: ignore[arg-type]
    async with open_tapster(config, provider=provider, clock=StillClock(), jitter=lambda: 0.0) as tapster:
        yield Stage(tapster, provider)
