"""The script workers: patterns and templates run in threads, each within its budget, cancelled with their asker.

A leaf of the actor tree (design §4 rule 11). The threads keep their JavaScript contexts warm; one that ran into a
limit is replaced. An asker that leaves has its answer at once: the thread is left to its budget, keeps its slot until
it ends, and hands its result to nobody.
"""

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, ClassVar, TypeVar

import attrs
import trio

from tapster.engine import limits
from tapster.engine.text.ports import InvalidPattern, RegexMatch, ScriptBudgetExceeded
from tapster.engine.text.templates import (
    Surroundings,
    TemplateData,
    TemplateError,
    render_template,
)
from tapster.runtime import Actor, Child, Ref, Request, Threads, ThreadStatistics, check_cancelled

from .quickjs import open_regex_engine
from .templates import QuickJsTemplateEngine

Json = Any
T = TypeVar("T")
SCRIPT_THREADS = 2
"""Threads for scripts: as many as there are cores on a small machine; what waits is in the inbox."""


@attrs.frozen
class CheckPattern:
    """Is this a JavaScript pattern? Answered with None, or ``InvalidPattern``."""

    pattern: str
    flags: str


@attrs.frozen
class FindMatches:
    """Every match of a pattern in a text."""

    pattern: str
    flags: str
    text: str
    owner: str = ""


@attrs.frozen
class RenderTemplate:
    """The output of a template over frozen data."""

    source: str
    name: str
    variables: Json = attrs.field(factory=dict)
    data: TemplateData = attrs.field(factory=TemplateData)
    surroundings: Surroundings = attrs.field(factory=Surroundings)


@attrs.frozen
class ScriptStatistics:
    """A reading: slots in use, runs; scripts at work, left-alone ones included; how many ended over their budget."""

    threads: ThreadStatistics
    running: int
    over_budget: int


class _Running:
    """How many threads are at work, those included whose asker has left; counted in the threads themselves."""

    def __init__(self) -> None:
        self.count = 0
        self._none = trio.Event()
        self._lock = threading.Lock()

    def counted(self, work: Callable[[], T]) -> Callable[[], T]:
        token = trio.lowlevel.current_trio_token()

        def run() -> T:
            with self._lock:
                self.count += 1
            try:
                return work()
            finally:
                with self._lock:
                    self.count -= 1
                with suppress(trio.RunFinishedError):
                    token.run_sync_soon(self._notice)

        return run

    def _notice(self) -> None:
        self._none.set()
        self._none = trio.Event()

    async def wait_none(self) -> None:
        """Wait until no thread is at work."""
        while self.count:
            await self._none.wait()
        await trio.lowlevel.checkpoint()


class ScriptWorker(Actor):
    """The actor that owns the script threads."""

    name = "scripts"
    declared: ClassVar[tuple[type[Exception], ...]] = (InvalidPattern, ScriptBudgetExceeded, TemplateError)

    def __init__(
        self,
        *,
        threads: int | Threads = SCRIPT_THREADS,
        regex_budget_ms: float = limits.REGEX_BUDGET_MS,
        template_budget_ms: float = limits.TEMPLATE_BUDGET_MS,
    ) -> None:
        # A pool that is given serves all incarnations.
        self._threads = threads if isinstance(threads, Threads) else Threads("scripts", threads)
        self._regex = open_regex_engine(budget_ms=regex_budget_ms)
        self._templates = QuickJsTemplateEngine(budget_ms=template_budget_ms)
        self._over_budget = 0
        self._running = _Running()

    def receive(self, request: Request) -> None:
        """Serve every message by a task of its own."""
        body = request.body
        if isinstance(body, CheckPattern):
            self.start(request, self._run, lambda: self._regex.check(body.pattern, body.flags))
        elif isinstance(body, FindMatches):
            self.start(request, self._run, lambda: self._find(body))
        elif isinstance(body, RenderTemplate):
            self.start(request, self._run, lambda: self._render(body))
        else:
            raise TypeError(f"script workers take no {type(body).__name__}")

    async def close(self) -> None:
        """Wait for threads that were left alone; each ends within its budget, the grace is the kernel's."""
        await self._running.wait_none()

    def script_statistics(self) -> ScriptStatistics:
        """A reading for introspection."""
        return ScriptStatistics(self._threads.statistics(), self._running.count, self._over_budget)

    async def _run(self, work: Callable[[], T]) -> T:
        try:
            return await self._threads.run(self._running.counted(work), abandon_on_cancel=True)
        except ScriptBudgetExceeded:
            self._over_budget += 1
            raise
        except TemplateError as error:
            self._over_budget += error.code == "TEMPLATE_EXECUTION_LIMIT"
            raise

    def _find(self, body: FindMatches) -> Sequence[RegexMatch]:
        return self._regex.find_all(body.pattern, body.flags, body.text, owner=body.owner)

    def _render(self, body: RenderTemplate) -> str:
        return render_template(
            body.source,
            body.variables,
            body.data.resolver(self._regex),
            self._templates,
            name=body.name,
            surroundings=body.surroundings,
            checkpoint=check_cancelled,
        )


@attrs.frozen
class Scripts:
    """The typed face of a script worker."""

    ref: Ref | Child

    async def check_pattern(self, pattern: str, flags: str = "") -> None:
        """Compile only.

        Raises:
            InvalidPattern: it is not JavaScript.
            ScriptBudgetExceeded: even compiling is too much.
        """
        await self.ref.ask(CheckPattern(pattern, flags))

    async def find_all(self, pattern: str, flags: str, text: str, *, owner: str = "") -> Sequence[RegexMatch]:
        """Every match.

        Raises:
            InvalidPattern: it is not JavaScript.
            ScriptBudgetExceeded: it ran over its budget.
        """
        matches: Sequence[RegexMatch] = await self.ref.ask(FindMatches(pattern, flags, text, owner))
        return matches

    async def render(self, template: RenderTemplate) -> str:
        """A template's output.

        Raises:
            TemplateError: it names the template, and the place where it is known.
        """
        output: str = await self.ref.ask(template)
        return output
