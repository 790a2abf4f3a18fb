"""Resolving sources at once: bad sources, cancellation from everywhere, nothing left behind."""

import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib import metadata
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tapster.actors.sources import (
    GRACE_S,
    FakeSource,
    Home,
    Source,
    SourceDeaf,
    SourceGone,
    SourcePlugin,
    Sources,
    SourceTimeout,
    assemble,
    load_plugins,
    open_sources,
    remote_source,
)
from tapster.engine.assembly import (
    AssemblyResult,
    RenderInput,
    RequestContext,
    Rule,
    Strategy,
    StrategyResult,
    freeze_context,
    normalise_preset,
)
from tapster.engine.errors import TapsterError
from tapster.runtime import Threads
from tests.support.assembly import HEAD
from tests.support.cancel import cancel_everywhere, task_count

Json = Any


def context(*source_ids: str, **more: Json) -> RequestContext:
    rules = [{"id": f"r{index}", "kind": source_id} for index, source_id in enumerate(source_ids)]
    return freeze_context(normalise_preset({**HEAD, "rules": rules}), [], **more)


def texts(result: AssemblyResult) -> list[str]:
    return [message["content"][0]["text"] for message in result.messages]


@asynccontextmanager
async def open_with(*given: object) -> AsyncIterator[Sources]:
    async with open_sources() as sources:
        for source in given:
            sources.add(source)
        yield sources


async def refused(sources: Sources, asked: RequestContext) -> TapsterError:
    with pytest.raises(TapsterError) as raised:
        await assemble(sources, asked)
    return raised.value


async def test_sources_run_at_once_and_count_in_rule_order(autojump_clock: MockClock) -> None:
    slow, quick = FakeSource("slow", "one", delay=5), FakeSource("quick", "two", delay=3)
    async with open_with(slow, quick) as sources:
        result = await assemble(sources, context("slow", "quick"))
    assert texts(result) == ["one", "two"]
    assert trio.current_time() == pytest.approx(5)


async def test_a_dependency_ends_before_what_depends_on_it(autojump_clock: MockClock) -> None:
    first = FakeSource("first", delay=2)
    second = FakeSource("second", delay=2, dependencies=("first",))
    async with open_with(first, second) as sources:
        await assemble(sources, context("second", "first"))
    assert trio.current_time() == pytest.approx(4)


async def test_the_first_failure_cancels_the_others(autojump_clock: MockClock) -> None:
    slow, broken = FakeSource("slow", delay=100), FakeSource("broken", delay=1, fail_at=0)
    async with open_with(slow, broken) as sources:
        error = await refused(sources, context("slow", "broken"))
        assert (error.code, error.details["sourceId"]) == ("SOURCE_FAILED", "broken")
        assert isinstance(error.__cause__, ValueError)
        assert (slow.calls, slow.ended) == (1, 1)
    assert trio.current_time() == pytest.approx(1)


async def test_of_failures_at_once_the_first_in_rule_order_is_told(autojump_clock: MockClock) -> None:
    given = [FakeSource(name, delay=1, fail_at=0) for name in ("b", "a", "c")]
    async with open_with(*given) as sources:
        error = await refused(sources, context("a", "b", "c"))
    assert error.details["sourceId"] == "a"


@pytest.mark.parametrize(
    ("bad", "code", "seconds"),
    [
        (FakeSource("bad", hang=True, deadline_s=7), "SOURCE_TIMEOUT", 7),
        (FakeSource("bad", shielded_s=7.5, deadline_s=7), "SOURCE_TIMEOUT", 7.5),
        (FakeSource("bad", fail_at=1), "SOURCE_FAILED", 0),
        (FakeSource("bad", huge=True), "SOURCE_OUTPUT_TOO_LARGE", 0),
        (FakeSource("bad", lying=True), "SOURCE_BLOCKS_INVALID", 0),
        (FakeSource("bad", fail_at=1, error=SourceGone("x", "declared")), "SOURCE_GONE", 0),
        (FakeSource("bad", fail_at=1, error=ExceptionGroup("many", [ValueError()])), "SOURCE_FAILED", 0),
    ],
)
async def test_bad_sources_are_survived_with_the_right_code(
    autojump_clock: MockClock, bad: FakeSource, code: str, seconds: float
) -> None:
    async with open_with(bad, FakeSource("good", "fine")) as sources:
        error = await refused(sources, context("good", "bad"))
        assert error.code == code
        assert trio.current_time() == pytest.approx(seconds)
        assert texts(await assemble(sources, context("good"))) == ["fine"]


