"""A small run of the simulation, exact replay, and the programs that found bugs.

Seeds are kept as the shrunk programs that they came to: a seed means another program whenever the commands change.
"""

import attrs
import pytest

from .program import (
    BreakCommits,
    CrashAgent,
    Create,
    DropPreset,
    Flush,
    Kill,
    Listen,
    MakePreset,
    Preview,
    Program,
    Restart,
    Say,
    Select,
    SlowDisk,
    Step,
    Stop,
    draw_program,
)
from .running import Failure, run_program, shrink, try_program
from .world import DEEDS

PROGRAMS = 50


@pytest.mark.parametrize("seed", range(1, PROGRAMS + 1))
def test_whatever_happens_nothing_acknowledged_is_lost(seed: int) -> None:
    run_program(draw_program(seed))


@pytest.mark.parametrize("seed", [3, 11, 17])
def test_a_seed_replays_exactly(seed: int) -> None:
    assert run_program(draw_program(seed)).story == run_program(draw_program(seed)).story


def test_a_failing_program_shrinks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(DEEDS, Flush, _broken)
    program = next(each for each in map(draw_program, range(1, 500)) if "Flush" in str(each) and len(each.steps) > 8)
    failure = try_program(program)
    assert failure is not None
    small = shrink(failure)
    assert len(small.program.steps) == 1
    assert "Flush" in str(small.program)
    assert small.reason == Failure(small.program, AssertionError("a planted bug")).reason


async def _broken(client: object, command: object) -> None:
    raise AssertionError("a planted bug")


def step(command: object, patience_s: float | None = None, pause_s: float = 0.0) -> Step:
    """A step of a kept program."""
    return Step(command, patience_s, pause_s)  # type: ignore[arg-type]


FOUND = {
    "a write whose asker left in the moment in which the store failed was stored and unknown": Program(
        3891,
        (
            step(SlowDisk(0.001), 0.02, 1.2),
            step(BreakCommits(1, is_durable=True), 0.02),
            step(MakePreset(1), 0.001),
            step(Say(3, "inject"), 0.0, 1.2),
        ),
    ),
    "a preset deleted while it was being bound stayed bound": Program(
        129,
        (
            step(Preview(0), 0.5),
            step(MakePreset(0), None, 1.2),
            step(Preview(1), 0.5),
            step(Select(0, 0), None, 0.0005),
            step(Stop(1, keep_inbox=False), 0.004),
            step(DropPreset(0), None, 0.02),
        ),
    ),
    "an actor that crashed while it was stopped took everything down": Program(
        105,
        (
            step(Create(0), None, 0.01),
            step(Listen(2, 9), None, 0.02),
            step(MakePreset(2), 0.0),
            step(CrashAgent(0), 0.001),
        ),
    ),
    "a session opened during a shutdown met a closed nursery": Program(
        5166,
        (*(step(Say(number % 5, "send")) for number in range(10)), step(Restart()), step(Kill())),
    ),
}


@pytest.mark.parametrize("name", FOUND)
@pytest.mark.parametrize("chance", range(8))
def test_what_was_found_stays_repaired(name: str, chance: int) -> None:
    run_program(attrs.evolve(FOUND[name], seed=FOUND[name].seed + 1000 * chance))
