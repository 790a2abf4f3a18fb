"""Failures of templates; the code names the cause, the details the place.

Source: spec/text_and_mvu B1-B4.
"""

from tapster.engine.errors import SourceError
from tapster.engine.limits import TEMPLATE_MESSAGE_UNITS


class TemplateError(SourceError):
    """A template can't be rendered; ``details`` has ``template``, and ``line``/``column`` (from 1) where known."""

    code = "TEMPLATE_EXECUTION_FAILED"

    def __init__(
        self, message: str, *, code: str | None = None, template: str = "", line: int | None = None, column: int = 1
    ) -> None:
        place = template if line is None else f"{template}:{line}:{column}"
        text = f"{place}: {message}" if place else message
        details: dict[str, object] = {"template": template}
        if line is not None:
            details |= {"line": line, "column": column}
        super().__init__(text[:TEMPLATE_MESSAGE_UNITS], code=code, details=details)


class TemplateSyntaxError(TemplateError):
    """A tag is not closed."""

    code = "TEMPLATE_SYNTAX"
    kind = "TypeError"
