"""The ``sillytavern`` macro dialect: a real parser and an evaluator over frozen input."""

from .context import CardFields as CardFields
from .context import Draw as Draw
from .context import Expansion as Expansion
from .context import Group as Group
from .context import MacroContext as MacroContext
from .context import MacroMessage as MacroMessage
from .evaluate import expand as expand
from .identity import message_examples as message_examples
