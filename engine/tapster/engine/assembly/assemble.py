"""The synchronous entry point: plan, ask each source, place.

The asynchronous resolver shares everything but the asking.
Source: spec/assembler §6.
"""

from collections.abc import Callable, Sequence

from tapster.engine import limits
from tapster.engine.ecma import Json

from .context import RequestContext
from .errors import InvalidAssembly
from .outputs import Output, accept_output
from .place import Carried, place
from .plan import Job, Plan, plan_request
from .registry import SourceRegistry, discard, is_awaitable
from .result import AssemblyResult

AfterAssembly = Callable[[AssemblyResult, RequestContext], Sequence[dict[str, Json]]]
"""Runs last and may add diagnostics."""


def ask(job: Job, context: RequestContext) -> object:
    """Whatever the source answers, checked by nobody yet; perhaps something to wait for."""
    definition = job.registration.definition
    function = definition.resolve if job.mode == "module" else definition.parse_text
    if function is None:
        raise InvalidAssembly(f"{job.source_id} has no {job.mode} function", code="SOURCE_IDENTITY_INVALID")
    return function(context, job.rule)


def check_leases(plan: Plan) -> None:
    """Let every source confirm, in job order, that what it gave still holds.

    Raises:
        InvalidAssembly: ``VALIDATE_RESOLVED_ASYNC``; whatever a source raises passes.
    """
    for job in plan.jobs:
        validate = job.registration.definition.validate_resolved
        if validate is not None:
            answer = validate(plan.context)
            if is_awaitable(answer):
                discard(answer)
                raise InvalidAssembly(
                    f"{job.source_id}: validateResolved must answer at once", code="VALIDATE_RESOLVED_ASYNC"
                )


def assemble_request(
    registry: SourceRegistry,
    context: RequestContext,
    carried: Carried | None = None,
    *,
    max_bytes: int = limits.ASSEMBLY_CONTENT_BYTES,
) -> AssemblyResult:
    """A request from sources that answer at once.

    Raises:
        InvalidAssembly: among others ``ASYNC_SOURCE`` when a source must be awaited.
        AssemblyRefused: the request can't be built as asked.
    """
    plan = plan_request(registry, context)
    outputs = [_ask_now(job, context) for job in plan.jobs]
    check_leases(plan)
    return place(plan, outputs, carried, max_bytes=max_bytes)


def _ask_now(job: Job, context: RequestContext) -> Output:
    answer = ask(job, context)
    if is_awaitable(answer):
        discard(answer)
        raise InvalidAssembly(f"{job.source_id} must be awaited; use the asynchronous entry point", code="ASYNC_SOURCE")
    return accept_output(job, answer)
