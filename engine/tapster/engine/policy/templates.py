"""Session templates: named selections to start a session from, as pure state.

Source: spec/loader §13.
"""

import attrs

from tapster.engine.ecma import Json, is_record, parse_json, stringify, trim, utf8, utf16_length
from tapster.engine.errors import FormatError, RequestError, StoreError
from tapster.engine.limits import (
    TEMPLATE_BODY_BYTES,
    TEMPLATE_BYTES_DEFAULT,
    TEMPLATE_BYTES_HARD,
    TEMPLATE_FILE_BYTES,
    TEMPLATE_NAME_BYTES,
    TEMPLATE_NAME_UNITS,
    TEMPLATES_DEFAULT,
    TEMPLATES_HARD,
)

from .bounds import configured_limit
from .selection import Selection, normalize_selection, required_session_id, selection_json


class TemplateLimitError(StoreError):
    """The templates don't fit their capacity."""

    code = "SESSION_TEMPLATE_LIMIT_REACHED"
    status = 409


class TemplateConflict(RequestError):
    """A template of that id exists."""

    code = "SESSION_TEMPLATE_ID_EXISTS"
    kind = "Error"
    status = 409


class TemplateNotFound(RequestError):
    """No template has that id."""

    code = "SESSION_TEMPLATE_NOT_FOUND"
    kind = "Error"
    status = 404


@attrs.frozen
class TemplateLimits:
    """Capacity: templates, and bytes of the document with its last newline."""

    max_templates: int = TEMPLATES_DEFAULT
    max_state_bytes: int = TEMPLATE_BYTES_DEFAULT


def template_limits(max_templates: Json = None, max_state_bytes: Json = None) -> TemplateLimits:
    """Limits from configuration: an unusable value gives the default, a larger one the hard limit."""
    return TemplateLimits(
        configured_limit(max_templates, TEMPLATES_DEFAULT, TEMPLATES_HARD),
        configured_limit(max_state_bytes, TEMPLATE_BYTES_DEFAULT, TEMPLATE_BYTES_HARD),
    )


@attrs.frozen
class Template:
    """A named selection. Times are ISO 8601 in UTC with milliseconds."""

    id: str
    name: str
    selection: Selection
    created_at: str
    updated_at: str


@attrs.frozen
class TemplateState:
    """All templates in creation order, and the chosen one."""

    templates: tuple[Template, ...] = ()
    selected_id: str | None = None

    def find(self, template_id: str) -> Template:
        """The template of that id.

        Raises:
            TemplateNotFound: there is none.
        """
        for template in self.templates:
            if template.id == template_id:
                return template
        raise TemplateNotFound(f"no session template has the id {template_id!r:.120}")


def template_json(template: Template) -> Json:
    """A template as its document holds it."""
    return {
        "id": template.id,
        "name": template.name,
        "selection": selection_json(template.selection),
        "createdAt": template.created_at,
        "updatedAt": template.updated_at,
    }


def templates_text(state: TemplateState) -> str:
    """The document as it's written: two-space indent, one newline at the end."""
    document = {
        "schemaVersion": 1,
        "selectedId": state.selected_id,
        "templates": [template_json(template) for template in state.templates],
    }
    return stringify(document, indent=2) + "\n"


def read_templates(data: bytes | None) -> TemplateState:
    """The state a stored document holds; ``data`` None is a missing file.

    Raises:
        TemplateLimitError: code ``SESSION_TEMPLATE_FILE_TOO_LARGE``.
        FormatError: slug ``bad-json``, ``template-bad-document`` or ``template-duplicate-id``; the file stays.
    """
    if data is None:
        return TemplateState()
    if len(data) > TEMPLATE_FILE_BYTES:
        raise TemplateLimitError(
            f"the template file has {len(data)} bytes, more than {TEMPLATE_FILE_BYTES}",
            code="SESSION_TEMPLATE_FILE_TOO_LARGE",
            status=413,
        )
    document = parse_json(data.decode("utf-8", "replace"))
    items = document.get("templates") if is_record(document) else None
    if not isinstance(items, list) or document.get("schemaVersion") != 1:
        raise FormatError("template-bad-document", "the template file is not a schema 1 document of templates")
    templates = tuple(_read_template(item) for item in items)
    ids = [template.id for template in templates]
    if len(set(ids)) < len(ids):
        raise FormatError("template-duplicate-id", "two templates of the file have the same id")
    selected = document.get("selectedId")
    return TemplateState(templates, selected if selected in ids else None)


