"""Resolving a request: all its sources at once, all or nothing.

Source: spec/assembler §6, §20; design §4 rules 4, 12, 16.
"""

import inspect
from collections.abc import Callable, Sequence

import attrs
import trio

from tapster.engine import limits
from tapster.engine.assembly import (
    AssemblyResult,
    Carried,
    Job,
    Output,
    Plan,
    RequestContext,
    accept_output,
    ask,
    check_leases,
    place,
    plan_request,
)
from tapster.engine.ecma import Json
from tapster.engine.errors import TapsterError

from .errors import SourceFailed, SourceTimeout
from .registrations import Bound, Sources

PLACE_DEADLINE_S = 20.0
"""How long leases, strategies and renderers of one request may take together."""

Lease = Callable[[], None]
"""Raises when what the request was made from has changed; a plain comparison, never a wait."""
AfterAssembly = Callable[[AssemblyResult, RequestContext], Sequence[dict[str, Json]]]
"""Gives further diagnostics of a finished request."""


async def assemble(
    sources: Sources,
    context: RequestContext,
    carried: Carried | None = None,
    *,
    lease: Lease | None = None,
    after: AfterAssembly | None = None,
    max_bytes: int = limits.ASSEMBLY_CONTENT_BYTES,
) -> AssemblyResult:
    """One request from all sources its preset names.

    Sources run at once, results count in rule order. The first source that fails cancels the others, and of those that
    failed by then the first in rule order is reported.

    Args:
        sources: the registered sources; the request keeps the set it starts with.
        context: the frozen context.
        carried: snapshots and node hashes of the session's last request.
        lease: checked after the last source, and again in the same step as the return.
        after: runs last, over the finished request.
        max_bytes: limit for the JSON of contributed messages.

    Raises:
        TapsterError: the request is refused as a whole.

    Cancellation: every call of a source is cancelled and has ended, or is counted as stray after a second.
    """
    plan = plan_request(sources.registry, context)
    outputs = await _Resolution(sources, plan).run()
    if lease is not None:
        lease()

    def finish() -> AssemblyResult:
        check_leases(plan)
        result = place(plan, outputs, carried, max_bytes=max_bytes)
        extra = tuple(after(result, context)) if after is not None else ()
        return attrs.evolve(result, diagnostics=(*result.diagnostics, *extra)) if extra else result

    with trio.move_on_after(PLACE_DEADLINE_S) as placing:
        result = await sources.run(finish)
    if placing.cancelled_caught:
        raise SourceTimeout("", f"leases, strategies and renderers took over {PLACE_DEADLINE_S:g} s")
    if lease is not None:
        lease()
    return result


@attrs.define(eq=False)
class _Resolution:
    """The calls of one request."""

    sources: Sources
    plan: Plan
    _outputs: dict[int, Output] = attrs.field(factory=dict)
    _failures: dict[int, TapsterError] = attrs.field(factory=dict)
    _done: list[trio.Event] = attrs.field(factory=list)

    async def run(self) -> list[Output]:
        """One output a job, in job order."""
        self._done = [trio.Event() for _ in self.plan.jobs]
        async with trio.open_nursery(strict_exception_groups=True) as nursery:
            for job in self.plan.jobs:
                nursery.start_soon(self._run_job, job, nursery.cancel_scope, name=f"resolve {job.rule.id}")
        if self._failures:
            raise self._failures[min(self._failures)]
        return [self._outputs[job.index] for job in self.plan.jobs]

    async def _run_job(self, job: Job, scope: trio.CancelScope) -> None:
        try:
            for index in job.after:
                await self._done[index].wait()
            self._outputs[job.index] = await self._resolve(job, scope)
        except TapsterError as error:
            self._failures[job.index] = error
            scope.cancel(reason=f"{job.source_id} failed")
        else:
            self._done[job.index].set()

    async def _resolve(self, job: Job, scope: trio.CancelScope) -> Output:
        definition = job.registration.definition
        function = definition.resolve if job.mode == "module" else definition.parse_text
        if isinstance(function, Bound):

            def refusing() -> None:
                scope.cancel(reason=f"{job.source_id} gives no answer")

            raw = await function.home.ask(function.function, self.plan.context, job.rule, refusing=refusing)
            return await self.sources.run(lambda: accept_output(job, raw))
        return accept_output(job, await self._ask_inside(job))

    async def _ask_inside(self, job: Job) -> object:
        """Ask a source of Tapster's own, which needs no home and no thread."""
        try:
            answer = ask(job, self.plan.context)
            return await answer if inspect.isawaitable(answer) else answer
        except TapsterError:
            raise
        except Exception as error:
            raise SourceFailed(job.source_id, f"{job.source_id} failed with {type(error).__name__}") from error
