"""Tavern's sources for the assembler, and the text parser behind them."""

from .memory import TemplateAccess as TemplateAccess
from .memory import VariableAccess as VariableAccess
from .memory import templates_source as templates_source
from .memory import variables_source as variables_source
from .sources import after_tavern_assembly as after_tavern_assembly
from .sources import register_tavern_sources as register_tavern_sources
from .sources import tavern_sources as tavern_sources
from .text import DrawSource as DrawSource
from .text import TemplateRuntime as TemplateRuntime
from .text import macro_context as macro_context
from .text import rule_blocks as rule_blocks
from .text import split_references as split_references
from .text import steady_draws as steady_draws
from .text import tavern_renderer as tavern_renderer
