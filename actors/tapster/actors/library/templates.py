"""Session templates and clean configurations (spec/loader §13, spec/http §5.5)."""

from collections.abc import Callable, Sequence
from typing import Any, Final, final

from tapster.actors.store import DocumentKey, SessionKey
from tapster.actors.store.codec import encode
from tapster.engine.ecma import Json, is_record, parse_json
from tapster.engine.errors import RequestError
from tapster.engine.policy import (
    ConfigurationPreview,
    Library,
    Selection,
    Template,
    TemplateLimits,
    TemplateState,
    apply_configuration,
    create_template,
    delete_template,
    preview_configuration,
    read_templates,
    select_template,
    selection_json,
    template_json,
    templates_text,
    update_template,
)
from tapster.engine.trace import is_session_id

from .core import STATE, LibraryCore, names_of
from .errors import ResourceNotFound
from .selections import Selections
from .writes import EditState

_KEY: Final = DocumentKey(STATE, "session-templates")


@final
class Templates:
    """Session ids are those of ``host``. Every method may raise what its rule raises, or a ``StoreError``."""

    def __init__(self, core: LibraryCore, selections: Selections, limits: TemplateLimits, host: str) -> None:
        self._core = core
        self._selections = selections
        self._limits = limits
        self._host = host

    async def list(self) -> Json:
        """``{selectedId, templates}``, each with contents and diagnostics."""
        state = await self._state()
        library = await self._library([template.selection for template in state.templates])
        shown = [{**template_json(item), **_shown(item.selection, library)} for item in state.templates]
        return {"selectedId": state.selected_id, "templates": shown}

    async def get(self, template_id: str) -> Json:
        """``{template, contents, diagnostics}``."""
        return await self._answer((await self._state()).find(template_id))

    async def create(self, name: Json, source_session_id: Json) -> Json:
        """A new template of a session's selection, which becomes the chosen one."""
        return await self._core.ask(self._create, name, source_session_id)

    async def update(self, template_id: str, patch: Json) -> Json:
        """Rename it, or take another session's selection; answers as ``get``."""
        return await self._core.ask(self._update, template_id, patch)

    async def delete(self, template_id: str) -> None:
        """Remove it."""
        await self._core.ask(self._edit, lambda state: delete_template(state, template_id))

    async def select(self, template_id: str | None) -> Json:
        """Choose it, or none: ``{selectedId, template}``."""
        state = await self._core.ask(self._edit, lambda state: select_template(state, template_id))
        chosen = None if template_id is None else template_json(state.find(template_id))
        return {"selectedId": state.selected_id, "template": chosen}

    async def preview(self, source: Json) -> Json:
        """``{selection, contents, diagnostics, available}`` of a source."""
        selection = await self._source(source)
        preview = preview_configuration(selection, await self._library([selection]))
        shown = _shown_preview(preview)
        return {"selection": selection_json(selection), **shown, "available": preview.available}

    async def apply(self, target_session_id: Json, source: Json) -> Json:
        """Bind a source's selection to a session, all of it or nothing: ``{selection, diagnostics}``."""
        return await self._core.ask(self._apply, target_session_id, source)

    async def _create(self, name: Json, source_session_id: Json) -> Json:
        selection = await self._selections.get(self._key(source_session_id))
        identity, now = self._core.ids.uuid(), self._core.now()
        state: TemplateState = await self._edit(
            lambda state: create_template(
                state, identity, name, selection_json(selection), limits=self._limits, now=now
            )
        )
        return template_json(state.find(identity))

    async def _update(self, template_id: str, patch: Json) -> Json:
        changes: dict[str, Any] = {}
        if "name" in patch:
            changes["name"] = patch["name"] if patch["name"] is not None else ""
        if "sourceSessionId" in patch:
            selection = await self._selections.get(self._key(patch["sourceSessionId"]))
            changes["selection"] = selection_json(selection)
        now = self._core.now()
        state = await self._edit(
            lambda state: update_template(state, template_id, limits=self._limits, now=now, **changes)
        )
        return await self._answer(state.find(template_id))

    async def _apply(self, target_session_id: Json, source: Json) -> Json:
        key = self._key(target_session_id)
        selection = await self._source(source)
        preview = preview_configuration(selection, await self._library([selection]))
        if not preview.available:
            diagnostics = _shown_preview(preview)["diagnostics"]
            try:
                apply_configuration(preview)
            except RequestError as error:
                error.details = {**error.details, "diagnostics": diagnostics}
                raise
        try:
            await self._selections._put_existing(key, selection)
        except ResourceNotFound:
            # Something of it was deleted in this very moment: that is answered as if it had been gone before.
            return await self._apply(target_session_id, source)
        return {"selection": selection_json(selection), "diagnostics": []}

    async def _source(self, source: Json) -> Selection:
        mode = source.get("mode") if is_record(source) else None
        if mode == "current":
            return await self._selections.get(self._key(source.get("sessionId")))
        if mode == "template" and is_session_id(source.get("templateId")):
            return (await self._state()).find(source["templateId"]).selection
        raise RequestError("source must be {mode: current, sessionId} or {mode: template, templateId}")

    async def _answer(self, template: Template) -> Json:
        library = await self._library([template.selection])
        return {"template": template_json(template), **_shown(template.selection, library)}

    async def _state(self) -> TemplateState:
        return _read(await self._core.state(_KEY.name))

    async def _edit(self, rule: Callable[[TemplateState], TemplateState]) -> TemplateState:
        write = EditState(_KEY, lambda value: parse_json(templates_text(rule(_read(value)))), self._core.clock.now_ms())
        return _read(await self._core.write(write))

    async def _library(self, selections: Sequence[Selection]) -> Library:
        """Names of everything, and the greetings of the cards that are looked at."""
        wanted = {selection.character_card_id for selection in selections} - {None}
        cards = [item for item in await self._core.load_all("character") if item.head.id in wanted]
        return Library(
            presets=names_of(self._core.heads("preset")),
            characters={item.head.id: item.head.name for item in cards},
            users=names_of(self._core.heads("user")),
            world_books=names_of(self._core.heads("world-book")),
            greetings={item.head.id: 1 + len(item.value.data.alternate_greetings) for item in cards},
        )

    def _key(self, session_id: Json) -> SessionKey:
        if not isinstance(session_id, str):
            raise RequestError("a session id must be a text")
        return SessionKey(self._host, session_id)


def _read(value: Json | None) -> TemplateState:
    return read_templates(None if value is None else encode(value))


def _shown(selection: Selection, library: Library) -> dict[str, Json]:
    return _shown_preview(preview_configuration(selection, library))


def _shown_preview(preview: ConfigurationPreview) -> dict[str, Json]:
    rows = {
        field: [
            {"id": item.resource_id, "name": item.name or item.resource_id, "missing": item.missing}
            for item in preview.contents
            if item.field == field
        ]
        for field in ("presetId", "characterCardId", "userId", "worldBookIds")
    }
    return {
        "contents": {
            "preset": next(iter(rows["presetId"]), None),
            "characterCard": next(iter(rows["characterCardId"]), None),
            "user": next(iter(rows["userId"]), None),
            "worldBooks": rows["worldBookIds"],
            "character": selection_json(preview.selection)["character"],
        },
        "diagnostics": [
            {
                "code": item.code,
                "field": item.field,
                "resourceId": item.resource_id,
                "message": f"{item.field} {item.resource_id} can't be used: it's missing or doesn't fit",
            }
            for item in preview.diagnostics
        ],
    }
