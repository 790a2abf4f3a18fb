"""Every macro of the ``sillytavern`` dialect."""

from . import clock, identity, randomness, utility, variables
from .registry import MacroDefinition, table

MACROS: dict[str, MacroDefinition] = table(
    identity.NAMES,
    identity.CARD,
    identity.CHAT,
    identity.REQUEST,
    clock.MACROS,
    randomness.MACROS,
    utility.MACROS,
    variables.MACROS,
)
