"""Cancel an operation at its 1st, 2nd, 3rd ... step, until it gets through."""

from collections.abc import Awaitable, Callable

import attrs
import trio


@attrs.define(eq=False)
class CancelAtStep(trio.abc.Instrument):
    """Cancels ``scope`` when ``task`` (any task, if None) is about to take its n-th step."""

    n: int
    scope: trio.CancelScope
    task: trio.lowlevel.Task | None
    steps: int = 0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        """Count, and cancel when it is time."""
        if self.task is None or task is self.task:
            self.steps += 1
            if self.steps == self.n:
                self.scope.cancel(reason=f"step {self.n}")


async def cancel_everywhere(
    operation: Callable[[], Awaitable[object]],
    check: Callable[[bool], Awaitable[None]],
    *,
    any_task: bool = False,
    limit: int = 1_000,
) -> int:
    """Run an operation again and again, cancelled one step later each time; how many runs it took.

    Args:
        operation: a whole scenario, set up and torn down within it.
        check: called after each run with whether the operation was cancelled; raises when something is left over.
        any_task: count the steps of every task, not only of the one that runs the operation.
        limit: give up after so many runs.
    """
    for n in range(1, limit):
        with trio.CancelScope() as scope:
            instrument = CancelAtStep(n, scope, None if any_task else trio.lowlevel.current_task())
            trio.lowlevel.add_instrument(instrument)
            try:
                await operation()
            finally:
                trio.lowlevel.remove_instrument(instrument)
        await check(scope.cancelled_caught)
        if instrument.steps < n:
            return n
    raise AssertionError(f"the operation still wasn't through after {limit} runs")


def task_count() -> int:
    """Tasks alive now, the root's own included."""

    def below(task: trio.lowlevel.Task) -> int:
        return 1 + sum(below(child) for nursery in task.child_nurseries for child in nursery.child_tasks)

    root = trio.lowlevel.current_root_task()
    assert root is not None
    return below(root)
