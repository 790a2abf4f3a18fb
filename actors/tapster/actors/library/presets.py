"""Presets of the library (spec/resources §2, spec/http §5.1)."""

from collections.abc import Sequence
from typing import final

import attrs

from tapster.actors.store import DeleteDocument, PutDocument, PutResource
from tapster.engine.ecma import Json, utf8
from tapster.engine.formats.documents import to_document
from tapster.engine.formats.presets import (
    Preset,
    blank_preset,
    edit_preset,
    parse_preset,
    preset_file_name,
    preset_text,
    restore_preset,
)
from tapster.engine.formats.regex_scripts import read_regex_scripts, replace_regex_scripts

from .core import LibraryCore
from .files import JSON_TYPE, ExportedFile
from .writes import PRESET_STATE, DeleteResource, RelationLimits


@final
class Presets:
    """Every method may raise a ``FormatError`` for bad input, ``PRESET_NOT_FOUND``, or a ``StoreError``."""

    def __init__(self, core: LibraryCore, limits: RelationLimits) -> None:
        self._core = core
        self._limits = limits

    async def list(self) -> Sequence[Json]:
        """Summaries, last changed first."""
        found = [preset_summary(item.value) for item in await self._core.load_all("preset")]
        return sorted(found, key=lambda item: (item["updatedAt"], item["id"]), reverse=True)

    async def get(self, preset_id: str) -> Json:
        """The stored document."""
        return (await self._core.load("preset", preset_id)).document

    async def create(self, name: Json = None) -> Json:
        """A new blank preset's document."""
        return await self._core.ask(self._create, name)

    async def import_text(self, content: str, name: Json = None) -> Json:
        """The document of a preset file's text."""
        return await self._core.ask(self._import, content, name)

    async def update(self, preset_id: str, patch: Json) -> Json:
        """The document after a full update."""
        return await self._core.ask(self._update, preset_id, patch)

    async def delete(self, preset_id: str) -> None:
        """Remove it with its uses: selections, its books, the default."""
        await self._core.ask(self._delete, preset_id)

    async def export(self, preset_id: str) -> ExportedFile:
        """The edited state over the file it came from."""
        preset = (await self._core.load("preset", preset_id)).value
        text = await self._core.compute(lambda: preset_text(restore_preset(preset)))
        return ExportedFile(utf8(text), JSON_TYPE, preset_file_name(preset))

    async def regex_scripts(self, preset_id: str) -> Sequence[Json]:
        """Its regex scripts, word for word."""
        preset: Preset = (await self._core.load("preset", preset_id)).value
        return read_regex_scripts(preset.source.raw or {})

    async def set_regex_scripts(self, preset_id: str, scripts: Json) -> Sequence[Json]:
        """Replace its regex scripts."""
        return await self._core.ask(self._set_scripts, preset_id, scripts)

    async def default_id(self) -> str | None:
        """The preset of sessions that chose none; a dangling one reads as none."""
        state = await self._core.state("state")
        selected = state.get("selectedId") if isinstance(state, dict) else None
        return selected if isinstance(selected, str) and self._core.head("preset", selected) else None

    async def set_default(self, preset_id: str | None) -> None:
        """Choose it; the preset must exist."""
        await self._core.ask(self._set_default, preset_id)

    async def _create(self, name: Json) -> Json:
        preset = blank_preset(
            id=self._core.ids.uuid(), now=self._core.now(), name=name if isinstance(name, str) else None
        )
        return await self._put(preset)

    async def _import(self, content: str, name: Json) -> Json:
        chosen = name if isinstance(name, str) else None
        identity, now = self._core.ids.uuid(), self._core.now()
        preset = await self._core.compute(lambda: parse_preset(content, id=identity, now=now, name=chosen))
        return await self._put(preset, utf8(content))

    async def _update(self, preset_id: str, patch: Json) -> Json:
        async with self._core.alone("preset", preset_id):
            preset = (await self._core.load("preset", preset_id)).value
            now = self._core.now()
            return await self._put(await self._core.compute(lambda: edit_preset(preset, patch, now=now)))

    async def _set_scripts(self, preset_id: str, scripts: Json) -> Sequence[Json]:
        async with self._core.alone("preset", preset_id):
            preset: Preset = (await self._core.load("preset", preset_id)).value
            raw = replace_regex_scripts(preset.source.raw or {}, scripts, kind="preset", format=preset.source.format)
            source = attrs.evolve(preset.source, raw=raw)
            await self._put(attrs.evolve(preset, source=source, updated_at=self._core.now()))
            return read_regex_scripts(raw)

    async def _delete(self, preset_id: str) -> None:
        async with self._core.alone("preset", preset_id):
            write = DeleteResource("preset", preset_id, self._limits, self._core.clock.now_ms())
            await self._core.write(write, lambda cleared: self._core.deleted("preset", preset_id, cleared))

    async def _set_default(self, preset_id: str | None) -> None:
        if preset_id is None:
            await self._core.write(DeleteDocument(PRESET_STATE), lambda _: self._core.counters.changed("state"))
            return
        self._core.need("preset", preset_id)
        write = PutDocument(PRESET_STATE, {"schemaVersion": 1, "selectedId": preset_id}, self._core.clock.now_ms())
        await self._core.write(write, lambda _: self._core.counters.changed("state"))

    async def _put(self, preset: Preset, original: bytes | None = None) -> Json:
        document = to_document(preset)
        write = PutResource("preset", preset.id, document, self._core.clock.now_ms(), original)
        await self._core.write(write, self._core.publish)
        return document


def preset_summary(preset: Preset) -> dict[str, Json]:
    """What a list shows of a preset."""
    return {
        "id": preset.id,
        "name": preset.name,
        "createdAt": preset.created_at,
        "updatedAt": preset.updated_at,
        "promptCount": len(preset.prompts),
        "enabledPromptCount": sum(prompt.enabled for prompt in preset.prompts),
        "systemPromptMode": preset.system_prompt_mode,
        "sourceFormat": preset.source.format,
    }
