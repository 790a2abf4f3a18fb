"""The collector around values that stay, and the tuning of a process."""

import gc
import platform
import subprocess
import sys

import pytest
import trio
from trio.testing import MockClock

from tapster.runtime import building, full_collections_when_quiet, responsive_process
from tapster.runtime.memory import FULL_EVERY, FULL_WHEN_QUIET, LOOK_S, MANY, SWITCH_S


def test_no_collection_runs_while_something_is_built_even_by_two_at_once() -> None:
    assert gc.isenabled()
    with building():
        with building():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_what_was_built_is_left_out_of_later_collections_and_still_freed() -> None:
    before = gc.get_freeze_count()
    try:
        with building():
            kept = [[number] for number in range(2 * MANY)]
        frozen = gc.get_freeze_count()
        assert frozen - before >= 2 * MANY
        del kept
        assert frozen - gc.get_freeze_count() >= 2 * MANY
    finally:
        gc.unfreeze()


def test_little_is_not_worth_it() -> None:
    gc.collect()
    before = gc.get_freeze_count()
    with building():
        kept = [[number] for number in range(10)]
    assert gc.get_freeze_count() == before
    assert len(kept) == 10


HEAPS = """
import contextlib, ctypes, sys, threading
from tapster.runtime import responsive_process

def work():
    kept = [bytes(2_000) for _ in range(100)]
    gate.wait()

with responsive_process() if sys.argv[1] == "tuned" else contextlib.nullcontext():
    gate = threading.Barrier(4)
    threads = [threading.Thread(target=work) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
c = ctypes.CDLL(None)
c.fopen.restype = ctypes.c_void_p
c.malloc_info(0, ctypes.c_void_p(c.fopen(b"/dev/stdout", b"w")))
c.fflush(None)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has a heap for each thread")
def test_threads_share_one_heap() -> None:
    def heaps(kind: str) -> int:
        ran = subprocess.run([sys.executable, "-c", HEAPS, kind], capture_output=True, text=True, check=True)
        return ran.stdout.count("<heap nr=")

    assert heaps("tuned") == 1
    assert heaps("plain") > 1


def test_the_tuning_of_a_process_is_undone() -> None:
    before, thresholds = sys.getswitchinterval(), gc.get_threshold()
    with responsive_process():
        assert gc.get_threshold() == (*thresholds[:2], FULL_EVERY)
        assert sys.getswitchinterval() == pytest.approx(SWITCH_S)
        assert gc.get_freeze_count() > 0
    assert sys.getswitchinterval() == before
    assert gc.get_freeze_count() == 0
    assert gc.get_threshold() == thresholds


@pytest.mark.parametrize(("processor_share", "is_collected"), [(0.0, True), (0.5, False)])
async def test_a_full_collection_that_is_due_waits_for_a_quiet_moment(
    autojump_clock: MockClock, processor_share: float, is_collected: bool
) -> None:
    with responsive_process():
        gc.collect()
        async with full_collections_when_quiet(lambda: trio.current_time() * processor_share):
            await trio.sleep(3 * LOOK_S)
            for _ in range(FULL_WHEN_QUIET):
                gc.collect(1)
            due = gc.get_count()[2]
            assert due >= FULL_WHEN_QUIET
            await trio.sleep(3 * LOOK_S)
            assert (gc.get_count()[2] < due) is is_collected
