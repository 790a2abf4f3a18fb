"""The nightly run: ``python -m tests.simulation --programs 20000``; one program: ``--seed N``."""

import argparse
import multiprocessing
import sys
import time
import traceback
from collections import Counter

from .program import draw_program
from .running import outcome, run_program, shrink, try_program

PROGRESS_S = 10.0


def many(first: int, count: int, stop_after: int, jobs: int) -> int:
    """Run programs, in so many processes; the exit code says whether all held."""
    failed: list[int] = []
    commands: Counter[str] = Counter()
    done = 0
    started = told = time.monotonic()
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        for seed, reason, of_this in pool.imap_unordered(outcome, range(first, first + count), chunksize=10):
            done += 1
            commands.update(of_this)
            if reason is not None:
                failed.append(seed)
                print(f"seed {seed}: {reason}", flush=True)
            now = time.monotonic()
            if now - told > PROGRESS_S:
                told = now
                print(f"{done} of {count}, {done / (now - started):.1f} a second, {len(failed)} failed", flush=True)
            if len(failed) >= stop_after:
                break
    took = time.monotonic() - started
    print(f"{done} programs in {took:.1f} s, {len(failed)} failed, {commands.total()} steps:")
    print(", ".join(f"{name} {number}" for name, number in commands.most_common()))
    return 1 if failed else 0


def one(seed: int) -> int:
    """Replay the program of a seed, and shrink it if it fails."""
    program = draw_program(seed)
    failure = try_program(program)
    if failure is None:
        print(program)
        print(f"holds; {len(run_program(program).story)} things happened")
        return 0
    print(failure.reason)
    small = shrink(failure, tell=lambda line: print("shrunk to", line, flush=True))
    print(small.program)
    traceback.print_exception(small.error)
    return 1


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--programs", type=int, default=200)
    parser.add_argument("--first", type=int, default=1, help="seed of the first program")
    parser.add_argument("--seed", type=int, help="replay and shrink this one")
    parser.add_argument("--stop-after", type=int, default=20, help="failures")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    given = parser.parse_args()
    return many(given.first, given.programs, given.stop_after, given.jobs) if given.seed is None else one(given.seed)


if __name__ == "__main__":
    sys.exit(main())
