"""Stored templates: resources with revisions, idempotent edits, management mode and policy decisions, as pure state.

Source: spec/text_and_mvu B5; spec/loader §15.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import attrs

from tapster.engine.ecma import is_record, sha256_json, utf16_length
from tapster.engine.errors import RequestError
from tapster.engine.limits import PROMPT_TEMPLATE_ID_UNITS, PROMPT_TEMPLATE_NAME_UNITS, TEMPLATE_SOURCE_UNITS

from .errors import TemplateError

Json: TypeAlias = Any
Mode = Literal["native", "managed"]
SOURCE_ID = "pmp-dsh-tavern/prompt-template"
ALL_SESSIONS = "*"
_ID = re.compile(rf"prompt-template:[A-Za-z0-9_.-]{{1,{PROMPT_TEMPLATE_ID_UNITS}}}")
_VARIABLES_ID = re.compile(r"mvu:[A-Za-z0-9_.-]{1,160}")
_TITLE_TAG = re.compile(r"\[(GENERATE:BEFORE|GENERATE:AFTER|PRELOAD|RENDER[^\]]*)\]", re.IGNORECASE)


class TemplateEditRefused(RequestError):
    """An edit of a stored template that doesn't fit its state; ``code`` is the contract's word."""

    code = "REVISION_CONFLICT"
    kind = "Error"
    status = 409


@attrs.frozen
class StoredTemplate:
    """One template resource."""

    id: str
    name: str
    content: str
    enabled: bool
    session_ids: tuple[str, ...]
    variables: Mapping[str, Json] = attrs.field(factory=dict)
    variable_resource_id: str | None = None
    revision: int = 1
    config_revision: int = 1
    mode: Mode = "native"

    @property
    def is_supported(self) -> bool:
        """Whether its title tags ask for nothing that isn't run."""
        tags = [match[1].upper() for match in _TITLE_TAG.finditer(self.name)]
        return all(tag.startswith("GENERATE:") for tag in tags)

    def is_bound_to(self, session_id: str) -> bool:
        return ALL_SESSIONS in self.session_ids or session_id in self.session_ids

    @property
    def block_id(self) -> str:
        """The id of the block it emits: another one for every content and configuration."""
        return f"template-{sha256_json([self.id, self.revision, self.config_revision])[:32]}"

    def to_json(self) -> dict[str, Json]:
        value: dict[str, Json] = {
            "id": self.id,
            "name": self.name,
            "content": self.content,
            "enabled": self.enabled,
            "sessionIds": list(self.session_ids),
            "variables": dict(self.variables),
        }
        if self.variable_resource_id is not None:
            value["variableResourceId"] = self.variable_resource_id
        return value | {"revision": self.revision, "configRevision": self.config_revision, "mode": self.mode}


def parse_stored_template(raw: Json) -> StoredTemplate:
    """A template resource from its JSON.

    Raises:
        TemplateError: ``TEMPLATE_RESOURCE_INVALID``, or ``TEMPLATE_LIFECYCLE_UNSUPPORTED`` for one that is enabled
            though its title asks for a time of rendering that doesn't exist here.
    """
    if not is_record(raw):
        raise _invalid("it is no object")
    template_id, name, content = raw.get("id"), raw.get("name"), raw.get("content")
    sessions = raw.get("sessionIds")
    variables, resource = raw.get("variables", {}), raw.get("variableResourceId")
    if not isinstance(template_id, str) or not _ID.fullmatch(template_id):
        raise _invalid("its id is not prompt-template: and 1 to 100 letters, digits, '_', '.' or '-'")
    if not isinstance(name, str) or utf16_length(name) > PROMPT_TEMPLATE_NAME_UNITS:
        raise _invalid(f"its name is no text of at most {PROMPT_TEMPLATE_NAME_UNITS} characters")
    if not isinstance(content, str) or utf16_length(content) > TEMPLATE_SOURCE_UNITS:
        raise _invalid(f"its content is no text of at most {TEMPLATE_SOURCE_UNITS} characters")
    if not isinstance(sessions, list) or not sessions or not all(isinstance(item, str) and item for item in sessions):
        raise _invalid("sessionIds must name at least one session, or '*'")
    if not is_record(variables):
        raise _invalid("variables must be an object")
    if resource is not None and not (isinstance(resource, str) and _VARIABLES_ID.fullmatch(resource)):
        raise _invalid("variableResourceId must be an 'mvu:' id")
    template = StoredTemplate(
        template_id,
        name,
        content,
        raw.get("enabled") is True,
        tuple(sessions),
        variables,
        resource,
        revision=_count(raw.get("revision")),
        config_revision=_count(raw.get("configRevision")),
        mode="managed" if raw.get("mode") == "managed" else "native",
    )
    if template.enabled and not template.is_supported:
        raise TemplateError(
            "templates that render while loading or displaying are not run",
            code="TEMPLATE_LIFECYCLE_UNSUPPORTED",
            template=name,
        )
    return template


def _count(value: Json) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 1


def _invalid(reason: str) -> TemplateError:
    return TemplateError(f"the stored template can't be used: {reason}", code="TEMPLATE_RESOURCE_INVALID")


