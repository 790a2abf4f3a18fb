"""Keeps Python's collector and its interpreter lock from stalling the event loop of a process with large data.

A full collection walks every container there is while nothing else runs: hundreds of milliseconds with a few large
books in memory. So values that stay are built with the collector paused and are then left out of what it walks.
"""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

SWITCH_S: Final = 0.001
"""After so long a thread that computes lets the event loop run; Python's own default is five times that."""
MANY: Final = 5_000
"""New containers after which it's worth leaving them out of later collections."""
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


@contextmanager
def responsive_process() -> Iterator[None]:
    """Tune the process for an event loop beside threads that compute; undone at the end of the block."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_S)
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        sys.setswitchinterval(before)
