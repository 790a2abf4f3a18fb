"""The lease of an assembly: what it was made from, and whether that still holds.

Revisions are counters that their owners publish, so validating is a comparison without a wait.

Source: design §4 rule 4.
"""

import attrs

from tapster.engine.errors import TapsterError


class LeaseLost(TapsterError):
    """What an assembly was made from changed twice while it was made; ask again."""

    code = "LEASE_LOST"
    status = 409

    def __init__(self, changed: tuple[str, ...]) -> None:
        super().__init__(f"{', '.join(changed)} changed while the request was assembled; ask again")
        self.details = {"changed": list(changed)}
        self.changed = changed


class Superseded(TapsterError):
    """A newer assembly of the same session took this one's place."""

    code = "SUPERSEDED"
    status = 409

    def __init__(self) -> None:
        super().__init__("a newer assembly of this session took the place of this one")


class AssemblyCancelled(TapsterError):
    """Someone stopped the assembly; nothing was sent and nothing was used up."""

    code = "CANCELLED"
    status = 409

    def __init__(self, reason: str) -> None:
        super().__init__(f"the assembly was cancelled: {reason}")


@attrs.frozen
class Revisions:
    """The published counters an assembly depends on."""

    selection: int
    library: int
    sources: int = 0

    def changed_since(self, taken: "Revisions") -> tuple[str, ...]:
        """Names of what changed, empty when the lease holds."""
        pairs = (
            ("the selection", self.selection, taken.selection),
            ("the library", self.library, taken.library),
            ("the sources", self.sources, taken.sources),
        )
        return tuple(name for name, now, then in pairs if now != then)
