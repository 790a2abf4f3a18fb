"""Read-only templates (an EJS subset): compiled here, run through a port."""

from .compile import Program as Program
from .compile import compile_template as compile_template
from .data import DataResolver as DataResolver
from .data import TemplateBook as TemplateBook
from .data import TemplateData as TemplateData
from .data import TemplateEntry as TemplateEntry
from .data import TemplatePrompt as TemplatePrompt
from .engine import HELPERS as HELPERS
from .engine import Lookup as Lookup
from .engine import RegexArgument as RegexArgument
from .engine import Resolve as Resolve
from .engine import ScriptFailure as ScriptFailure
from .engine import Surroundings as Surroundings
from .engine import TemplateEngine as TemplateEngine
from .engine import render_template as render_template
from .errors import TemplateError as TemplateError
from .errors import TemplateSyntaxError as TemplateSyntaxError
from .stored import Decision as Decision
from .stored import StoredTemplate as StoredTemplate
from .stored import TemplateEditRefused as TemplateEditRefused
from .stored import TemplateShelf as TemplateShelf
from .stored import may_emit as may_emit
from .stored import parse_stored_template as parse_stored_template
