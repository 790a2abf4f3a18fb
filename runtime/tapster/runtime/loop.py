"""How well the event loop runs: a task that computes for long keeps all others waiting."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import final

import attrs
import trio

WINDOW_S = 60.0
SLOW_S = 0.05
"""A step that long is counted as a stall: ten times what a step may take (style §3 rule 11)."""


@attrs.frozen
class LoopReading:
    """Steps taken, steps over ``SLOW_S``, seconds of the longest ever and of the longest in the last minute or two."""

    steps: int
    stalls: int
    longest_s: float
    recent_s: float


@final
class LoopMeter(trio.abc.Instrument):
    """Measures every step of every task."""

    def __init__(self) -> None:
        self._began = 0.0
        self._steps = 0
        self._stalls = 0
        self._longest = 0.0
        self._window_ends = time.perf_counter() + WINDOW_S
        self._now, self._before = 0.0, 0.0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        """A step begins."""
        self._began = time.perf_counter()

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        """A step ends."""
        now = time.perf_counter()
        took = now - self._began
        self._steps += 1
        if took > self._now:
            self._note(took)
        if now > self._window_ends:
            self._window_ends = now + WINDOW_S
            self._before, self._now = self._now, 0.0
        if took > SLOW_S:
            self._stalls += 1

    def _note(self, took: float) -> None:
        self._now = took
        self._longest = max(self._longest, took)

    def reading(self) -> LoopReading:
        """A reading for introspection."""
        return LoopReading(self._steps, self._stalls, self._longest, max(self._now, self._before))


@contextmanager
def metered_loop() -> Iterator[LoopMeter]:
    """A meter on the loop of this thread, for the length of a block."""
    meter = LoopMeter()
    trio.lowlevel.add_instrument(meter)
    # A step that is under way has no beginning to measure from.
    meter._began = time.perf_counter()
    try:
        yield meter
    finally:
        trio.lowlevel.remove_instrument(meter)
