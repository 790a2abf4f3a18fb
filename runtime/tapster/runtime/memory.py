"""Keeps Python's collector and its interpreter lock from stalling the event loop of a process with large data.

A full collection walks every container there is while nothing else runs: hundreds of milliseconds with a few large
books in memory. So values that stay are built with the collector paused and are then left out of what it walks.
"""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Final

import trio

from .nursery import open_service_nursery

SWITCH_S: Final = 0.0002
"""After so long a thread that computes lets the event loop run; Python's own default is ten times that."""
FULL_WHEN_QUIET: Final = 10
"""Collections of the middle generation after which a full one is due; Python's own default."""
FULL_EVERY: Final = 50
"""The same for a process that is never quiet."""
LOOK_S: Final = 1.0
QUIET_SHARE: Final = 0.1
"""A process that used less than this share of a processor since the last look is quiet."""
MANY: Final = 5_000
"""New containers after which it's worth leaving them out of later collections."""
_ARENA_MAX: Final = -8
_MMAP_THRESHOLD: Final = -3
"""Numbers of glibc's ``mallopt``."""
_MAPPED_FROM_BYTES: Final = 128 * 1024
_lock = threading.Lock()
_builders = 0


@contextmanager
def building() -> Iterator[None]:
    """Build values that stay, in any thread: no collection runs meanwhile, and none walks them afterwards.

    They are still freed when nothing refers to them; only garbage in cycles that was made at the same time stays.
    """
    _enter()
    try:
        yield
    finally:
        _leave()


def _enter() -> None:
    global _builders
    with _lock:
        _builders += 1
        if gc.isenabled():
            gc.disable()


def _leave() -> None:
    global _builders
    with _lock:
        _builders -= 1
        if _builders == 0:
            if gc.get_count()[0] > MANY:
                gc.freeze()
            gc.enable()


def _keep_one_heap() -> None:
    """Have all threads share one heap of glibc's, and map large blocks apart: what a thread's own heap once had stays.

    Other C libraries have no such heaps, and no ``mallopt``.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, TypeError, AttributeError):
        return
    mallopt(_ARENA_MAX, 1)
    mallopt(_MMAP_THRESHOLD, _MAPPED_FROM_BYTES)


@contextmanager
def responsive_process() -> Iterator[None]:
    """Tune the process for an event loop beside threads that compute; undone at the end of the block, but for the heap.

    A full collection doesn't interrupt work before ``FULL_EVERY`` of the middle generation; see
    ``full_collections_when_quiet``.
    """
    _keep_one_heap()
    interval, thresholds = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(SWITCH_S)
    gc.collect()
    gc.freeze()
    gc.set_threshold(thresholds[0], thresholds[1], FULL_EVERY)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()
        sys.setswitchinterval(interval)


@asynccontextmanager
async def full_collections_when_quiet(processor_s: Callable[[], float] = time.process_time) -> AsyncIterator[None]:
    """Run the full collections that are due whenever the process has nothing else to do, until the block ends.

    Args:
        processor_s: seconds of processor time that the process has used.
    """
    async with open_service_nursery() as nursery:
        nursery.start_soon(_collect_when_quiet, processor_s)
        yield


async def _collect_when_quiet(processor_s: Callable[[], float]) -> None:
    while True:
        used_s = processor_s()
        await trio.sleep(LOOK_S)
        is_quiet = processor_s() - used_s < LOOK_S * QUIET_SHARE
        if is_quiet and gc.isenabled() and gc.get_count()[2] >= FULL_WHEN_QUIET:
            gc.collect()
