"""One assembly's macro state: the variables and outlets that its macros share, in the order they run."""

import attrs

from tapster.engine.text.macros import MacroContext
from tapster.engine.text.macros import expand as expand_text

_STARTS = ("{{", "<", "\\")
"""What a text needs at least to be changed by an expansion: a macro, an old-style name, an escaped brace."""


@attrs.define(eq=False)
class MacroSession:
    """Expands texts one after the other; ``context`` holds the variables as they are by then."""

    context: MacroContext

    def expand(self, text: str, *, original: str | None = None) -> str:
        """The text with its macros replaced; what they set stays for the next text."""
        if not any(start in text for start in _STARTS):
            return text
        result = expand_text(text, attrs.evolve(self.context, original=original))
        self.context = attrs.evolve(self.context, variables=result.variables, global_variables=result.global_variables)
        return result.text