@attrs.frozen
class Operation:
    """An edit that was done: what it asked for, and the template it left."""

    fingerprint: str
    result: StoredTemplate


@attrs.frozen
class TemplateShelf:
    """All stored templates with the operations already done on them."""

    templates: Mapping[str, StoredTemplate] = attrs.field(factory=dict)
    operations: Mapping[str, Operation] = attrs.field(factory=dict)

    def read(self, template_id: str, session_id: str) -> StoredTemplate:
        """One template.

        Raises:
            TemplateEditRefused: ``NOT_FOUND``; ``FORBIDDEN`` for a session it isn't bound to.
        """
        template = self.templates.get(template_id)
        if template is None:
            raise TemplateEditRefused(f"there is no template {template_id!r}", code="NOT_FOUND", status=404)
        if not template.is_bound_to(session_id):
            raise TemplateEditRefused(f"{template_id} is not of this session", code="FORBIDDEN", status=403)
        return template

    def update(
        self, template_id: str, session_id: str, *, content: str, expected_revision: int, operation_id: str
    ) -> tuple["TemplateShelf", StoredTemplate]:
        """Change a template's content.

        Raises:
            TemplateEditRefused: ``REVISION_CONFLICT``, ``IDEMPOTENCY_CONFLICT``, ``NOT_FOUND`` or ``FORBIDDEN``.
            TemplateError: the content can't be used.
        """
        request = ["update", template_id, content, expected_revision]
        done = self._replayed(operation_id, request)
        if done is not None:
            return self, done
        template = self._at_revision(template_id, session_id, expected_revision)
        changed = parse_stored_template({**template.to_json(), "content": content, "revision": template.revision + 1})
        return self._with(changed, operation_id, request), changed

    def copy(
        self, template_id: str, session_id: str, *, new_id: str, operation_id: str
    ) -> tuple["TemplateShelf", StoredTemplate]:
        """Copy a template under an unused id; the copy starts disabled.

        Raises:
            TemplateEditRefused: ``ID_CONFLICT``, ``IDEMPOTENCY_CONFLICT``, ``NOT_FOUND`` or ``FORBIDDEN``.
            TemplateError: the id can't be used.
        """
        request = ["copy", template_id, new_id]
        done = self._replayed(operation_id, request)
        if done is not None:
            return self, done
        template = self.read(template_id, session_id)
        if new_id in self.templates:
            raise TemplateEditRefused(f"{new_id!r} is taken", code="ID_CONFLICT")
        fields = {**template.to_json(), "id": new_id, "enabled": False, "revision": 1, "configRevision": 1}
        copied = parse_stored_template(fields)
        return self._with(copied, operation_id, request), copied

    def set_mode(
        self, template_id: str, session_id: str, *, mode: Mode, expected_config_revision: int, operation_id: str
    ) -> tuple["TemplateShelf", StoredTemplate]:
        """Hand a template to a manager, or back to its own rules.

        Raises:
            TemplateEditRefused: as ``update``.
        """
        request = ["mode", template_id, mode, expected_config_revision]
        done = self._replayed(operation_id, request)
        if done is not None:
            return self, done
        template = self.read(template_id, session_id)
        if template.config_revision != expected_config_revision:
            raise TemplateEditRefused(f"{template_id} is at configuration {template.config_revision}")
        changed = attrs.evolve(template, mode=mode, config_revision=template.config_revision + 1)
        return self._with(changed, operation_id, request), changed

    def bound_to(self, session_id: str) -> Sequence[StoredTemplate]:
        """The templates that may run in a session, in their order."""
        return [
            template
            for template in self.templates.values()
            if template.enabled and template.is_supported and template.is_bound_to(session_id)
        ]

    def _at_revision(self, template_id: str, session_id: str, expected: int) -> StoredTemplate:
        template = self.read(template_id, session_id)
        if template.revision != expected:
            raise TemplateEditRefused(f"{template_id} is at revision {template.revision}, not {expected}")
        return template

    def _replayed(self, operation_id: str, request: Json) -> StoredTemplate | None:
        done = self.operations.get(operation_id)
        if done is None:
            return None
        if done.fingerprint != sha256_json(request):
            raise TemplateEditRefused(
                f"operation {operation_id!r} was another request", code="IDEMPOTENCY_CONFLICT", status=409
            )
        return done.result

    def _with(self, template: StoredTemplate, operation_id: str, request: Json) -> "TemplateShelf":
        return TemplateShelf(
            {**self.templates, template.id: template},
            {**self.operations, operation_id: Operation(sha256_json(request), template)},
        )


@attrs.frozen
class Decision:
    """A policy's answer about one use of a template."""

    enabled: bool
    config_revision: int | None = None
    reason: str = ""


def may_emit(template: StoredTemplate, decision: Decision | None) -> bool:
    """Whether a template is rendered: a native one unless it is denied, a managed one only when it is approved."""
    if decision is None:
        return template.mode == "native"
    if decision.config_revision is not None and decision.config_revision != template.config_revision:
        return False
    return decision.enabled
