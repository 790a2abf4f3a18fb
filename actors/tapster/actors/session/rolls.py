"""Reproducible rolls: every random draw of a request comes from a seed that its record keeps.

Source: design §8 "Reproducible rolls".
"""

import hashlib

import attrs


@attrs.frozen
class RollSeed:
    """Where the draws of one request start: the session, its durable roll counter, and the clock reading in ms."""

    session: str
    counter: int
    now_ms: int

    def text(self) -> str:
        """The seed as a record keeps it."""
        return f"{self.session}:{self.counter}:{self.now_ms}"


@attrs.define(eq=False)
class Rolls:
    """A stream of draws in [0, 1); the same seed and place give the same stream.

    Attributes:
        taken: how many draws were used.
    """

    seed: RollSeed
    place: str = ""
    taken: int = 0

    def __call__(self) -> float:
        """The next draw."""
        text = f"{self.seed.text()}:{self.place}:{self.taken}"
        self.taken += 1
        # 53 bits of a hash, as many as a double's mantissa holds.
        return (int.from_bytes(hashlib.sha256(text.encode("utf-8", "replace")).digest()[:8]) >> 11) / float(1 << 53)
