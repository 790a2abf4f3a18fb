"""What a call costs its own thread, for tests that tell a bounded call from one that isn't.

Not the process's clock: it counts the other threads too. No garbage collection: with the objects of a whole suite one
takes longer than what is measured. The least of several runs: whatever else a shared machine does only ever adds.
"""

import gc
import time
from collections.abc import Callable
from typing import Final

RUNS: Final = 5


def least_cpu_s(call: Callable[[], object], enough_s: float = 0.0) -> float:
    """CPU seconds of the calling thread, the least of ``RUNS`` runs; the first at or under ``enough_s`` ends it."""
    least = float("inf")
    for _ in range(RUNS):
        was_on = gc.isenabled()
        gc.disable()
        started = time.thread_time()
        try:
            call()
        finally:
            least = min(least, time.thread_time() - started)
            if was_on:
                gc.enable()
        if least <= enough_s:
            break
    return least
