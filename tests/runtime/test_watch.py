"""Watched values, service nurseries and phases under random interleavings."""

import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from tapster.runtime import Draining, Lifecycle, Phase, Watched, open_service_nursery


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0.0, 0.0, 1.0])), max_size=20),
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0.0, 0.5, 2.0])), max_size=6),
)
def test_what_was_waited_for_holds_and_no_wake_up_is_lost(
    changes: list[tuple[int, float]], waits: list[tuple[int, float]]
) -> None:
    async def main() -> None:
        value = Watched(0)
        reached = set()

        async def waiter(number: int, wanted: int, start_s: float) -> None:
            await trio.sleep(start_s)
            found = await value.wait_value(lambda now: now == wanted)
            assert found == wanted
            assert value.value == wanted, "it still holds when the wait returns"
            reached.add(number)

        async with trio.open_nursery() as nursery:
            for number, (wanted, start_s) in enumerate(waits):
                nursery.start_soon(waiter, number, wanted, start_s)
            for now, pause_s in changes:
                value.set(now)
                await trio.sleep(pause_s)
            for final in range(4):
                # Every value comes at last and stays for a while: whoever waits for it must notice.
                value.set(final)
                await trio.sleep(10)
            assert reached == set(range(len(waits)))

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 4), st.sampled_from(["ends", "is cancelled", "fails"]), st.sampled_from([0.0, 0.1, 0.5]))
def test_helpers_outlive_their_users(helpers: int, how: str, late_s: float) -> None:
    async def main() -> None:
        serving = 0

        async def helper() -> None:
            nonlocal serving
            serving += 1
            try:
                await trio.sleep_forever()
            finally:
                serving -= 1

        async def use() -> None:
            async with open_service_nursery() as services:
                for _ in range(helpers):
                    services.start_soon(helper)
                await trio.testing.wait_all_tasks_blocked()
                try:
                    if how == "fails":
                        raise KeyError("the body")
                    await trio.sleep(1 if how == "ends" else 100)
                finally:
                    with trio.CancelScope(shield=True):
                        await trio.sleep(late_s)
                    assert serving == helpers, "they still serve while their user cleans up"

        with trio.move_on_after(10):
            if how == "fails":
                with pytest.RaisesGroup(KeyError):
                    await use()
            else:
                await use()
        assert serving == 0

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


@given(st.lists(st.sampled_from(list(Phase)), max_size=10))
def test_a_phase_only_moves_forward(phases: list[Phase]) -> None:
    lifecycle = Lifecycle()
    order = list(Phase)
    furthest = 0
    for phase in phases:
        lifecycle.advance(phase)
        furthest = max(furthest, order.index(phase))
        assert lifecycle.phase.value is order[furthest]
        if furthest >= order.index(Phase.DRAINING):
            with pytest.raises(Draining):
                lifecycle.admit()
        else:
            lifecycle.admit()
