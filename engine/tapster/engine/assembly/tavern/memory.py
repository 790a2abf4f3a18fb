"""Two sources that must be chosen: the variables of a session, and its stored templates.

Source: spec/text_and_mvu B5, C9.
"""

import weakref
from collections.abc import Mapping, Sequence
from typing import Protocol

from tapster.engine.assembly.context import RequestContext
from tapster.engine.assembly.definition import SourceDefinition
from tapster.engine.assembly.preset import Rule
from tapster.engine.ecma import Json
from tapster.engine.errors import SourceError
from tapster.engine.mvu.shelf import Decision as UsageDecision
from tapster.engine.mvu.shelf import VariableResource
from tapster.engine.text.templates import Decision, StoredTemplate, may_emit

MVU_SOURCE, TEMPLATE_SOURCE = "tavern.mvu/state", "pmp-dsh-tavern/prompt-template"
PLUGIN = "pmp-dsh-tavern"


class PreviewStateUnavailable(SourceError):
    """A preview asks for variables that no session has yet; a preview never makes any."""

    code = "MVU_PREVIEW_STATE_UNAVAILABLE"
    status = 409


class UsageCancelled(SourceError):
    """Variables changed, or may no longer be used, after they were read."""

    code = "MVU_USAGE_CANCELLED"


class VariableAccess(Protocol):
    """The variable resources of a session, and what the policy says about using them."""

    def bound(self, session_id: str) -> Sequence[tuple[VariableResource, UsageDecision | None]]:
        """The active resources of a session, each with the decision about this use."""


class TemplateAccess(Protocol):
    """The stored templates of a session."""

    def bound(self, session_id: str) -> Sequence[tuple[StoredTemplate, Decision | None]]:
        """The enabled templates of a session, each with the decision about this use."""

    def render(self, context: RequestContext, template: StoredTemplate) -> tuple[str, list[dict[str, Json]]]:
        """A template's output and the diagnostics of what it read."""


def variables_source(access: VariableAccess) -> SourceDefinition:
    """``tavern.mvu/state``: one system block for each resource that may be used."""

    def permitted(session_id: str) -> list[VariableResource]:
        bound = access.bound(session_id) if session_id else ()
        return [resource for resource, decision in bound if resource.may_be_used(decision)]

    def resolve(context: RequestContext, rule: Rule) -> dict[str, Json]:
        blocks: list[Json] = []
        diagnostics: list[Json] = []
        for resource in permitted(context.session_id):
            if resource.history is None and context.preview:
                raise PreviewStateUnavailable(f"{resource.id} has no state yet; a preview makes none")
            block = resource.block()
            blocks.append(block)
            diagnostics.append(resource.version_fact(block["id"]))
        used[context] = [fact["blockId"] for fact in diagnostics]
        return {"blocks": blocks, "diagnostics": diagnostics}

    def validate(context: RequestContext) -> None:
        before = used.pop(context, None)
        if before is not None and before != [resource.block()["id"] for resource in permitted(context.session_id)]:
            raise UsageCancelled("the variables changed while the request was assembled")

    used: weakref.WeakKeyDictionary[RequestContext, list[str]] = weakref.WeakKeyDictionary()
    return SourceDefinition(
        id=MVU_SOURCE,
        plugin_id=PLUGIN,
        name="Variables",
        resolve=resolve,
        roles=("system",),
        lifetimes=("request",),
        module_available=lambda asked: bool(permitted(asked["sessionId"])),
        validate_resolved=validate,
    )


def templates_source(access: TemplateAccess) -> SourceDefinition:
    """``pmp-dsh-tavern/prompt-template``: one block for each bound template that may be rendered."""

    def resolve(context: RequestContext, rule: Rule) -> dict[str, Json]:
        if not context.session_id:
            return {"blocks": [], "diagnostics": [{"code": "TEMPLATE_SESSION_REQUIRED"}]}
        blocks: list[Json] = []
        diagnostics: list[Json] = []
        for template, decision in access.bound(context.session_id):
            if not may_emit(template, decision):
                diagnostics.append({"code": "TEMPLATE_POLICY_SKIPPED", "resourceId": template.id})
                continue
            text, facts = access.render(context, template)
            blocks.append(_template_block(template, text))
            diagnostics += [*facts, _template_fact(template)]
        return {"blocks": blocks, "diagnostics": diagnostics}

    def available(asked: Mapping[str, str]) -> bool:
        return bool(asked["sessionId"] and access.bound(asked["sessionId"]))

    return SourceDefinition(
        id=TEMPLATE_SOURCE,
        plugin_id=PLUGIN,
        name="Templates",
        resolve=resolve,
        stability="evaluation",
        lifetimes=("request",),
        text_parser_alias_for="tavern.text",
        module_available=available,
    )


def _template_block(template: StoredTemplate, text: str) -> dict[str, Json]:
    return {
        "type": "text",
        "id": template.block_id,
        "name": template.name,
        "text": text,
        "source": {"resourceId": template.id, "field": "content"},
        "children": [{"name": template.id, "text": template.content}],
    }


def _template_fact(template: StoredTemplate) -> dict[str, Json]:
    return {
        "code": "TAVERN_MEMORY_RESOURCE_VERSION",
        "resourceId": template.id,
        "blockId": template.block_id,
        "revision": template.revision,
        "configRevision": template.config_revision,
    }
