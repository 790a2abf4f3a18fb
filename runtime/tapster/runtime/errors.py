"""What can go wrong between actors; each is worth a retry except a cycle.

RuntimeFault
├── ActorGone      the actor ended before it answered; ``taken`` says whether it had begun
├── Overloaded     the inbox is full, said at once at a border
├── Draining       the process is stopping and takes no new calls
├── Quarantined    the actor crashed too often in its window and waits for a reset
├── AskCycle       an actor asked one that (indirectly) waits for it: a bug of the caller
├── ManyErrors     several declared errors of one request; ``causes`` holds all of them
└── RestartLimit   a child crashed too often; its supervisor ends with it
"""

from collections.abc import Sequence


class RuntimeFault(Exception):
    """The root of the kernel's errors; ``code`` is stable."""

    code = "RUNTIME_FAULT"


class ActorGone(RuntimeFault):
    """The actor ended before it answered.

    ``taken`` is False when the message never left the inbox, so sending it again can't do its work twice.
    """

    code = "ACTOR_GONE"

    def __init__(self, name: str, *, taken: bool) -> None:
        super().__init__(f"{name} ended before it answered")
        self.name = name
        self.taken = taken


class Overloaded(RuntimeFault):
    """An inbox is full and the border doesn't wait."""

    code = "OVERLOADED"

    def __init__(self, name: str, retry_after_s: float = 1.0) -> None:
        super().__init__(f"{name} has no room for more; try again in {retry_after_s:g} s")
        self.name = name
        self.retry_after_s = retry_after_s


class Draining(RuntimeFault):
    """The process is shutting down."""

    code = "DRAINING"

    def __init__(self) -> None:
        super().__init__("Tapster is shutting down and takes no new calls")


class Quarantined(RuntimeFault):
    """An actor crashed too often; it stays down until someone resets it."""

    code = "QUARANTINED"

    def __init__(self, name: str, crashes: int, period_s: float) -> None:
        super().__init__(f"{name} crashed {crashes} times within {period_s:g} s and is stopped until it is reset")
        self.name = name


class AskCycle(RuntimeFault):
    """An ask would wait for an actor that waits for this one."""

    code = "ASK_CYCLE"

    def __init__(self, chain: Sequence[str]) -> None:
        super().__init__(f"an ask would wait for itself: {' -> '.join(chain)}")
        self.chain = tuple(chain)


class ManyErrors(RuntimeFault):
    """Several declared errors ended one request at once."""

    code = "MANY_ERRORS"

    def __init__(self, causes: Sequence[Exception]) -> None:
        super().__init__("; ".join(str(cause) for cause in causes))
        self.causes = tuple(causes)


class RestartLimit(RuntimeFault):
    """A supervised child crashed more often than its policy allows."""

    code = "RESTART_LIMIT"

    def __init__(self, name: str, crashes: int, period_s: float) -> None:
        super().__init__(f"{name} crashed {crashes} times within {period_s:g} s; its supervisor gives up")
        self.name = name
