"""The real clock and the real source of ids, for programs that don't inject their own."""

import secrets
import time
import uuid

import attrs


@attrs.frozen
class SystemClock:
    """The wall clock of this machine."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        return time.time_ns() // 1_000_000


@attrs.frozen
class SystemIds:
    """Random ids from the operating system."""

    def uuid(self) -> str:
        """A new UUID in lower-case text."""
        return str(uuid.uuid4())

    def token(self, size_bytes: int) -> str:
        """New random bytes as lower-case hex."""
        return secrets.token_hex(size_bytes)
