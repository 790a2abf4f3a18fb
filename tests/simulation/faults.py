"""The disk, the clock and the ids of a simulated machine."""

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import attrs
import trio

from tapster.actors.store import CommitFailed, EngineInfo, Keyed, MemoryEngine, ReadFailed, Tables, Warned
from tapster.actors.store.interface import Outcome


@attrs.define(eq=False)
class Disk:
    """A memory engine that outlives the machines that use it, and fails when it is told to.

    Attributes:
        failing_commits: so many of the next transactions fail, each wholly.
        failing_reads: so many of the next reads fail.
        breaking_commits: for each of the next transactions, whether it is durable when a bug ends it.
        delay_s: what each access takes at least.
    """

    kept: MemoryEngine = attrs.field(factory=MemoryEngine)
    failing_commits: int = 0
    failing_reads: int = 0
    breaking_commits: list[bool] = attrs.field(factory=list)
    delay_s: float = 0.0

    def heal(self) -> None:
        """End every fault."""
        self.failing_commits = self.failing_reads = 0
        self.breaking_commits.clear()
        self.delay_s = 0.0


@attrs.define(eq=False)
class Mount:
    """One machine's access to the disk; a dead machine changes nothing any more."""

    disk: Disk
    is_dead: bool = False

    @property
    def info(self) -> EngineInfo:
        """As ``Engine.info``."""
        return self.disk.kept.info

    @property
    def warnings(self) -> tuple[Warned, ...]:
        """As ``Engine.warnings``."""
        return ()

    def commit(self, batch: Sequence[Keyed], now: int) -> list[Outcome]:
        """As ``Engine.commit``."""
        if self.is_dead:
            raise CommitFailed("the machine is dead")
        if self.disk.failing_commits:
            self.disk.failing_commits -= 1
            raise CommitFailed("the disk refused the transaction")
        if not self.disk.breaking_commits:
            return self.disk.kept.commit(batch, now)
        if self.disk.breaking_commits.pop():
            self.disk.kept.commit(batch, now)
        raise ZeroDivisionError

    @contextmanager
    def read(self) -> Iterator[Tables]:
        """As ``Engine.read``."""
        if self.disk.failing_reads:
            self.disk.failing_reads -= 1
            raise ReadFailed("the disk refused the read")
        with self.disk.kept.read() as tables:
            yield tables

    def tidy(self, *arguments: object) -> None:
        """Nothing to do."""

    @property
    def is_behind(self) -> bool:
        """As ``Engine.is_behind``."""
        return False

    def catch_up(self, *, beside: bool) -> None:
        """Nothing to do."""

    def check(self) -> tuple[str, ...]:
        """As ``Engine.check``."""
        return self.disk.kept.check()

    def backup(self, target: str) -> None:
        """As ``Engine.backup``."""
        self.disk.kept.backup(target)

    def close(self) -> None:
        """The disk stays."""


@attrs.define
class SimulatedClock:
    """Epoch milliseconds on trio's clock."""

    def now_ms(self) -> int:
        return 1_700_000_000_000 + round(trio.current_time() * 1000)


@attrs.define
class DrawnIds:
    """Ids from the program's chance."""

    rng: random.Random

    def uuid(self) -> str:
        digits = f"{self.rng.getrandbits(128):032x}"
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"

    def token(self, size_bytes: int) -> str:
        return f"{self.rng.getrandbits(8 * size_bytes):0{2 * size_bytes}x}"
