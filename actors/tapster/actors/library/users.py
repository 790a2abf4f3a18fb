"""Personas of the library (spec/resources §5, spec/http §5.3)."""

from collections.abc import Sequence
from typing import final

from tapster.actors.store import PutResource
from tapster.engine.ecma import Json
from tapster.engine.formats.documents import to_document
from tapster.engine.formats.personas import Persona, create_persona, update_persona

from .core import LibraryCore
from .kinds import KINDS
from .writes import DeleteResource, RelationLimits


@final
class Users:
    """Every method may raise a ``FormatError`` for bad input, ``USER_NOT_FOUND``, or a ``StoreError``."""

    def __init__(self, core: LibraryCore, limits: RelationLimits) -> None:
        self._core = core
        self._limits = limits

    async def list(self) -> Sequence[Json]:
        """All of them by name, then id."""
        found = [item.document for item in await self._core.load_all("user")]
        return sorted(found, key=lambda item: (item["name"], item["id"]))

    async def get(self, user_id: str) -> Json:
        """``{id, name, description}``."""
        return (await self._core.load("user", user_id)).document

    async def create(self, value: Json) -> Json:
        """A new persona.

        Raises:
            ResourceExists: ``USER_ID_EXISTS``.
        """
        return await self._core.ask(self._create, value)

    async def update(self, user_id: str, patch: Json) -> Json:
        """The persona with a new name, description or both."""
        return await self._core.ask(self._update, user_id, patch)

    async def delete(self, user_id: str) -> None:
        """Remove it with its uses: selections and its books."""
        await self._core.ask(self._delete, user_id)

    async def _create(self, value: Json) -> Json:
        persona = create_persona(value, generated_id=f"user-{self._core.ids.uuid()}")
        async with self._core.alone("user", persona.id):
            if self._core.head("user", persona.id) is not None:
                raise KINDS["user"].taken(persona.id)
            return await self._put(persona)

    async def _update(self, user_id: str, patch: Json) -> Json:
        async with self._core.alone("user", user_id):
            persona = (await self._core.load("user", user_id)).value
            return await self._put(update_persona(persona, patch))

    async def _delete(self, user_id: str) -> None:
        async with self._core.alone("user", user_id):
            write = DeleteResource("user", user_id, self._limits, self._core.clock.now_ms())
            await self._core.write(write, lambda cleared: self._core.deleted("user", user_id, cleared))

    async def _put(self, persona: Persona) -> Json:
        document = to_document(persona)
        write = PutResource("user", persona.id, document, self._core.clock.now_ms())
        await self._core.write(write, self._core.publish)
        return document
