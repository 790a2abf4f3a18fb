"""Stored templates: resources of sessions, rendered by the source ``pmp-dsh-tavern/prompt-template``.

Source: spec/text_and_mvu B5; spec/loader §15.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar, final

import attrs
import trio

from tapster.actors.owners import Owner, open_owner
from tapster.actors.scripts import QuickJsTemplateEngine
from tapster.actors.store import DocumentKey, Loaded, PutDocument, Store, load
from tapster.engine.assembly import RequestContext
from tapster.engine.ecma import Json
from tapster.engine.errors import StoreError, TapsterError
from tapster.engine.text.ports import RegexEngine
from tapster.engine.text.templates import (
    Decision,
    StoredTemplate,
    TemplateEditRefused,
    TemplateError,
    TemplateShelf,
    parse_stored_template,
    render_template,
)
from tapster.engine.text.templates.stored import Operation
from tapster.runtime import LogSink, silent

from .draws import RequestDraws
from .templates import template_data
from .variables import Variables

T = TypeVar("T")
TEMPLATES: Final = DocumentKey("state", "prompt-templates")
Edit = Callable[[TemplateShelf], tuple[TemplateShelf, StoredTemplate]]


@final
class StoredTemplates:
    """``TemplateAccess`` for the source, and the owner of what it renders.

    Raises (everything):
        StoreError: what is stored couldn't be read at the start; it was left as it is.

    Raises (changes):
        TemplateEditRefused: the edit doesn't fit the template's state.
        StoreError: it didn't become durable; nothing of it is in force.
    """

    def __init__(
        self,
        store: Store,
        regex: RegexEngine,
        variables: Variables,
        draws: RequestDraws,
    ) -> None:
        self._store = store
        self._owner: Owner | None = None
        self._loaded = Loaded(TemplateShelf())
        self._regex = regex
        self._variables = variables
        self._draws = draws
        self._engine = QuickJsTemplateEngine()
        self._lock = trio.Lock()

    async def read(self) -> None:
        """Take what is stored: at the start, and again after a crash.

        Raises:
            StoreError: it can't be read now, but could before.
        """
        self._loaded = await load(_stored(self._store), again=self._owner is not None and self.problem is None)

    def open(self, owner: Owner) -> None:
        """Take changes from now on."""
        self._owner = owner

    @property
    def problem(self) -> StoreError | None:
        """Why nothing can be answered; None when all is well."""
        return self._loaded.problem

    @property
    def _shelf(self) -> TemplateShelf:
        return self._loaded.value

    # The source's side ----------------------------------------------------------------------------------------------

    def bound(self, session_id: str) -> Sequence[tuple[StoredTemplate, Decision | None]]:
        """The enabled templates of a session."""
        return [(template, None) for template in self._shelf.bound_to(session_id)]

    def render(self, context: RequestContext, template: StoredTemplate) -> tuple[str, list[dict[str, Json]]]:
        """A template's output and what it read; called in a thread, within the template's own budget.

        Raises:
            TemplateError: it names the template and the place.
        """
        variables, facts = template.variables, []
        if template.variable_resource_id is not None:
            variables, fact = self._resource(context, template, template.variable_resource_id)
            facts.append(fact)
        text = render_template(
            template.content,
            variables,
            template_data(context.assets).resolver(self._regex),
            self._engine,
            name=template.name or template.id,
            surroundings=self._draws.around(context),
        )
        return text, facts

    def _resource(
        self, context: RequestContext, template: StoredTemplate, resource_id: str
    ) -> tuple[Json, dict[str, Json]]:
        for resource, decision in self._variables.bound(context.session_id):
            if resource.id == resource_id and resource.history is not None and resource.may_be_used(decision):
                fact = {
                    "code": "TAVERN_MEMORY_DEPENDENCY_VERSION",
                    "adapterId": "tavern.mvu",
                    "resourceId": resource_id,
                    "revision": resource.revision,
                    "configRevision": resource.config_revision,
                    "blockId": template.block_id,
                    "sourceId": "pmp-dsh-tavern/prompt-template",
                    "consumerId": template.id,
                }
                return resource.variables.get("stat_data"), fact
        raise TemplateError(
            f"the variables {resource_id} can't be used in this session",
            code="TEMPLATE_DEPENDENCY_UNAVAILABLE",
            template=template.name,
        )

    # Reading and changes --------------------------------------------------------------------------------------------

    def list(self) -> tuple[StoredTemplate, ...]:
        """All templates."""
        return tuple(self._shelf.templates.values())

    async def put(self, value: Json) -> StoredTemplate:
        """Keep a template as it is given, a new one or in the place of one with its id.

        Raises:
            TemplateError: it can't be used.
        """
        given = parse_stored_template(value)

        def put(shelf: TemplateShelf) -> tuple[TemplateShelf, StoredTemplate]:
            known = shelf.templates.get(given.id)
            kept = given if known is None else attrs.evolve(given, revision=known.revision + 1)
            return attrs.evolve(shelf, templates={**shelf.templates, kept.id: kept}), kept

        return await self._change_by(self._edit, put)

    async def edit(self, change: Edit) -> StoredTemplate:
        """Change the shelf by one of its operations (``update``, ``copy``, ``set_mode``).

        Raises:
            TemplateError: the content can't be used.
        """
        return await self._change_by(self._edit, change)

    async def remove(self, template_id: str) -> None:
        """Forget a template.

        Raises:
            TemplateEditRefused: ``NOT_FOUND``.
        """

        async def remove() -> None:
            async with self._lock:
                if template_id not in self._shelf.templates:
                    raise TemplateEditRefused(f"there is no template {template_id!r}", code="NOT_FOUND", status=404)
                kept = {name: item for name, item in self._shelf.templates.items() if name != template_id}
                await self._save(attrs.evolve(self._shelf, templates=kept))

        await self._change_by(remove)

    async def _change_by(self, work: Callable[..., Awaitable[T]], *arguments: object) -> T:
        assert self._owner is not None, "the templates are open"
        return await self._owner.ask(work, *arguments)

    async def _edit(self, change: Edit) -> StoredTemplate:
        async with self._lock:
            shelf, template = change(self._shelf)
            if shelf is not self._shelf:
                await self._save(shelf)
            return template

    async def _save(self, shelf: TemplateShelf) -> None:
        def publish(_: object) -> None:
            self._loaded = Loaded(shelf)

        await self._store.write(PutDocument(TEMPLATES, _to_json(shelf), self._store.now_ms), applied=publish)


async def _stored(store: Store) -> TemplateShelf:
    stored = await store.document(TEMPLATES)
    return _read(None if stored is None else stored.value)


def _to_json(shelf: TemplateShelf) -> Json:
    return {
        "version": 1,
        "resources": [template.to_json() for template in shelf.templates.values()],
        "operations": {
            name: {"fingerprint": done.fingerprint, "result": done.result.to_json()}
            for name, done in shelf.operations.items()
        },
    }


def _read(value: Json) -> TemplateShelf:
    if value is None:
        return TemplateShelf()
    try:
        templates = [parse_stored_template(item) for item in value["resources"]]
        operations: dict[str, Any] = value.get("operations") or {}
        return TemplateShelf(
            {template.id: template for template in templates},
            {
                name: Operation(done["fingerprint"], parse_stored_template(done["result"]))
                for name, done in operations.items()
            },
        )
    except (KeyError, TypeError, AttributeError, TapsterError) as error:
        raise StoreError("the stored prompt templates aren't valid", code="TEMPLATE_STORE_INVALID") from error


@asynccontextmanager
async def open_stored_templates(
    store: Store, regex: RegexEngine, variables: Variables, draws: RequestDraws, log: LogSink = silent
) -> AsyncIterator[StoredTemplates]:
    """The stored templates over an open store, for the length of a block.

    What is stored and isn't valid stops nothing but whoever needs a template; nothing of it is replaced.
    """
    templates = StoredTemplates(store, regex, variables, draws)
    async with open_owner("templates", store, templates.read, log) as owner:
        templates.open(owner)
        yield templates
