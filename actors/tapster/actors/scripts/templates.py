"""Templates in QuickJS: a fresh context for each run, lookups through a queue, one CPU budget over all entries.

No Python function is reachable from JavaScript. The host enters, runs jobs, takes the queue of lookups, answers them,
and enters again, until the template's promise is settled.

Source: spec/text_and_mvu B3; style §6 (time limits restart at each entry and count the whole process's CPU).
"""

import json
import re
import time
from collections.abc import Callable
from importlib.resources import files
from typing import Any, TypeAlias

import quickjs

from tapster.engine import limits
from tapster.engine.ecma import stringify
from tapster.engine.text.templates import HELPERS, Lookup, Program, RegexArgument, Resolve, ScriptFailure, Surroundings

Json: TypeAlias = Any
_SANDBOX = files(__package__).joinpath("sandbox.js").read_text(encoding="utf-8")
_PLACE = re.compile(r"at (?:anonymous \()?<input>:(\d+):(\d+)\)?")
_HEADER_LINES = 2
"""Lines an async function constructed from text has before its body."""
_MINIMUM_SECONDS = 0.001
_FAULTS = ("TEMPLATE_DEPENDENCY_INVALID", "TEMPLATE_DEPENDENCY_LIMIT")


class QuickJsTemplateEngine:
    """A ``TemplateEngine``; may be shared by threads, because each run has a context of its own."""

    def __init__(self, *, budget_ms: float = limits.TEMPLATE_BUDGET_MS) -> None:
        self.budget_ms = budget_ms

    def run(
        self,
        program: Program,
        variables: Json,
        resolve: Resolve,
        surroundings: Surroundings,
        checkpoint: Callable[[], None],
    ) -> str:
        """The output; see ``TemplateEngine.run``."""
        return _Run(self.budget_ms / 1000, variables, surroundings, checkpoint).render(program, resolve)


class _Run:
    def __init__(
        self, budget: float, variables: Json, surroundings: Surroundings, checkpoint: Callable[[], None]
    ) -> None:
        self.remaining = budget
        self.checkpoint = checkpoint
        self.context = quickjs.Context()
        self.context.set_memory_limit(limits.TEMPLATE_MEMORY_BYTES)
        self.context.set_max_stack_size(limits.TEMPLATE_STACK_BYTES)
        settings = {
            "variables": stringify(variables),
            "clock": surroundings.clock_ms,
            "seed": surroundings.seed,
            "output": limits.TEMPLATE_OUTPUT_UNITS,
            "lookups": limits.TEMPLATE_MAX_LOOKUPS,
            "lookupUnits": limits.TEMPLATE_LOOKUP_UNITS,
        }
        sandbox = self.enter(lambda: self.context.eval(_SANDBOX))
        self.handles = self.enter(lambda: sandbox(json.dumps(settings)))
        self.jobs = 0

    def enter(self, call: Callable[[], Json]) -> Json:
        """One entry into JavaScript within what is left of the budget."""
        self.checkpoint()
        if self.remaining < _MINIMUM_SECONDS:
            raise ScriptFailure("TEMPLATE_EXECUTION_LIMIT", "the template ran over its time budget")
        started = time.thread_time()
        self.context.set_time_limit(self.remaining)
        try:
            return call()
        except quickjs.StackOverflow:
            raise ScriptFailure("TEMPLATE_EXECUTION_FAILED", "the template calls itself too deeply") from None
        except quickjs.JSException as error:
            raise _failure(str(error)) from None
        finally:
            self.remaining -= time.thread_time() - started

    def handle(self, name: str, *values: Json) -> Json:
        return self.enter(lambda: self.handles(name, *values))

    def render(self, program: Program, resolve: Resolve) -> str:
        self.handle("start", program.body)
        while True:
            self.run_jobs()
            waiting = self.read("take", list)
            if not waiting:
                break
            for request in waiting:
                self.checkpoint()
                number, lookup = _lookup(request)
                self.handle("answer", number, json.dumps(resolve(lookup)))
        _check(self.read("state", dict))
        return str(self.read("output", str))

    def read(self, name: str, kind: type) -> Json:
        """What a handle gives as JSON; a template may have bent the built-ins that it is made with."""
        text = self.handle(name)
        try:
            value = json.loads(text) if isinstance(text, str) else None
        except ValueError:
            value = None
        if not isinstance(value, kind):
            raise _TAMPERED
        return value

    def run_jobs(self) -> None:
        while self.enter(self.context.execute_pending_job):
            self.jobs += 1
            if self.jobs > limits.TEMPLATE_MAX_JOBS:
                raise ScriptFailure("TEMPLATE_EXECUTION_LIMIT", "the template waits for too many promises")


_TAMPERED = ScriptFailure("TEMPLATE_EXECUTION_FAILED", "the template changed built-in objects that rendering needs")


def _lookup(request: Json) -> tuple[int, Lookup]:
    """A queued lookup, checked: its JSON was made inside the template's own world."""
    number = request.get("id") if isinstance(request, dict) else None
    if not isinstance(number, int) or request.get("helper") not in HELPERS:
        raise _TAMPERED
    arguments = request.get("arguments")
    if not isinstance(arguments, list) or len(arguments) > limits.TEMPLATE_MAX_ARGUMENTS:
        raise _TAMPERED
    return number, Lookup(request["helper"], tuple(map(_argument, arguments)))


def _argument(value: Json) -> str | int | float | bool | RegexArgument | None:
    if isinstance(value, dict):
        pattern, flags = value.get("pattern"), value.get("flags")
        if isinstance(pattern, str) and isinstance(flags, str):
            return RegexArgument(pattern, flags)
    elif value is None or isinstance(value, str | int | float):
        scalar: str | int | float | bool | None = value
        return scalar
    raise _TAMPERED


def _check(state: Json) -> None:
    """Refuse a run that did not end well, whatever the template itself caught."""
    if state.get("overflow"):
        raise ScriptFailure("TEMPLATE_OUTPUT_LIMIT", "the output is too long")
    fault, message, ending = str(state.get("fault") or ""), str(state.get("message") or ""), state.get("state")
    line, column = _place(str(state.get("stack") or ""))
    if fault in _FAULTS:
        raise ScriptFailure(fault, message or "a lookup was refused", line, column)
    if ending == "running":
        raise ScriptFailure("TEMPLATE_UNSETTLED", "the template waits for something that never comes")
    if "out of memory" in message:
        raise _failure(message)
    if ending != "done":
        raise ScriptFailure("TEMPLATE_EXECUTION_FAILED", message, line, column)


def _failure(message: str) -> ScriptFailure:
    if "interrupted" in message:
        return ScriptFailure("TEMPLATE_EXECUTION_LIMIT", "the template ran over its time budget")
    if "out of memory" in message or not message:
        return ScriptFailure("TEMPLATE_EXECUTION_LIMIT", "the template ran over its memory budget")
    return ScriptFailure("TEMPLATE_EXECUTION_FAILED", message.splitlines()[0])


def _place(stack: str) -> tuple[int | None, int]:
    """Where in the template's body a stack trace points."""
    found = _PLACE.search(stack)
    if found is None or int(found[1]) <= _HEADER_LINES:
        return None, 1
    return int(found[1]) - _HEADER_LINES, int(found[2])
