"""The script worker actor: answers, budgets, cancellation, no leaks. Real threads, so real time."""

import resource
import threading

import pytest
import trio

from tapster.actors.scripts import RenderTemplate, Scripts, ScriptWorker
from tapster.engine.text.ports import InvalidPattern, ScriptBudgetExceeded
from tapster.engine.text.templates import TemplateBook, TemplateData, TemplateEntry, TemplateError
from tapster.runtime import open_actor
from tests.support.hostile import PATTERNS, TEMPLATES, TEXT

DATA = TemplateData((TemplateBook("b", "B", (TemplateEntry("1", "Inn", "warm"),)),))


async def test_answers_and_declared_errors() -> None:
    async with open_actor(ScriptWorker()) as ref:
        scripts = Scripts(ref)
        assert [match.text for match in await scripts.find_all("(?=b)b", "g", "ab b")] == ["b", "b"]
        assert await scripts.render(RenderTemplate("<%- await getwi('Inn') %>", "t", {}, DATA)) == "warm"
        await scripts.check_pattern("a+")
        with pytest.raises(InvalidPattern):
            await scripts.check_pattern("(")
        with pytest.raises(TemplateError, match="t:1:4"):
            await scripts.render(RenderTemplate("<% nope() %>", "t"))


async def test_hostile_work_is_answered_and_others_go_on() -> None:
    worker = ScriptWorker(threads=2, regex_budget_ms=20, template_budget_ms=20)
    caught: list[str] = []

    async def hostile(pattern: str) -> None:
        try:
            await scripts.find_all(pattern, "g", TEXT, owner=pattern)
        except ScriptBudgetExceeded as error:
            caught.append(str(error.details["owner"]))

    async def endless(source: str) -> None:
        try:
            await scripts.render(RenderTemplate(source, source))
        except TemplateError as error:
            caught.append(str(error.details["template"]))

    async with open_actor(worker) as ref:
        scripts = Scripts(ref)
        async with trio.open_nursery() as nursery:
            for pattern in PATTERNS[:8]:
                nursery.start_soon(hostile, pattern)
            for source in TEMPLATES[:4]:
                nursery.start_soon(endless, source)
            assert await scripts.find_all("(?=b)b", "g", "ab")
        assert worker.script_statistics().running == 0
    # The CPU clock is the process's: two threads at once may be stopped early, but none goes unanswered.
    assert sorted(caught) == sorted([*PATTERNS[:8], *TEMPLATES[:4]])


async def test_an_asker_that_leaves_is_free_at_once_and_the_thread_ends_by_its_budget() -> None:
    worker = ScriptWorker(threads=1, regex_budget_ms=1000)
    async with open_actor(worker) as ref:
        scripts = Scripts(ref)
        with trio.move_on_after(0.02):
            await scripts.find_all(PATTERNS[0], "g", TEXT)
        assert worker.script_statistics().running == 1
        assert await scripts.find_all("(?=b)b", "g", "ab")
    assert worker.script_statistics().running == 0


async def test_closing_waits_for_a_thread_that_was_left_alone() -> None:
    worker = ScriptWorker(threads=1, template_budget_ms=60)
    async with open_actor(worker) as ref:
        with trio.move_on_after(0.01):
            await Scripts(ref).render(RenderTemplate(TEMPLATES[0], "endless"))
    assert worker.script_statistics().running == 0


async def test_a_lookup_after_cancellation_is_not_answered() -> None:
    source = "<% for (let i = 0; i < 500; i++) await getwi('Inn') %>"
    worker = ScriptWorker(threads=1, template_budget_ms=2000)
    async with open_actor(worker) as ref:
        with trio.CancelScope() as scope:
            scope.cancel()
            await Scripts(ref).render(RenderTemplate(source, "t", {}, DATA))
        assert scope.cancelled_caught
        assert await Scripts(ref).render(RenderTemplate("ok", "t")) == "ok"


async def test_hundreds_of_hostile_runs_leave_nothing_behind() -> None:
    worker = ScriptWorker(threads=2, regex_budget_ms=1, template_budget_ms=3)
    async with open_actor(worker) as ref:
        scripts = Scripts(ref)

        async def some(count: int) -> None:
            for index in range(count):
                with pytest.raises((ScriptBudgetExceeded, TemplateError)):
                    if index % 2:
                        await scripts.find_all(PATTERNS[index % len(PATTERNS)], "g", TEXT)
                    else:
                        await scripts.render(RenderTemplate(TEMPLATES[0], "t"))

        await some(50)
        threads, memory = threading.active_count(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        await some(200)
        assert threading.active_count() <= threads + 1
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory < 20 * 1024  # KiB
        assert worker.script_statistics().running == 0
