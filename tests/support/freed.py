"""What waits for a collection of cycles."""

import gc
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def objects_of_ours_in_cycles() -> Iterator[Counter[str]]:
    """Counts by type, filled when the block ends, of Tapster's objects that only a collection would have freed."""
    left: Counter[str] = Counter()
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        yield left
        gc.collect()
        left.update(type(each).__qualname__ for each in gc.garbage if type(each).__module__.startswith("tapster."))
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
