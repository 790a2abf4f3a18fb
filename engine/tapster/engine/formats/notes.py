"""What a reader noticed or forgave, in words for a person and a code for programs."""

import attrs

from tapster.engine.errors import FormatError


@attrs.frozen
class Note:
    """One remark about a file; ``path`` is where in it, member names joined by dots from the top."""

    code: str
    message: str
    path: str = ""


@attrs.define(eq=False)
class Notes:
    """The remarks of one read, in the order they are made; none is made twice."""

    items: list[Note] = attrs.field(factory=list)

    def add(self, code: str, message: str, path: str = "") -> None:
        """Record one remark."""
        note = Note(code, message, path)
        if note not in self.items[-50:]:
            self.items.append(note)


class UnsupportedFile(FormatError):
    """The file is readable and known, but nothing Tapster can use."""

    code = "UNSUPPORTED_FILE"
