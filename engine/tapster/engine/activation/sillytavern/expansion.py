"""The macros of one scan: what they make of contents and keys, and the variables as they leave them."""

from .ports import MacroPort, ScanVariables
from .result import VariableWrite


class Expansion:
    """Texts after their macros; apart from the scan itself, so that what is kept of a scan doesn't hold all of it.

    Attributes:
        variables: as the macros so far left them.
        writes: changes of the chat's variables, in order.
        writer: name of the entry at hand, which further changes count for.
        is_over: the scan has ended; explaining it runs nothing.
    """

    def __init__(self, macros: MacroPort, variables: ScanVariables) -> None:
        self._macros = macros
        self._keys: dict[str, str] = {}
        self.variables = variables
        self.writes: list[VariableWrite] = []
        self.writer: str | None = None
        self.is_over = False

    def expand(self, text: str) -> str:
        """A text after its macros; their writes count for the entry at hand."""
        outcome = self._macros(text, self.variables)
        if outcome.variables is not self.variables:
            self._note_writes(outcome.variables)
            self.variables = outcome.variables
        return outcome.text

    def expand_key(self, text: str) -> str:
        """A key after its macros; once the scan is over, as it last was."""
        if not self.is_over:
            self._keys[text] = self.expand(text)
        return self._keys.get(text, text)

    def _note_writes(self, after: ScanVariables) -> None:
        before = self.variables.chat
        for name, value in after.chat.items():
            if name not in before or before[name] != value:
                self.writes.append(VariableWrite(name, value, self.writer))
