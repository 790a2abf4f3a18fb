"""A bound on what macros insert: a few bytes that double a variable again and again must not fill the memory."""

from typing import final

from tapster.engine.errors import RequestError
from tapster.engine.limits import MACRO_OUTPUT_UNITS


class MacroOutputTooLarge(RequestError):
    """The macros of a text insert more than any profile may hold."""

    code = "MACRO_OUTPUT_TOO_LARGE"
    status = 413

    def __init__(self) -> None:
        super().__init__(
            f"the macros of a text insert over {MACRO_OUTPUT_UNITS} characters; look for a long variable "
            "that is inserted often",
            details={"limit": MACRO_OUTPUT_UNITS},
        )


@final
class OutputRoom:
    """What may still be inserted."""

    def __init__(self) -> None:
        self._left = MACRO_OUTPUT_UNITS

    def take(self, characters: int) -> None:
        """Use some of it up.

        Raises:
            MacroOutputTooLarge: there is none left.
        """
        self._left -= characters
        if self._left < 0:
            raise MacroOutputTooLarge
