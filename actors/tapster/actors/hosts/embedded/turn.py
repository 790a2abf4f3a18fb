"""The turn: claim, assemble, pre-step, request, stream, tools, and again until nothing is left to do.

The order of every event and hook is that of spec/dsh_host §2 and §14; what goes wrong ends the turn as in §7 and §8.
"""

from collections.abc import Sequence
from typing import Final, Literal, final

import attrs
import trio

from tapster.actors.providers import (
    CallConfig,
    Chunk,
    Failure,
    Finish,
    ModelRequest,
    PreparedCall,
    ProviderError,
    Reply,
    has_output,
)
from tapster.engine.ecma import Json
from tapster.engine.errors import StoreError, TapsterError
from tapster.engine.projection import APPEND, Event, SurfaceReplace, tool_calls
from tapster.engine.projection.events import (
    ASSISTANT_ATTEMPT,
    REQUEST_CONTEXT,
    REQUEST_HEADER,
    STEP_END,
    STEP_START,
    SYSTEM_MESSAGE,
    USER_MESSAGE,
)
from tapster.runtime import RuntimeFault

from .agent import Agent, Turn
from .history import LiveChunk
from .hooks import Enter, PreStep, PreStepDecision, Reject, RequestFailed, StepContext, StreamCall, TurnError
from .prompt import (
    Assembly,
    NamedText,
    PromptContext,
    PromptError,
    context_sections,
    due_snapshot,
    system_text,
)
from .tools import run_call
from .waterfall import at_once

Ending = Literal["completed", "max-tokens", "blocked"]
StepEnding = Literal["answered", "called", "concluded", "max-tokens", "blocked"]
DISPOSED: Final[Json] = {"kind": "disposed"}


class AttemptFailed(TapsterError):
    """A request failed and nothing more is tried."""

    code = "UNKNOWN"

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message, code=failure.code, status=failure.status)
        self.failure = failure


