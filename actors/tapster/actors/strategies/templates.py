"""Templates of a request, run by the script workers: hand-written text, and stored templates by name.

Source: spec/text_and_mvu B2-B5.
"""

from collections.abc import Awaitable, Mapping, Sequence
from typing import final

import attrs

from tapster.actors.scripts import RenderTemplate, Scripts
from tapster.engine.assembly import AssemblyRefused, RequestContext, Rule
from tapster.engine.ecma import Json
from tapster.engine.text.templates import TemplateBook, TemplateData, TemplateEntry, TemplatePrompt

from .draws import RequestDraws


@final
@attrs.frozen(eq=False)
class TavernTemplates:
    """The ``TemplateRuntime`` of hand-written text; it reads the frozen assets and nothing else."""

    scripts: Scripts
    draws: RequestDraws

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
        return self.scripts.render(
            RenderTemplate(
                rule.text, rule.name or rule.id, variables, template_data(context.assets), self.draws.around(context)
            )
        )

    def validate(self, context: RequestContext) -> None:
        """Nothing more to check: what a template reads is the request's own frozen copy, which its lease covers."""
        del context

    def facts(self, context: RequestContext, rule: Rule, block_ids: Sequence[str]) -> list[dict[str, Json]]:
        """The bound resources that a template could read need no facts of their own; see the request's lease."""
        del context, rule, block_ids
        return []


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
