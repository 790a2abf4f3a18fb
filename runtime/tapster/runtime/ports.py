"""What the outside gives the kernel and the actors: clock, ids and a log sink."""

from typing import Protocol


class Clock(Protocol):
    """The wall clock, injected so that tests and replays choose it."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""


class Ids(Protocol):
    """A source of identities, injected so that tests can predict them."""

    def uuid(self) -> str:
        """A new UUID in lower-case text."""

    def token(self, size_bytes: int) -> str:
        """New random bytes as lower-case hex, for names of temporary files and secrets."""


class LogSink(Protocol):
    """Where structured events go; fields are ids, counts, codes and durations, never prompt text."""

    def __call__(self, level: str, event: str, **fields: object) -> None: ...


def silent(level: str, event: str, **fields: object) -> None:
    """A log sink that keeps nothing."""
    del level, event, fields
