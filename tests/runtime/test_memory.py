"""The collector around values that stay, and the tuning of a process."""

import gc
import sys

from tapster.runtime import building, responsive_process
from tapster.runtime.memory import MANY, SWITCH_S


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


def test_the_tuning_of_a_process_is_undone() -> None:
    before = sys.getswitchinterval()
    with responsive_process():
        assert sys.getswitchinterval() == SWITCH_S
        assert gc.get_freeze_count() > 0
    assert sys.getswitchinterval() == before
    assert gc.get_freeze_count() == 0