async def test_a_deaf_source_costs_a_second_and_is_refused_until_it_ends(autojump_clock: MockClock) -> None:
    deaf = FakeSource("deaf", "heard", deaf=True, deadline_s=5)
    async with open_with(deaf) as sources:
        error = await refused(sources, context("deaf"))
        assert isinstance(error, SourceDeaf)
        assert trio.current_time() == pytest.approx(5 + GRACE_S)
        assert sources.statistics()[0].strays == 1
        assert isinstance(await refused(sources, context("deaf")), SourceDeaf)
        assert deaf.calls == 1
        deaf.release()
        await trio.testing.wait_all_tasks_blocked()
        assert sources.statistics()[0].strays == 0
        assert texts(await assemble(sources, context("deaf"))) == ["heard"]


async def test_leaving_a_registration_ends_its_calls_and_refuses_their_requests(autojump_clock: MockClock) -> None:
    hanging = FakeSource("hanging", hang=True)
    errors: list[TapsterError] = []

    async def ask(sources: Sources) -> None:
        errors.append(await refused(sources, context("hanging")))

    async with open_sources() as sources, trio.open_nursery() as nursery:
        async with sources.registered(hanging):
            nursery.start_soon(ask, sources)
            await trio.testing.wait_all_tasks_blocked()
        assert hanging.ended == 1
        assert sources.registry.descriptors() == []
    assert [error.code for error in errors] == ["SOURCE_GONE"]


async def test_a_plain_disposer_cancels_nothing(autojump_clock: MockClock) -> None:
    slow = FakeSource("slow", "kept", delay=5)
    async with open_sources() as sources, trio.open_nursery() as nursery:
        dispose = sources.add(slow)

        async def ask() -> None:
            assert texts(await assemble(sources, context("slow"))) == ["kept"]

        nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        before = sources.revision.value
        dispose()
        assert sources.revision.value == before + 1


async def test_a_lost_lease_refuses_after_the_last_source_and_at_hand_over(autojump_clock: MockClock) -> None:
    checks: list[int] = []

    def lease(fails_at: int) -> Callable[[], None]:
        checks.clear()

        def check() -> None:
            checks.append(len(checks))
            if len(checks) == fails_at:
                raise TapsterError("changed", code="LEASE_LOST", status=409)

        return check

    async with open_with(FakeSource()) as sources:
        for fails_at in (1, 2):
            with pytest.raises(TapsterError) as raised:
                await assemble(sources, context("fake"), lease=lease(fails_at))
            assert raised.value.code == "LEASE_LOST"
            assert len(checks) == fails_at
        await assemble(sources, context("fake"), lease=lease(3))


class Broken(Source):
    """Answers, and fails in a hook."""

    id = "broken"
    plugin_id = "test.plugin"
    name = "Broken"

    async def resolve(self, context: RequestContext, rule: Rule) -> Json:
        return {"blocks": [{"type": "text", "id": "a", "text": "A"}]}

    def render_text(self, given: RenderInput) -> str:
        raise ZeroDivisionError


async def test_an_error_in_a_hook_names_its_source() -> None:
    async with open_with(Broken()) as sources:
        error = await refused(sources, context("broken"))
    assert (error.code, error.details["sourceId"]) == ("SOURCE_FAILED", "broken")


def blocking_source(seconds: float) -> object:
    class Blocking(Source):
        id = "blocking"
        plugin_id = "test.plugin"
        name = "Blocking"

        def resolve(self, context: RequestContext, rule: Rule) -> Json:
            trio.from_thread.check_cancelled()
            return {"blocks": [{"type": "text", "id": "a", "text": f"{seconds:g}"}]}

    return Blocking()


async def test_synchronous_sources_run_in_a_thread() -> None:
    async with open_sources(Threads("sources", 2)) as sources:
        sources.add(blocking_source(1))
        assert texts(await assemble(sources, context("blocking"))) == ["1"]


async def test_work_that_never_ends_costs_its_deadline_and_not_the_wait_for_a_thread() -> None:
    release = threading.Event()
    ends: list[str] = []

    async with open_sources(Threads("sources", 1)) as sources, trio.open_nursery() as nursery:

        async def stuck() -> None:
            with pytest.raises(SourceTimeout):
                await sources.run(release.wait, 0.02)
            ends.append("stuck")
            release.set()

        nursery.start_soon(stuck)
        await trio.testing.wait_all_tasks_blocked()
        await sources.run(lambda: ends.append("behind"), 0.02)
    assert ends == ["stuck", "behind"]


# Cancellation: every origin x every phase x every kind of source

