"""What a program does: commands of clients, faults, clock jumps, restarts and kills, drawn from one seed."""

import random
from collections.abc import Callable, Sequence
from typing import Final, Literal

import attrs

SESSIONS: Final = 5
OWNERS: Final[Sequence[Literal["library", "strategies", "variables", "templates"]]] = (
    "library",
    "library",
    "strategies",
    "variables",
    "templates",
)
SLOTS: Final = 3
"""Presets, books and templates that a program plays with, each."""


@attrs.frozen
class Create:
    session: int


@attrs.frozen
class Say:
    session: int
    way: Literal["followup", "steer", "inject", "send"]


@attrs.frozen
class Stop:
    session: int
    keep_inbox: bool


@attrs.frozen
class Preview:
    session: int


@attrs.frozen
class Select:
    """Bind a preset (None: unbind) to a session."""

    session: int
    preset: int | None


@attrs.frozen
class BindBook:
    session: int
    book: int


@attrs.frozen
class Rp:
    session: int
    active: bool


@attrs.frozen
class Close:
    session: int


@attrs.frozen
class Fork:
    parent: int
    child: int


@attrs.frozen
class Delegate:
    parent: int
    child: int


@attrs.frozen
class Listen:
    """Read so many live items, then go."""

    session: int
    items: int


@attrs.frozen
class Flush:
    session: int


@attrs.frozen
class MakePreset:
    slot: int


@attrs.frozen
class EditPreset:
    slot: int


@attrs.frozen
class DropPreset:
    slot: int


@attrs.frozen
class MakeBook:
    slot: int


@attrs.frozen
class DropBook:
    slot: int


@attrs.frozen
class Relate:
    """Bind a book to a preset."""

    preset: int
    book: int


@attrs.frozen
class SaveTemplate:
    slot: int
    session: int


@attrs.frozen
class ApplyTemplate:
    slot: int
    session: int


@attrs.frozen
class Script:
    """The model's next answer."""

    number: int


@attrs.frozen
class FailCommits:
    count: int


@attrs.frozen
class FailReads:
    count: int


@attrs.frozen
class SlowDisk:
    seconds: float


@attrs.frozen
class FailSources:
    """So many of the next assemblies meet a source that fails, after so long."""

    count: int
    seconds: float


@attrs.frozen
class CrashSession:
    session: int


@attrs.frozen
class CrashAgent:
    session: int


@attrs.frozen
class CrashOwner:
    """Crash the actor behind a kind of shared state."""

    name: Literal["library", "strategies", "variables", "templates"]


@attrs.frozen
class BreakCommits:
    """Let the next transactions end in a bug of the engine, before or after they are durable."""

    count: int
    is_durable: bool


@attrs.frozen
class Jump:
    """Let so much time pass."""

    seconds: float


@attrs.frozen
class Restart:
    """Close everything in order and open it again."""


@attrs.frozen
class Kill:
    """Lose everything that isn't durable, and open again."""


Command = (
    Create | Say | Stop | Preview | Select | BindBook | Rp | Close | Fork | Delegate | Listen | Flush | MakePreset
    | EditPreset | DropPreset | MakeBook | DropBook | Relate | SaveTemplate | ApplyTemplate | Script | FailCommits
    | FailReads | FailSources | SlowDisk | CrashSession | CrashAgent | CrashOwner | BreakCommits | Jump | Restart | Kill
)  # fmt: skip


@attrs.frozen
class Step:
    """A command, how long its client waits for the answer (None: as it takes), and the pause after it."""

    command: Command
    patience_s: float | None
    pause_s: float


@attrs.frozen
class Program:
    """Steps, and the seed of everything else that is left to chance: scheduling, delays, ids."""

    seed: int
    steps: tuple[Step, ...]

    def __str__(self) -> str:
        rows = (f"  {step.command}  patience={step.patience_s} pause={step.pause_s}" for step in self.steps)
        return f"Program(seed={self.seed})\n" + "\n".join(rows)


WAYS: Sequence[Literal["followup", "steer", "inject", "send"]] = ("followup", "steer", "inject", "send")
PAUSES: Final = (0.0, 0.0, 0.0, 0.0005, 0.003, 0.02, 0.3, 1.2)
PATIENCE: Final = (None, None, None, None, 0.0, 0.001, 0.004, 0.02, 0.5)


def _makers(rng: random.Random) -> Sequence[tuple[int, Callable[[], Command]]]:
    def session() -> int:
        return min(rng.randrange(SESSIONS), rng.randrange(SESSIONS))

    def slot() -> int:
        return rng.randrange(SLOTS)

    return (
        (3, lambda: Create(session())),
        (22, lambda: Say(session(), rng.choice(WAYS))),
        (5, lambda: Stop(session(), rng.random() < 0.5)),
        (6, lambda: Preview(session())),
        (7, lambda: Select(session(), rng.choice([None, 0, 1, 2]))),
        (3, lambda: BindBook(session(), slot())),
        (2, lambda: Rp(session(), rng.random() < 0.5)),
        (3, lambda: Close(session())),
        (2, lambda: Fork(session(), session())),
        (2, lambda: Delegate(session(), session())),
        (3, lambda: Listen(session(), rng.randrange(20))),
        (2, lambda: Flush(session())),
        (5, lambda: MakePreset(slot())),
        (3, lambda: EditPreset(slot())),
        (3, lambda: DropPreset(slot())),
        (2, lambda: MakeBook(slot())),
        (2, lambda: DropBook(slot())),
        (2, lambda: Relate(slot(), slot())),
        (2, lambda: SaveTemplate(slot(), session())),
        (2, lambda: ApplyTemplate(slot(), session())),
        (7, lambda: Script(rng.randrange(100))),
        (3, lambda: FailCommits(rng.randint(1, 4))),
        (2, lambda: FailReads(rng.randint(1, 3))),
        (2, lambda: FailSources(rng.randint(1, 3), rng.choice([0.0, 0.5, 30.0]))),
        (2, lambda: SlowDisk(rng.choice([0.0, 0.001, 0.2]))),
        (2, lambda: CrashSession(session())),
        (2, lambda: CrashAgent(session())),
        (2, lambda: CrashOwner(rng.choice(OWNERS))),
        (2, lambda: BreakCommits(rng.randint(1, 2), rng.random() < 0.5)),
        (3, lambda: Jump(rng.choice([5.0, 59.0, 61.0, 3600.0]))),
        (2, lambda: Restart()),
        (2, lambda: Kill()),
    )


def draw_program(seed: int, length: int | None = None) -> Program:
    """The program of a seed."""
    rng = random.Random(seed)
    makers = _makers(rng)
    weights = [weight for weight, _ in makers]
    steps = []
    for _ in range(length or rng.randint(3, 14)):
        ((_, make),) = rng.choices(makers, weights)
        steps.append(Step(make(), rng.choice(PATIENCE), rng.choice(PAUSES)))
    return Program(seed, (Step(Create(0), None, 0.01), *steps))
