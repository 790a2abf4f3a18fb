"""What a session's earlier requests left behind: timed effects, variables, and the count of rolls.

A value: a request works on a copy and the session keeps it when the request is handed over, under the seq of the next
host event. So a fork takes the state as of its cut, and a turn that is rolled back takes its effects with it.

Source: design §4 rule 3, "Cheap now, costly later"; design §8 "Reproducible rolls".
"""

import attrs

from tapster.engine.ecma import Json, is_record, is_safe_integer

from .sillytavern.ports import ScanVariables
from .sillytavern.timed import TimedState


@attrs.frozen
class SessionState:
    """One session's state between two requests.

    Attributes:
        rolled: how many handed-over requests have drawn random numbers.
    """

    timed: TimedState = attrs.field(factory=TimedState)
    variables: ScanVariables = attrs.field(factory=ScanVariables)
    rolled: int = 0

    def to_json(self) -> dict[str, Json]:
        """The state as it is stored."""
        return {
            "timed": self.timed.to_json(),
            "variables": dict(self.variables.chat),
            "globalVariables": dict(self.variables.shared),
            "rolled": self.rolled,
        }

    @classmethod
    def from_json(cls, value: Json) -> "SessionState":
        """The state as it was stored; what can't be used counts as absent."""
        stored: dict[str, Json] = value if is_record(value) else {}
        rolled: Json = stored.get("rolled")
        variables = ScanVariables(_record(stored.get("variables")), _record(stored.get("globalVariables")))
        return cls(TimedState.from_json(stored.get("timed")), variables, rolled if is_safe_integer(rolled) else 0)


def _record(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}
