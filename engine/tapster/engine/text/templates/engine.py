"""The port through which templates reach JavaScript, and rendering on top of it.

Source: spec/text_and_mvu B2-B4.
"""

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import attrs

from tapster.engine.ecma import stringify, utf8, utf16_length
from tapster.engine.limits import TEMPLATE_INPUT_BYTES, TEMPLATE_OUTPUT_UNITS

from .compile import Program, compile_template
from .errors import TemplateError

Json: TypeAlias = Any
HELPERS = ("getwi", "getpreset", "getchar")


@attrs.frozen
class RegexArgument:
    """A regular expression given to a lookup."""

    pattern: str
    flags: str


@attrs.frozen
class Lookup:
    """What a template asks its host for: a helper and its plain arguments."""

    helper: str
    arguments: tuple[str | int | float | bool | RegexArgument | None, ...]


Resolve: TypeAlias = Callable[[Lookup], str]
"""Answers a lookup after checking that it is allowed; raises ``TemplateError`` to refuse."""


@attrs.frozen
class Surroundings:
    """What replaces the clock and the dice inside a template, so that the same input gives the same text."""

    clock_ms: int = 0
    seed: int = 1


class ScriptFailure(Exception):
    """A run failed; ``line``/``column`` are places in the program's body."""

    def __init__(self, code: str, message: str, line: int | None = None, column: int = 1) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.line = line
        self.column = column


class TemplateEngine(Protocol):
    """Runs a compiled template in an isolated context of its own, within the limits."""

    def run(
        self,
        program: Program,
        variables: Json,
        resolve: Resolve,
        surroundings: Surroundings,
        checkpoint: Callable[[], None],
    ) -> str:
        """The output.

        ``checkpoint`` is called between entries into JavaScript and may raise to cancel.

        Raises:
            ScriptFailure: with a ``TEMPLATE_…`` code.
        """


def no_checkpoint() -> None:
    """Nothing to check: the run is never cancelled."""


def render_template(
    source: str,
    variables: Json,
    resolve: Resolve,
    engine: TemplateEngine,
    *,
    name: str = "template",
    surroundings: Surroundings | None = None,
    checkpoint: Callable[[], None] = no_checkpoint,
) -> str:
    """A template's output.

    Raises:
        TemplateError: names the template, line and column where they are known.
    """
    program = compile_template(source, name)
    given = len(utf8(stringify(variables)))

    def counted(lookup: Lookup) -> str:
        nonlocal given
        answer = resolve(lookup)
        given += len(utf8(answer))
        if given > TEMPLATE_INPUT_BYTES:
            raise _input_limit(name)
        return answer

    if given > TEMPLATE_INPUT_BYTES:
        raise _input_limit(name)
    try:
        output = engine.run(program, variables, counted, surroundings or Surroundings(), checkpoint)
    except ScriptFailure as failure:
        line, column = (None, 1) if failure.line is None else program.place(failure.line, failure.column)
        raise TemplateError(failure.message, code=failure.code, template=name, line=line, column=column) from None
    if utf16_length(output) > TEMPLATE_OUTPUT_UNITS or len(utf8(output)) > TEMPLATE_OUTPUT_UNITS:
        raise TemplateError("the output is too long", code="TEMPLATE_OUTPUT_LIMIT", template=name)
    return output


def _input_limit(name: str) -> TemplateError:
    return TemplateError(
        f"what the template reads is larger than {TEMPLATE_INPUT_BYTES} bytes",
        code="TEMPLATE_INPUT_LIMIT",
        template=name,
    )