KINDS = {
    "quick": dict[str, Json](delay=0.1),
    "slow": dict[str, Json](delay=50),
    "shielded": dict[str, Json](shielded_s=0.5),
    "deaf": dict[str, Json](deaf=True),
}
PHASES = {"starting": 0.0, "resolving": 0.05, "second": 0.15}
"""When the cancel comes; in ``second`` a dependency has ended and its dependant runs."""
Cancel = Callable[[Sources, trio.CancelScope, Home], None]


def by_scope(reason: str) -> Cancel:
    def cancel(sources: Sources, scope: trio.CancelScope, home: Home) -> None:
        scope.cancel(reason=reason)

    return cancel


def by_unregistering(sources: Sources, scope: trio.CancelScope, home: Home) -> None:
    home.close()


def by_shutdown(sources: Sources, scope: trio.CancelScope, home: Home) -> None:
    sources.close()


ORIGINS: dict[str, Cancel] = {
    "HTTP client gone": by_scope("disconnected"),
    "WebSocket closed": by_scope("closed"),
    "host cancel frame": by_scope("cancel frame"),
    "turn aborted": by_scope("aborted"),
    "session closed": by_scope("session closed"),
    "source unregistered": by_unregistering,
    "shutdown": by_shutdown,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("origin", ORIGINS)
async def test_cancelling_leaves_nothing(autojump_clock: MockClock, origin: str, phase: str, kind: str) -> None:
    before = task_count()
    first = FakeSource("first", delay=0.1)
    second = FakeSource("second", dependencies=("first",), **KINDS[kind])
    other = FakeSource("other", **KINDS[kind])
    ends: list[str] = []
    ended_at: list[float] = []
    cancelled_at: list[float] = []

    async def ask(sources: Sources, scope: trio.CancelScope) -> None:
        with scope:
            try:
                await assemble(sources, context("second", "other"))
            except TapsterError as error:
                ends.append(error.code)
            else:
                ends.append("done")
        if scope.cancelled_caught:
            ends.append("cancelled")
        ended_at.append(trio.current_time())

    async with open_sources() as sources:
        sources.add(first)
        sources.add(second)
        async with sources.registered(other) as home, trio.open_nursery() as nursery:
            scope = trio.CancelScope()
            nursery.start_soon(ask, sources, scope)
            await trio.sleep(PHASES[phase])
            cancelled_at.append(trio.current_time())
            ORIGINS[origin](sources, scope, home)
            await trio.sleep(2)
            waited = {"quick": 0.1, "slow": 0, "shielded": 0.5, "deaf": GRACE_S}[kind]
            running = task_count_of_calls(sources, home)
            strays = sum(each.strays for each in all_statistics(sources, home))
            # Before any assertion: a failed one must not leave deaf calls that nobody ends.
            second.release()
            other.release()
            await trio.testing.wait_all_tasks_blocked()
            if ends != ["done"]:
                assert ended_at[0] - cancelled_at[0] <= waited + 0.01
                assert ends[0] in ("cancelled", "SOURCE_GONE", "SOURCE_DEAF")
            assert running == strays == (0 if kind != "deaf" else strays)
            assert task_count_of_calls(sources, home) == 0
            nursery.cancel_scope.cancel()
    assert [source.calls for source in (first, second, other)] == [source.ended for source in (first, second, other)]
    assert task_count() == before


LATE_PHASES = {"before placing": 1, "handing over": 2}
"""Which check of the lease the cancel comes in: behind the last source, or with the finished request in hand."""


@pytest.mark.parametrize("kind", ["quick", "slow", "shielded"])
@pytest.mark.parametrize("phase", LATE_PHASES)
@pytest.mark.parametrize("origin", ORIGINS)
async def test_cancelling_behind_the_sources_leaves_nothing(
    autojump_clock: MockClock, origin: str, phase: str, kind: str
) -> None:
    before = task_count()
    fake = FakeSource("other", **KINDS[kind] | ({"delay": 1} if kind == "slow" else {}))
    ends: list[str] = []
    checks = 0
    async with open_sources() as sources, sources.registered(fake) as home:
        scope = trio.CancelScope()

        def lease() -> None:
            nonlocal checks
            checks += 1
            if checks == LATE_PHASES[phase]:
                ORIGINS[origin](sources, scope, home)

        with scope:
            try:
                await assemble(sources, context("other"), lease=lease)
                ends.append("done")
            except TapsterError as error:
                ends.append(error.code)
        if scope.cancelled_caught:
            ends.append("cancelled")
        await trio.testing.wait_all_tasks_blocked()
        assert task_count_of_calls(sources, home) == 0
        assert checks >= LATE_PHASES[phase]
        assert ends in (["done"], ["cancelled"], ["SOURCE_GONE"])
        if phase == "before placing" and ORIGINS[origin] not in (by_unregistering, by_shutdown):
            assert ends == ["cancelled"]
    assert fake.calls == fake.ended
    assert task_count() == before


def all_statistics(sources: Sources, home: Home) -> list[Json]:
    return list({each.source_id: each for each in [*sources.statistics(), home.statistics()]}.values())


def task_count_of_calls(sources: Sources, home: Home) -> int:
    return sum(each.running for each in all_statistics(sources, home))


async def test_an_assembly_may_be_cancelled_at_every_step() -> None:
    before = task_count()
    given: list[FakeSource] = []

    async def operation() -> None:
        given[:] = [FakeSource("a"), FakeSource("b", dependencies=("a",)), FakeSource("c")]
        async with open_sources() as sources:
            sources.add(given[0])
            sources.add(given[1])
            async with sources.registered(given[2]):
                await assemble(sources, context("b", "c"))

    async def check(cancelled: bool) -> None:
        assert task_count() == before
        assert all(source.calls == source.ended for source in given)

    assert await cancel_everywhere(operation, check, any_task=True) > 10


# Plug-ins and remote sources


class Caller:
    """A peer's sources, in this process."""

    def __init__(self, answer: Callable[[], Awaitable[Json]]) -> None:
        self.answer = answer
        self.asked: list[Json] = []

    async def resolve(self, source_id: str, context: Json, rule: Json) -> Json:
        self.asked.append((source_id, context, rule))
        return await self.answer()

    async def parse_text(self, source_id: str, context: Json, rule: Json) -> Json:
        self.asked.append((source_id, context, rule))
        return {"blocks": [{"type": "text", "id": "t", "text": rule["text"]}]}


async def test_a_remote_source_is_a_source(autojump_clock: MockClock) -> None:
    async def answer() -> Json:
        await trio.sleep(1)
        return {"blocks": [{"type": "text", "id": "a", "text": "from afar"}]}

    caller = Caller(answer)
    described = {"id": "far", "pluginId": "peer", "name": "Far", "acceptsText": True, "roles": ["system"]}
    rules = [{"id": "m", "kind": "far", "role": "system"}]
    rules.append({"id": "t", "kind": "far", "role": "system", "inputMode": "text", "text": "typed"})
    async with open_with(remote_source(caller, described)) as sources:
        asked = freeze_context(normalise_preset({**HEAD, "rules": rules}), [], session_id="s1", assets={"x": [1]})
        assert texts(await assemble(sources, asked)) == ["from afar", "typed"]
    source_id, sent, rule = next(asked for asked in caller.asked if asked[2]["id"] == "m")
    assert (source_id, sent["sessionId"], sent["assets"], rule["id"]) == ("far", "s1", {"x": [1]}, "m")
    sent["assets"]["x"].append(2)
    assert asked.assets["x"] == [1]


async def test_a_remote_answer_that_is_no_output_is_refused() -> None:
    async def answer() -> Json:
        return [1, 2]

    async with open_with(remote_source(Caller(answer), {"id": "far", "pluginId": "p", "name": "Far"})) as sources:
        assert (await refused(sources, context("far"))).code == "SOURCE_BLOCKS_INVALID"


PLUGIN = SourcePlugin(
    sources=(FakeSource("plug"),),
    strategies=(Strategy("x.plug", "tapster.fake", ("插", "Plug"), lambda given: StrategyResult([])),),
    presets=({**HEAD, "id": "plug-preset", "rules": []},),
)
HALF = SourcePlugin(sources=(FakeSource("half"), FakeSource("half")))


async def test_plugins_are_loaded_whole_or_not_at_all() -> None:
    points = [
        metadata.EntryPoint(name, f"{__name__}:{value}", "tapster.sources")
        for name, value in (("good", "PLUGIN"), ("half", "HALF"), ("gone", "NOTHING"), ("class", "Broken"))
    ]
    async with open_sources() as sources:
        good, half, gone, made = load_plugins(sources, points)
        assert (good.source_ids, good.strategy_ids, good.error) == (("plug",), ("x.plug",), None)
        assert good.presets[0]["id"] == "plug-preset"
        assert half.error is not None
        assert half.error.startswith("SOURCE_DUPLICATE")
        assert gone.error is not None
        assert made.source_ids == ("broken",)
        assert [each["id"] for each in sources.registry.descriptors()] == ["plug", "broken"]


async def test_a_deadline_is_told_apart_from_a_closed_registration(autojump_clock: MockClock) -> None:
    async with open_with(FakeSource(hang=True, deadline_s=1)) as sources:
        assert isinstance(await refused(sources, context("fake")), SourceTimeout)
