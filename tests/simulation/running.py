"""Runs programs so that the same one always does the same, and makes a failing one small."""

from collections import Counter
from collections.abc import Callable

import attrs
import trio
import trio._core._run as scheduler
import trio.testing

from tapster.runtime import first_cause

from .program import Program, draw_program
from .world import World


@attrs.frozen
class Failure:
    """A program that broke something, and how."""

    program: Program
    error: BaseException

    @property
    def reason(self) -> str:
        """What broke, in one line."""
        return describe(self.error)


def describe(error: BaseException) -> str:
    """The first cause inside groups, in one line."""
    error = first_cause(error)
    return f"{type(error).__name__}: {error}".splitlines()[0][:300]


def run_program(program: Program) -> World:
    """Run a program; trio's scheduler is part of the chance that its seed decides.

    Raises:
        BaseException: whatever broke.
    """
    world = World(program)
    # As pytest-trio does for Hypothesis; trio has no public way.
    vars(scheduler)["_ALLOW_DETERMINISTIC_SCHEDULING"] = True
    scheduler._r.seed(program.seed)
    trio.run(world.run, clock=trio.testing.MockClock(autojump_threshold=0))
    return world


def try_program(program: Program) -> Failure | None:
    """How a program fails, None when it doesn't."""
    try:
        run_program(program)
    except Exception as error:  # noqa: BLE001 - whatever broke is what is looked for
        return Failure(program, error)
    return None


def shrink(failure: Failure, attempts: int = 400, tell: Callable[[str], None] = lambda line: None) -> Failure:
    """A shorter program that fails in the same way: pieces are left out, the larger ones first."""
    kind = failure.reason.partition(":")[0]
    size = max(1, len(failure.program.steps) // 2)
    while attempts > 0:
        smaller = None
        for start in range(0, len(failure.program.steps), size):
            attempts -= 1
            steps = failure.program.steps[:start] + failure.program.steps[start + size :]
            found = try_program(attrs.evolve(failure.program, steps=steps)) if steps else None
            if found is not None and found.reason.partition(":")[0] == kind:
                smaller = found
                break
        if smaller is not None:
            failure = smaller
            tell(f"{len(failure.program.steps)} steps")
        elif size == 1:
            break
        else:
            size //= 2
    return failure


def outcome(seed: int) -> tuple[int, str | None, Counter[str]]:
    """A seed, how its program failed (None: it held), and the commands in it."""
    program = draw_program(seed)
    failure = try_program(program)
    commands = Counter(type(step.command).__name__ for step in program.steps)
    return seed, failure.reason if failure is not None else None, commands