def _read_template(value: Json) -> Template:
    if not is_record(value):
        raise FormatError("template-bad-document", "a template of the file is not a record")
    created, updated = value.get("createdAt"), value.get("updatedAt")
    if not isinstance(created, str) or not isinstance(updated, str):
        raise FormatError("template-bad-document", "a template of the file has no createdAt or updatedAt")
    selection = normalize_selection(value.get("selection"))
    return Template(required_session_id(value.get("id")), template_name(value.get("name")), selection, created, updated)


def template_name(value: Json) -> str:
    """A checked name: trimmed, 1-120 units, at most 480 bytes.

    Raises:
        FormatError: slug ``bad-template-name``.
    """
    name = trim(value) if isinstance(value, str) else ""
    if not 1 <= utf16_length(name) <= TEMPLATE_NAME_UNITS or len(utf8(name)) > TEMPLATE_NAME_BYTES:
        raise FormatError("bad-template-name", f"a template name has 1 to {TEMPLATE_NAME_UNITS} characters")
    return name


def check_template_body(size: int) -> None:
    """Refuse a request body over 64 KiB.

    Raises:
        TemplateLimitError: code ``SESSION_TEMPLATE_BODY_TOO_LARGE``.
    """
    if size > TEMPLATE_BODY_BYTES:
        raise TemplateLimitError(
            f"a template request may have {TEMPLATE_BODY_BYTES} bytes",
            code="SESSION_TEMPLATE_BODY_TOO_LARGE",
            status=413,
        )


def create_template(
    state: TemplateState, template_id: Json, name: Json, selection: Json, *, limits: TemplateLimits, now: str
) -> TemplateState:
    """Add a template and choose it.

    Raises:
        FormatError: slug ``bad-session-id``, ``empty-session-id`` or ``bad-template-name``.
        TemplateConflict: the id is taken.
        TemplateLimitError: there is no room.
    """
    checked = required_session_id(template_id)
    if any(template.id == checked for template in state.templates):
        raise TemplateConflict(f"a session template with the id {checked!r} exists")
    made = Template(checked, template_name(name), normalize_selection(selection), now, now)
    return _within(TemplateState((*state.templates, made), checked), limits)


def update_template(
    state: TemplateState,
    template_id: str,
    *,
    limits: TemplateLimits,
    now: str,
    name: Json = None,
    selection: Json = None,
) -> TemplateState:
    """Rename a template or replace its selection; None leaves a member as it is.

    Raises:
        TemplateNotFound: there is none.
        FormatError: slug ``bad-template-name``.
        TemplateLimitError: there is no room.
    """
    found = state.find(template_id)
    changed = attrs.evolve(
        found,
        name=found.name if name is None else template_name(name),
        selection=found.selection if selection is None else normalize_selection(selection),
        updated_at=now,
    )
    kept = tuple(changed if template is found else template for template in state.templates)
    return _within(attrs.evolve(state, templates=kept), limits)


def select_template(state: TemplateState, template_id: str | None) -> TemplateState:
    """Choose a template, or none.

    Raises:
        TemplateNotFound: there is none.
    """
    return attrs.evolve(state, selected_id=None if template_id is None else state.find(template_id).id)


def delete_template(state: TemplateState, template_id: str) -> TemplateState:
    """Remove a template; when it was the chosen one, none is chosen.

    Raises:
        TemplateNotFound: there is none.
    """
    found = state.find(template_id)
    kept = tuple(template for template in state.templates if template is not found)
    return TemplateState(kept, None if state.selected_id == template_id else state.selected_id)


def _within(state: TemplateState, limits: TemplateLimits) -> TemplateState:
    if len(state.templates) > limits.max_templates:
        raise TemplateLimitError(f"at most {limits.max_templates} session templates may exist: delete one first")
    if len(utf8(templates_text(state))) > limits.max_state_bytes:
        raise TemplateLimitError(
            f"the session templates need more than {limits.max_state_bytes} bytes: delete one first",
            code="SESSION_TEMPLATE_STORAGE_LIMIT_REACHED",
            status=413,
        )
    return state