def error_json(error: BaseException) -> Json:
    """An exception as ``reason.error`` of a turn's end."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    if isinstance(error, AttemptFailed):
        return error.failure.to_json()
    if isinstance(error, ProviderError):
        return error.failure.to_json()
    code = error.code if isinstance(error, TapsterError) else "UNKNOWN"
    return {"message": str(error) or type(error).__name__, "code": code}


async def assemble_prompt(context: PromptContext) -> Assembly:
    """The prompt of a step: every provider asked once, then the waterfall."""
    agent = context.agent
    parts = agent.parts
    before = parts.prompt.collect(context, parts.tools.schemas())
    config = agent.request_config()
    known = {"provider": str(config.get("provider")), "model": str(config.get("model"))}
    before = attrs.evolve(before, variables={**known, "cwd": agent.options.cwd, **before.variables})
    return parts.prompt.restore(before, await parts.hooks.assemble.run(before, context, at_once(_same)))


@final
@attrs.define(eq=False)
class TurnRunner:
    """Runs the turns of one agent, one after the other."""

    agent: Agent

    async def drive(self) -> None:
        """Run turns while there is input that wakes; then be idle.

        Cancellation: the open turn is closed in the log (``aborted``, cause ``disposed``) before it propagates.
        """
        agent = self.agent
        agent.set_status("running")
        try:
            while agent.wants_turn and (agent.queues.next_turn or agent.queues.next_step):
                agent.wants_turn = False
                if await self.run_turn() and agent.queues.next_turn:
                    agent.wants_turn = True
        finally:
            agent.set_status("idle")

    async def run_turn(self) -> bool:
        """Run one turn; whether it ended without error or abort."""
        agent = self.agent
        turn = agent.begin_turn()
        reason: Json = None
        try:
            with turn.scope:
                reason = {"kind": await self._steps(turn)}
        except Exception as error:  # noqa: BLE001 - any fault of a hook, tool or provider ends this turn only (dsh_host §8)
            agent.wants_turn = False
            if turn.cause is None:
                agent.parts.hooks.error.emit(TurnError(agent, turn.number, turn.step, error))
                reason = {"kind": "error", "error": error_json(error)}
        except BaseException:
            agent.end_turn({"kind": "aborted", "reason": turn.cause or dict(DISPOSED)})
            raise
        is_done = turn.cause is None and reason is not None and reason["kind"] != "error"
        agent.end_turn(reason if turn.cause is None else {"kind": "aborted", "reason": turn.cause})
        await self._settle()
        return is_done

    async def _settle(self) -> None:
        try:
            await self.agent.log.flush()
        except (StoreError, RuntimeFault) as error:
            # The events stay in memory and go with the next flush; whoever waits for one of them is told.
            self.agent.parts.log("error", "host.log_not_durable", session=self.agent.id, code=error.code)

    async def _steps(self, turn: Turn) -> Ending:
        agent = self.agent
        claimed = agent.claim(new_turn=True)
        step = 1
        while True:
            match await self._step(turn, step, claimed):
                case "max-tokens" | "blocked" as ending:
                    return ending
                case "called":
                    pass
                case "answered" | "concluded" as ending:
                    if not agent.queues.next_step:
                        await agent.parts.hooks.turn_stopping.run(StepContext(agent, turn.number, step))
                    if not agent.queues.next_step:
                        return "completed"
            claimed = agent.claim(new_turn=False)
            step += 1

    async def _step(self, turn: Turn, step: int, claimed: Sequence[Json]) -> StepEnding:
        agent = self.agent
        context = StepContext(agent, turn.number, step)
        assembly = await assemble_prompt(PromptContext(agent, turn.number, step))
        sections = context_sections(assembly)
        decision = await self._pre_step(context, claimed, sections)
        if isinstance(decision, Reject):
            return "blocked"
        await agent.log.flush()
        turn.step, turn.step_is_open = step, True
        agent.log.append(STEP_START, {"turn": turn.number, "step": step})
        self._enter(turn, assembly, decision)
        ending = await self._answer(turn, context, assembly.tools)
        turn.step_is_open = False
        agent.log.append(STEP_END, {"turn": turn.number, "step": step})
        return ending

    async def _pre_step(
        self, context: StepContext, claimed: Sequence[Json], sections: Sequence[NamedText]
    ) -> PreStepDecision:
        def enter(given: PreStep) -> PreStepDecision:
            agent = self.agent
            snapshot = due_snapshot(agent.new_id(), sections, agent.derive_messages())
            return Enter((*given.messages, *snapshot))

        return await self.agent.parts.hooks.pre_step.run(PreStep(tuple(claimed)), context, at_once(enter))

    def _enter(self, turn: Turn, assembly: Assembly, decision: Enter) -> None:
        """Log what the step takes: the system text first, so that it leads the surface; a bad one fails after."""
        fault: PromptError | None = None
        try:
            self._system(turn, system_text(assembly))
        except PromptError as error:
            fault = error
        for message in decision.messages:
            self.agent.log.append(USER_MESSAGE, message, APPEND)
        if fault is not None:
            raise fault

    def _system(self, turn: Turn, text: str) -> None:
        log = self.agent.log
        node = log.surface.system_node()
        if node is None and not text:
            return
        content = [{"type": "text", "text": text}] if text else []
        if node is not None and node.data["message"]["content"] == content:
            return
        message = {"id": self.agent.new_id(), "role": "system", "content": content}
        data = {"turn": turn.number, "step": turn.step, "message": message}
        if node is None:
            log.append(SYSTEM_MESSAGE, data, APPEND)
        else:
            log.append(SYSTEM_MESSAGE, data, SurfaceReplace(node.seq, node.seq), (node.seq,))

    async def _answer(self, turn: Turn, context: StepContext, tools: tuple[Json, ...]) -> StepEnding:
        reply = await self._request(turn, context, tools)
        turn.reply = None
        event = self.agent.append_reply(turn, reply, reply.content())
        if reply.finish is not None and reply.finish.kind == "max-tokens":
            return "max-tokens"
        turn.waiting_calls.extend(tool_calls(event.data["message"]))
        if not turn.waiting_calls:
            return "answered"
        concluded = False
        while turn.waiting_calls:
            concluded = await self._call(turn) or concluded
        return "concluded" if concluded else "called"

    async def _request(self, turn: Turn, context: StepContext, tools: tuple[Json, ...]) -> Reply:
        retries = 0
        while True:
            prepared = await self._config(context)
            self._header(prepared, tools)
            reply = await self._attempt(turn, context, prepared.config, tools)
            failure = _failure(reply)
            if failure is None:
                return reply
            turn.reply = None
            self.agent.log.append(ASSISTANT_ATTEMPT, {"turn": turn.number, "step": turn.step, "stream": reply.stream()})
            provider = str(prepared.config.get("provider"))
            failed = RequestFailed(failure, provider, retries, has_output(reply.chunks))
            decision = await self.agent.parts.hooks.request_error.run(failed, context, at_once(_give_up))
            if decision != "retry":
                raise AttemptFailed(failure)
            retries += 1

    async def _config(self, context: StepContext) -> PreparedCall:
        parts = self.agent.parts
        config = await parts.hooks.request.run(self.agent.request_config(), context, at_once(lambda seed: seed))
        return await parts.providers.prepare(config)

    def _header(self, prepared: PreparedCall, tools: tuple[Json, ...]) -> None:
        log = self.agent.log
        header: Json = {"config": dict(prepared.config)}
        if prepared.adapter_defaults:
            header["adapterDefaults"] = dict.fromkeys(sorted(prepared.adapter_defaults), True)
        if tools:
            header["tools"] = list(tools)
        if log.request_header is None or log.request_header.data["header"] != header:
            log.append(REQUEST_HEADER, {"header": header, "reason": _header_reason(log.request_header, log.opened_at)})
        window = {} if prepared.context_window is None else {"contextWindow": prepared.context_window}
        named = {name: prepared.config.get(name) for name in ("provider", "model")}
        if log.request_context is None or log.request_context.data != {**named, **window}:
            log.append(REQUEST_CONTEXT, {**named, **window})

    async def _attempt(self, turn: Turn, context: StepContext, config: CallConfig, tools: tuple[Json, ...]) -> Reply:
        agent = self.agent
        await agent.log.flush()
        request = ModelRequest(config, agent.derive_messages(), tools, agent.id, turn.number, turn.step)
        reply = turn.reply = Reply()

        def sink(chunk: Chunk) -> None:
            reply.take(chunk)
            agent.log.send(LiveChunk(turn.number, turn.step, chunk))

        await agent.parts.hooks.stream.run(StreamCall(request, sink), context, self._stream)
        return reply

    async def _stream(self, call: StreamCall) -> None:
        provider = self.agent.parts.providers.find(call.request.provider)
        if provider is None:
            message = f"no provider is registered under the name {call.request.provider!r}"
            call.sink(Finish("error", Failure("NO_ADAPTER", message)))
        else:
            await provider.stream(call.request, call.sink)

    async def _call(self, turn: Turn) -> bool:
        agent = self.agent
        running = agent.start_call(turn)
        execution = running.execution
        output = await run_call(agent.parts.tools, agent.parts.hooks.tools, execution, agent.log.flush)
        turn.running_call = None
        agent.append_output(turn, running, output)
        await trio.lowlevel.checkpoint_if_cancelled()
        return execution.concludes_turn


def _failure(reply: Reply) -> Failure | None:
    if reply.finish is None:
        return Failure("STREAM_CLOSED", "the stream ended without saying how")
    if reply.finish.kind == "error":
        return reply.finish.failure or Failure("SERVER", "the provider failed without saying why")
    if reply.finish.kind == "aborted":
        return Failure("ABORTED", "the provider stopped the request")
    return None


def _header_reason(last: Event | None, opened_at: int) -> str:
    if last is None:
        return "initial"
    return "resume" if last.seq < opened_at else "change"


def _give_up(failed: RequestFailed) -> Literal["retry"] | None:
    del failed
    return None


def _same(assembly: Assembly) -> Assembly:
    return assembly
