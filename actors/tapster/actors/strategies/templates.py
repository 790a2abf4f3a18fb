"""Templates of a request, run by the script workers: hand-written text, and stored templates by name.

Source: spec/text_and_mvu B2-B5.
"""

import weakref
from collections.abc import Awaitable, Mapping, Sequence
from typing import final

import attrs

from tapster.actors.scripts import RenderTemplate, Scripts
from tapster.engine.assembly import AssemblyRefused, RequestContext, Rule
from tapster.engine.ecma import Json
from tapster.engine.text.ports import RegexEngine
from tapster.engine.text.templates import DataResolver, TemplateBook, TemplateData, TemplateEntry, TemplatePrompt

from .draws import RequestDraws


@attrs.frozen(eq=False)
class NotedResolver(DataResolver):
    """Notes which entries a template was given; it runs in a thread, one lookup after the other."""

    seen: list[TemplateEntry] = attrs.field(factory=list)

    def matches(self, entry: TemplateEntry, title: object) -> bool:
        """As ``DataResolver.matches``."""
        is_found = DataResolver.matches(self, entry, title)
        if is_found and not any(entry is known for known in self.seen):
            self.seen.append(entry)
        return is_found


@attrs.frozen(eq=False)
class NotedData(TemplateData):
    """Template data that remembers what was read."""

    seen: list[TemplateEntry] = attrs.field(factory=list)

    def resolver(self, regex: RegexEngine) -> DataResolver:
        """A resolver that notes what it gives."""
        return NotedResolver(self, regex, self.seen)

    def read_books(self) -> list[str]:
        """Ids of the books that entries were read from, in their order."""
        return [book.id for book in self.books if any(entry is seen for entry in book.entries for seen in self.seen)]


@final
@attrs.frozen(eq=False)
class TavernTemplates:
    """The ``TemplateRuntime`` of hand-written text; it reads the frozen assets and nothing else."""

    scripts: Scripts
    draws: RequestDraws
    _read: "weakref.WeakKeyDictionary[RequestContext, dict[str, NotedData]]" = attrs.field(
        factory=weakref.WeakKeyDictionary
    )

    def render(self, context: RequestContext, rule: Rule) -> Awaitable[str]:
        """The rendered text.

        Raises:
            AssemblyRefused: ``TEMPLATE_SESSION_REQUIRED``.
            TemplateError: it names the template and the place.
        """
        if not context.session_id:
            raise AssemblyRefused("a template needs a session", code="TEMPLATE_SESSION_REQUIRED")
        texts = context.assets.get("context")
        variables = dict(texts) if isinstance(texts, dict) else {}
        given = template_data(context.assets)
        data = NotedData(**{field.name: getattr(given, field.name) for field in attrs.fields(TemplateData)})
        self._read.setdefault(context, {})[rule.id] = data
        around = self.draws.around(context)
        return self.scripts.render(RenderTemplate(rule.text, rule.name or rule.id, variables, data, around))

    def validate(self, context: RequestContext) -> None:
        """Nothing more to check: what a template reads is the request's own frozen copy, which its lease covers."""
        del context

    def facts(self, context: RequestContext, rule: Rule, block_ids: Sequence[str]) -> list[dict[str, Json]]:
        """The books that a rule's template read, once for each text block it became."""
        data = self._read.get(context, {}).get(rule.id)
        revisions = _record(context.assets.get("revisions"))
        return [
            {
                "code": "TAVERN_MEMORY_DEPENDENCY_VERSION",
                "adapterId": "tavern.world-books",
                "resourceId": book_id,
                "revision": revisions.get(book_id),
                "configRevision": None,
                "blockId": block_id,
                "sourceId": "tavern.text",
                "consumerId": None,
                "consumerField": rule.id,
            }
            for block_id in block_ids
            for book_id in ([] if data is None else data.read_books())
        ]


def template_data(assets: Mapping[str, Json]) -> TemplateData:
    """What the helpers of a template can reach in a request."""
    preset, character = _record(assets.get("preset")), _record(assets.get("character"))
    prompts = preset.get("prompts")
    return TemplateData(
        books=tuple(_books(assets.get("loreEntries"))),
        prompts=tuple(
            TemplatePrompt(str(item.get("identifier")), str(item.get("name")), str(item.get("content")))
            for item in (prompts if isinstance(prompts, list) else [])
            if isinstance(item, dict)
        ),
        character_id=str(character.get("id") or ""),
        character_name=str(character.get("name") or ""),
        character_description=str(_record(character.get("data")).get("description") or ""),
    )


def _books(entries: Json) -> list[TemplateBook]:
    found: dict[str, list[TemplateEntry]] = {}
    for entry in entries if isinstance(entries, list) else []:
        uid, comment, content = (str(entry.get(name, "")) for name in ("uid", "comment", "content"))
        found.setdefault(str(entry.get("resourceId")), []).append(TemplateEntry(uid, comment, content))
    return [TemplateBook(book_id, book_id, tuple(items)) for book_id, items in found.items()]


def _record(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, dict) else {}
