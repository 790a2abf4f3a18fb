"""Tools a model may call: the registry, the guard, and the hooks around one call.

Source: spec/dsh_host §2 (order), §3 (tool hooks), §8 (faults).
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias, final

import attrs

from tapster.engine.ecma import Json, is_record, parse_json
from tapster.engine.errors import FormatError, RequestError, TapsterError

from .waterfall import Disposer, Waterfall, at_once

if TYPE_CHECKING:
    from .agent import Agent


class ToolError(TapsterError):
    """A tool call can't be run; ``code`` says why."""

    code = "TOOL_FAILED"


@final
@attrs.define(eq=False)
class ToolExecution:
    """One call under way.

    Attributes:
        call_id: the model's id for it.
        arguments: the parsed arguments, an object.
        output: the result once it is known; what a cancelled turn logs for the call.
    """

    agent: "Agent"
    call_id: str
    name: str
    arguments: Json
    concludes_turn: bool = False
    output: "ToolOutput | None" = None

    def conclude_turn(self) -> None:
        """End the turn after this step, without another request."""
        self.concludes_turn = True


@attrs.frozen
class ToolOutput:
    """What a call gave: content blocks for the model; ``error`` is ``{name, code}`` for the log."""

    content: tuple[Json, ...]
    is_error: bool = False
    error: Json = None
    meta: Json = None

    @classmethod
    def text(cls, text: str) -> "ToolOutput":
        """A plain text result."""
        return cls(({"type": "text", "text": text},))

    @classmethod
    def failed(cls, message: str, error: Json = None) -> "ToolOutput":
        """An error result."""
        return cls(({"type": "text", "text": f"Error: {message}"},), True, error)


ToolBody: TypeAlias = Callable[[ToolExecution], Awaitable[ToolOutput | str]]
Guard: TypeAlias = Callable[[ToolExecution], str | None]


@attrs.frozen
class Tool:
    """A function a model may call; ``parameters`` is its JSON schema."""

    name: str
    description: str
    parameters: Json
    body: ToolBody

    def to_json(self) -> Json:
        """The tool as a request names it."""
        return {"name": self.name, "description": self.description, "parameters": self.parameters}


@attrs.frozen
class Allow:
    """The call may run."""


@attrs.frozen
class Deny:
    """The call may not run; the model is told why."""

    reason: str


@attrs.frozen
class Ask:
    """Someone would have to approve; without an answerer that is a denial."""

    reason: str = "this call needs an approval that nobody can give here"


ToolDecision: TypeAlias = Allow | Deny | Ask


@final
@attrs.define(eq=False)
class ToolHooks:
    """Waterfalls around a tool call."""

    pre_execute: Waterfall[ToolExecution, None, ToolDecision] = attrs.field(
        factory=lambda: Waterfall("tools/pre-execute")
    )
    execute: Waterfall[ToolExecution, None, ToolOutput] = attrs.field(factory=lambda: Waterfall("tools/execute"))
    post_execute: Waterfall[ToolOutput, ToolExecution, ToolOutput] = attrs.field(
        factory=lambda: Waterfall("tools/post-execute")
    )


@final
@attrs.define(eq=False)
class ToolRegistry:
    """The tools of a host, and the guards that may refuse a call."""

    _tools: dict[str, Tool] = attrs.field(factory=dict)
    _guards: list[Guard] = attrs.field(factory=list)

    def add(self, tool: Tool) -> Disposer:
        """Register a tool.

        Raises:
            RequestError: ``NAME_TAKEN``.
        """
        if tool.name in self._tools:
            raise RequestError(f"tool {tool.name!r} is registered already", code="NAME_TAKEN")
        self._tools[tool.name] = tool
        return lambda: self._drop(tool.name)

    def guard(self, guard: Guard) -> Disposer:
        """Add a synchronous check: a reason denies, None passes."""
        self._guards.append(guard)
        return lambda: self._guards.remove(guard) if guard in self._guards else None

    def schemas(self) -> tuple[Json, ...]:
        """All tools as a request names them, by name."""
        return tuple(tool.to_json() for _, tool in sorted(self._tools.items()))

    def find(self, name: str) -> Tool:
        """The tool of that name.

        Raises:
            ToolError: ``TOOL_NOT_FOUND``.
        """
        if name not in self._tools:
            raise ToolError(f"there is no tool named {name!r}", code="TOOL_NOT_FOUND")
        return self._tools[name]

    def refusal(self, execution: ToolExecution) -> str | None:
        """The first guard's reason to deny, or None."""
        reasons = (guard(execution) for guard in self._guards)
        return next((reason for reason in reasons if reason is not None), None)

    def _drop(self, name: str) -> None:
        self._tools.pop(name, None)


async def run_call(
    registry: ToolRegistry, hooks: ToolHooks, execution: ToolExecution, checkpoint: Callable[[], Awaitable[None]]
) -> ToolOutput:
    """The result of one call; whatever goes wrong in it becomes an error result for the model.

    Args:
        registry: the tools and guards.
        hooks: the waterfalls around the call.
        execution: the call, its arguments still raw JSON text.
        checkpoint: makes the log durable; awaited before the tool's body.

    Raises:
        StoreError: the log couldn't be made durable.
    """
    try:
        execution.arguments = parse_arguments(execution.arguments)
        refusal = await _refusal(registry, hooks, execution)
    except Exception as error:  # noqa: BLE001 - a faulty hook or guard fails this call only (dsh_host §3)
        return failed(error)
    if refusal is None:
        await checkpoint()
    try:
        output = ToolOutput.failed(refusal) if refusal is not None else await _execute(registry, hooks, execution)
        execution.output = output
        return await hooks.post_execute.run(output, execution, at_once(lambda given: given))
    except Exception as error:  # noqa: BLE001 - a faulty tool or hook fails this call only (dsh_host §3)
        return failed(error)


async def _refusal(registry: ToolRegistry, hooks: ToolHooks, execution: ToolExecution) -> str | None:
    decision = await hooks.pre_execute.run(execution, None, at_once(_allow))
    if isinstance(decision, Deny | Ask):
        return decision.reason
    return registry.refusal(execution)


async def _execute(registry: ToolRegistry, hooks: ToolHooks, execution: ToolExecution) -> ToolOutput:
    async def body(given: ToolExecution) -> ToolOutput:
        output = await registry.find(given.name).body(given)
        given.output = ToolOutput.text(output) if isinstance(output, str) else output
        return given.output

    try:
        return await hooks.execute.run(execution, None, body)
    except Exception as error:  # noqa: BLE001 - the model is told; post-execute still sees the result
        return failed(error)


def _allow(execution: ToolExecution) -> ToolDecision:
    del execution
    return Allow()


def parse_arguments(raw: str) -> Json:
    """The arguments of a call; nothing at all counts as an empty object.

    Raises:
        ToolError: ``TOOL_ARGUMENTS_INVALID``.
    """
    try:
        value = parse_json(raw) if raw.strip() else {}
    except FormatError as error:
        raise ToolError(f"the arguments aren't JSON: {error.message}", code="TOOL_ARGUMENTS_INVALID") from error
    if not is_record(value):
        raise ToolError("the arguments aren't a JSON object", code="TOOL_ARGUMENTS_INVALID")
    return value


def failed(error: BaseException) -> ToolOutput:
    """An exception as an error result."""
    code = error.code if isinstance(error, TapsterError) else "TOOL_FAILED"
    return ToolOutput.failed(str(error) or type(error).__name__, {"name": type(error).__name__, "code": code})
