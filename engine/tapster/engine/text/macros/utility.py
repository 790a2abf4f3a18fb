"""Macros that only work on text: line breaks, blanks, reversing, trimming, comments."""

from tapster.engine.limits import ST_MACRO_MAX_REPEAT

from .registry import Call, MacroDefinition, Unresolved, aliases

TRIM_MARK = "{{trim}}"


def _repeat(unit: str) -> MacroDefinition:
    def give(call: Call) -> str:
        count = call.integer(0) if call.arguments else 1
        if not 0 <= count <= ST_MACRO_MAX_REPEAT:
            raise Unresolved
        return unit * count

    return MacroDefinition(give, 0, 1)


def _never(call: Call) -> str:
    raise Unresolved  # the evaluator itself runs `if`, because it is lazy


def _trim(call: Call) -> str:
    # Alone it leaves a mark that is taken out of the finished text with the line breaks around it.
    return call.arguments[0] if call.arguments else TRIM_MARK


EMPTY = MacroDefinition(lambda call: "")
MACROS = {
    "newline": _repeat("\n"),
    "space": _repeat(" "),
    "noop": EMPTY,
    "if": MacroDefinition(_never, 2, 2),
    "else": EMPTY,
    "reverse": MacroDefinition(lambda call: call.arguments[0][::-1], 1, 1),
    "trim": MacroDefinition(_trim, 0, 1),
    **aliases("// comment", MacroDefinition(lambda call: "", 1, 1)),
    # What a text-completion back end may not say has no meaning for a chat prompt.
    "banned": MacroDefinition(lambda call: "", 1, 1),
    "hasExtension": MacroDefinition(lambda call: "false", 1, 1),
}
