"""``random``, ``roll`` and ``pick``."""

import re

from tapster.engine.ecma import WHITE_SPACE
from tapster.engine.limits import ST_MACRO_MAX_DICE
from tapster.engine.text.string_hash import seeded_random, string_hash

from .registry import Call, MacroDefinition

_DICE = re.compile(r"([1-9][0-9]*)?d([1-9][0-9]*)([+-][0-9]+)?", re.IGNORECASE)
_ESCAPED_COMMA = "\\,"
_HELD_COMMA = "\ue000comma\ue000"


def items(call: Call) -> list[str]:
    """The choices: the arguments, or a single argument split on ``::``, else on commas."""
    if len(call.arguments) != 1:
        return list(call.arguments)
    only = call.arguments[0]
    if "::" in only:
        return [item.strip(WHITE_SPACE) for item in only.split("::")]
    held = only.replace(_ESCAPED_COMMA, _HELD_COMMA).split(",")
    return [item.strip(WHITE_SPACE).replace(_HELD_COMMA, ",") for item in held]


def _random(call: Call) -> str:
    if not call.arguments:
        return ""
    choices = items(call)
    return choices[int(call.run.draw(call.name, call.offset) * len(choices))]


def _roll(call: Call) -> str:
    formula = call.arguments[0].strip(WHITE_SPACE)
    if formula.isascii() and formula.isdigit():
        formula = f"1d{formula}"
    dice = _DICE.fullmatch(formula)
    if dice is None:
        return ""
    count, sides = int(dice[1] or 1), int(dice[2])
    if count > ST_MACRO_MAX_DICE:
        return ""
    total = int(dice[3] or 0)
    for _ in range(count):
        total += 1 + int(call.run.draw(call.name, call.offset) * sides)
    return str(total)


def _pick(call: Call) -> str:
    if not call.arguments:
        return ""
    choices = items(call)
    context = call.run.context
    chat = context.chat_id_hash if context.chat_id_hash is not None else string_hash(context.chat_id)
    place = f"{chat}-{call.run.text_hash}-{call.run.place(call.offset)}"
    if context.pick_reroll_seed:
        place += f"-{context.pick_reroll_seed}"
    return choices[int(seeded_random(str(string_hash(place))) * len(choices))]


MACROS = {
    "random": MacroDefinition(_random, 0, None),
    "roll": MacroDefinition(_roll, 1, 1),
    "pick": MacroDefinition(_pick, 0, None),
}
