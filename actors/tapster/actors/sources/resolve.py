"""Resolving a request: all its sources at once, all or nothing.

Source: spec/assembler §6, §20; design §4 rules 4, 12, 16.
"""

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence

import attrs
import trio

from tapster.engine import limits
from tapster.engine.assembly import (
    AssemblyResult,
    Carried,
    Job,
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
from tapster.runtime import bounded_shield

from .errors import SourceFailed
from .home import GRACE_S, Call
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
        carried: snapshots and node marks of the session's last request.
        lease: checked after the last source, and again in the same step as the return.
        after: runs last, over the finished request.
        max_bytes: limit for the JSON of contributed messages.

    Raises:
        TapsterError: the request is refused as a whole.

    Cancellation: every call of a source is cancelled and has ended, or is counted as stray after a second.
    """
    plan = plan_request(sources.registry, context)
    answers = await _Resolution(sources, plan).run()
    if lease is not None:
        lease()

    def finish() -> AssemblyResult:
        outputs = [accept_output(job, answer) for job, answer in zip(plan.jobs, answers, strict=True)]
        check_leases(plan)
        result = place(plan, outputs, carried, max_bytes=max_bytes)
        extra = tuple(after(result, context)) if after is not None else ()
        return attrs.evolve(result, diagnostics=(*result.diagnostics, *extra)) if extra else result

    result = await sources.run(finish, PLACE_DEADLINE_S)
    if lease is not None:
        lease()
    return result


@attrs.define(eq=False)
class _Resolution:
    """The calls of one request, watched by the request's own task."""

    sources: Sources
    plan: Plan
    _answers: dict[int, object] = attrs.field(factory=dict)
    _running: dict[int, Call] = attrs.field(factory=dict)
    _waiting: dict[int, Job] = attrs.field(factory=dict)
    _failures: dict[int, TapsterError] = attrs.field(factory=dict)
    _changed: trio.Event = attrs.field(factory=trio.Event)

    async def run(self) -> list[object]:
        """One answer a job, in job order; only their shape is checked so far."""
        self._waiting = {job.index: job for job in self.plan.jobs}
        try:
            await trio.lowlevel.checkpoint()
            self._start_ready()
            while self._running and not self._is_refused():
                await self._wait_for_change()
                self._take_answers()
        finally:
            await self._end_calls()  # noqa: ASYNC102 - shielded inside, for at most GRACE_S
        for index, call in self._running.items():
            if call.is_hopeless:
                self._note_failure(index, call)
        if self._failures:
            # A source that was cancelled along with its request failed because of that, not the other way round.
            await trio.lowlevel.checkpoint_if_cancelled()
            raise self._failures[min(self._failures)]
        return [self._answers[job.index] for job in self.plan.jobs]

    def _is_refused(self) -> bool:
        return bool(self._failures) or any(call.is_hopeless for call in self._running.values())

    async def _wait_for_change(self) -> None:
        with trio.move_on_at(min(call.deadline for call in self._running.values())):
            await self._changed.wait()
        self._changed = trio.Event()
        now = trio.current_time()
        for call in self._running.values():
            call.expire(now)

    def _take_answers(self) -> None:
        ended = [index for index, call in sorted(self._running.items()) if call.is_ended and not call.is_hopeless]
        for index in ended:
            call = self._running.pop(index)
            try:
                self._take(self.plan.jobs[index], call.outcome())
            except TapsterError as error:
                self._failures[index] = error
        if ended and not self._is_refused():
            self._start_ready()

    def _note_failure(self, index: int, call: Call) -> None:
        try:
            call.outcome()
        except TapsterError as error:
            self._failures[index] = error

    def _start_ready(self) -> None:
        """Start every job whose dependencies have answered; Tapster's own sources answer on the spot."""
        is_ready = True
        while is_ready and not self._failures:
            is_ready = False
            for job in list(self._waiting.values()):
                if all(index in self._answers for index in job.after):
                    del self._waiting[job.index]
                    is_ready = self._start(job) or is_ready

    def _start(self, job: Job) -> bool:
        """Start a job; True when its answer is there already."""
        definition = job.registration.definition
        function = definition.resolve if job.mode == "module" else definition.parse_text
        try:
            if isinstance(function, Bound):
                arguments = (self.plan.context, job.rule)
                self._running[job.index] = function.home.start(function.function, arguments, self._wake)
                return False
            answer = self._ask_own(job)
            if inspect.isawaitable(answer):
                home = self.sources.home_for(job.registration)
                self._running[job.index] = home.start(_await, (answer,), self._wake)
                return False
            self._take(job, answer)
        except TapsterError as error:
            self._failures[job.index] = error
            return False
        return True

    def _ask_own(self, job: Job) -> object:
        """Ask a source of Tapster's own, which needs no thread."""
        try:
            return ask(job, self.plan.context)
        except TapsterError:
            raise
        except Exception as error:
            raise SourceFailed(job.source_id, f"{job.source_id} failed with {type(error).__name__}") from error

    def _take(self, job: Job, answer: object) -> None:
        """Keep an answer that may be an output; a plain lie cancels the others at once."""
        if not has_output_shape(answer):
            accept_output(job, answer)
        self._answers[job.index] = answer

    def _wake(self) -> None:
        self._changed.set()

    async def _end_calls(self) -> None:
        """Cancel what still runs and wait for its end, at most ``GRACE_S``."""
        for call in self._running.values():
            call.cancel()
        if any(not call.is_ended for call in self._running.values()):
            with bounded_shield(GRACE_S):
                while any(not call.is_ended for call in self._running.values()):
                    self._changed = trio.Event()
                    await self._changed.wait()
        for call in self._running.values():
            call.give_up()


async def _await(answer: Awaitable[object]) -> object:
    return await answer


def has_output_shape(value: object) -> bool:
    """Whether a value is an object with a list of blocks that isn't too long; the rest is checked in a thread."""
    blocks = value.get("blocks") if isinstance(value, Mapping) else None
    return isinstance(blocks, list | tuple) and len(blocks) <= limits.SOURCE_BLOCKS
