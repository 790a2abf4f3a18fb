"""Evaluation of the small expressions inside declared schemas: arithmetic, members, arrow functions, a few helpers.

Every step is counted, so that no schema runs long. Source: spec/text_and_mvu C6.
"""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

import attrs

from tapster.engine.ecma import number_text, to_number, trim
from tapster.engine.limits import MVU_MAX_BYTES, MVU_SCHEMA_STEPS
from tapster.engine.mvu.errors import MvuError

from .nodes import (
    Arrow,
    Called,
    Expression,
    ListLiteral,
    Literal,
    Member,
    Name,
    ObjectLiteral,
    Operation,
    Pattern,
    unsupported,
)

Json: TypeAlias = Any
Function: TypeAlias = Callable[..., Json]


class _Undefined:
    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "undefined"


MOST_DIGITS = 15
UNDEFINED = _Undefined()
"""What is absent; distinct from None, which is JavaScript's null."""


@attrs.define(eq=False)
class Steps:
    """The work left for one use of a schema."""

    left: int = MVU_SCHEMA_STEPS

    def take(self, count: int = 1) -> None:
        self.left -= count
        if self.left < 0:
            raise MvuError("MVU_SCHEMA_CODE", f"the declared schema takes over {MVU_SCHEMA_STEPS} steps")


def as_number(value: Json) -> float:
    """``Number(value)``; NaN for what is none."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int | float):
        return value
    if isinstance(value, str):
        number = to_number(value) if trim(value) else 0
        return math.nan if number is None else number
    return 0 if value is None else math.nan


def as_string(value: Json) -> str:
    """``String(value)`` for plain values."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return number_text(value)
    if isinstance(value, list):
        return ",".join("" if item is None else as_string(item) for item in value)
    if isinstance(value, Mapping):
        return "[object Object]"
    return "null" if value is None else "undefined"


def truthy(value: Json) -> bool:
    if isinstance(value, float) and math.isnan(value):
        return False
    return bool(value) or isinstance(value, list | Mapping)


def tidy(number: float) -> float:
    """A whole float as an int."""
    if isinstance(number, float) and number.is_integer() and abs(number) < 2**53:
        return int(number)
    return number


def _bounded(text: str) -> str:
    """A made text, refused when repeated joining blew it up."""
    if len(text) > MVU_MAX_BYTES:
        raise MvuError("MVU_LIMIT", "a transform of the declared schema makes too long a text")
    return text


def _fixed(value: float, digits: float = 0) -> str:
    return f"{value:.{min(max(int(digits), 0), MOST_DIGITS)}f}"


def _round(value: float, digits: float = 0) -> float:
    digits = min(max(digits, -MOST_DIGITS), MOST_DIGITS)
    scale = 10 ** int(digits)
    return tidy(math.floor(as_number(value) * scale + 0.5) / scale)


def _pick(keep: bool) -> Function:
    def pick(value: Json, test: Function) -> Json:
        return {key: member for key, member in _record(value).items() if truthy(test(member, key)) == keep}

    return pick


def _record(value: Json) -> Mapping[str, Json]:
    if not isinstance(value, Mapping):
        raise MvuError("MVU_SCHEMA", "a transform expects an object")
    return value


_LODASH: Mapping[str, Function] = {
    "clamp": lambda value, low, high: tidy(min(max(as_number(value), as_number(low)), as_number(high))),
    "pickBy": _pick(True),
    "omitBy": _pick(False),
    "mapValues": lambda value, change: {key: change(member, key) for key, member in _record(value).items()},
    "round": _round,
    "take": lambda value, count=1: list(value)[: int(count)],
    "takeRight": lambda value, count=1: list(value)[-int(count) :] if count else [],
    "uniq": lambda value: list(dict.fromkeys(value)),
}
_MATH: Mapping[str, Function] = {
    "min": lambda *values: tidy(min(map(as_number, values))),
    "max": lambda *values: tidy(max(map(as_number, values))),
    "round": _round,
    "floor": lambda value: math.floor(as_number(value)),
    "ceil": lambda value: math.ceil(as_number(value)),
    "trunc": lambda value: math.trunc(as_number(value)),
    "abs": lambda value: abs(as_number(value)),
}
_OBJECT: Mapping[str, Function] = {
    "keys": lambda value: list(_record(value)),
    "values": lambda value: list(_record(value).values()),
    "entries": lambda value: [list(pair) for pair in _record(value).items()],
    "fromEntries": lambda pairs: {as_string(key): value for key, value in pairs},
}
GLOBALS: Mapping[str, Json] = {
    "_": _LODASH,
    "Math": _MATH,
    "Object": _OBJECT,
    "Number": as_number,
    "String": as_string,
    "Boolean": truthy,
}


@attrs.frozen
class Scope:
    """Names in force."""

    names: Mapping[str, Json]
    steps: Steps

    def with_names(self, names: Mapping[str, Json]) -> "Scope":
        return Scope({**self.names, **names}, self.steps)


def evaluate(expression: Expression, scope: Scope) -> Json:
    """The value of an expression.

    Raises:
        MvuError: ``MVU_SCHEMA_CODE`` for what is outside the subset.
    """
    scope.steps.take()
    match expression:
        case Literal(value):
            return value
        case Pattern():
            return expression
        case Name(name):
            if name not in scope.names:
                raise unsupported(f"the name {name!r} is not known")
            return scope.names[name]
        case Member(of, key):
            return _member(evaluate(of, scope), evaluate(key, scope))
        case Called(function, arguments):
            called = evaluate(function, scope)
            if not callable(called):
                raise unsupported("something that is no function is called")
            return call(called, [evaluate(argument, scope) for argument in arguments])
        case ObjectLiteral(members):
            return _object(members, scope)
        case ListLiteral(items):
            return [evaluate(item, scope) for item in items]
        case Operation(operator, operands):
            return _operation(operator, operands, scope)
        case Arrow():
            return _function(expression, scope)


def call(function: Function, arguments: list[Json]) -> Json:
    """A function's value; wrong arguments are a matter of the schema, not a crash."""
    try:
        return function(*arguments)
    except (TypeError, ValueError, OverflowError, AttributeError) as error:
        raise MvuError("MVU_SCHEMA", f"a transform of the declared schema fails: {error}") from None


def _object(members: "tuple[tuple[Expression | None, Expression], ...]", scope: Scope) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for key, value in members:
        if key is None:
            spread = evaluate(value, scope)
            found |= spread if isinstance(spread, Mapping) else {}
        else:
            found[as_string(evaluate(key, scope))] = evaluate(value, scope)
    return found


def _function(arrow: Arrow, scope: Scope) -> Function:
    def run(*values: Json) -> Json:
        names: dict[str, Json] = {}
        for index, parameter in enumerate(arrow.parameters):
            value = values[index] if index < len(values) else UNDEFINED
            if isinstance(parameter, str):
                names[parameter] = value
            else:
                record = value if isinstance(value, Mapping) else {}
                names |= {name: record.get(key, UNDEFINED) for key, name in parameter.items()}
        return evaluate(arrow.body, scope.with_names(names))

    return run


def _operation(operator: str, operands: "tuple[Expression, ...]", scope: Scope) -> Json:
    first = evaluate(operands[0], scope)
    if operator == "?":
        return evaluate(operands[1] if truthy(first) else operands[2], scope)
    if operator == "&&":
        return evaluate(operands[1], scope) if truthy(first) else first
    if operator == "||":
        return first if truthy(first) else evaluate(operands[1], scope)
    if operator == "??":
        return evaluate(operands[1], scope) if first is None or first is UNDEFINED else first
    if operator.startswith("unary "):
        return _unary(operator[6:], first)
    second = evaluate(operands[1], scope)
    if operator in ("===", "=="):
        return _same(first, second)
    if operator in ("!==", "!="):
        return not _same(first, second)
    if operator == "+" and (isinstance(first, str) or isinstance(second, str)):
        return _bounded(as_string(first) + as_string(second))
    return _arithmetic(operator, as_number(first), as_number(second))


def _same(first: Json, second: Json) -> bool:
    numbers = isinstance(first, int | float) and isinstance(second, int | float)
    if isinstance(first, bool) != isinstance(second, bool):
        return False
    return bool(first == second) if numbers or type(first) is type(second) else False


def _unary(operator: str, value: Json) -> Json:
    if operator == "!":
        return not truthy(value)
    if operator == "typeof":
        names = {bool: "boolean", int: "number", float: "number", str: "string", _Undefined: "undefined"}
        return names.get(type(value), "function" if callable(value) else "object")
    number = as_number(value)
    return -number if operator == "-" else number


def _arithmetic(operator: str, first: float, second: float) -> Json:
    if operator in ("<", ">", "<=", ">="):
        return {"<": first < second, ">": first > second, "<=": first <= second, ">=": first >= second}[operator]
    try:
        if operator == "%":
            return tidy(math.fmod(first, second))
        if operator == "/":
            return tidy(first / second)
    except (ZeroDivisionError, ValueError):
        return math.nan
    left, right = float(first), float(second)  # as JavaScript's numbers, which don't grow
    return tidy({"+": left + right, "-": left - right, "*": left * right}[operator])


def _member(value: Json, key: Json) -> Json:
    if hasattr(value, "schema_member"):
        return value.schema_member(as_string(key))
    if isinstance(value, Mapping):
        return value.get(as_string(key), UNDEFINED)
    if isinstance(value, list | str):
        return _sequence_member(value, key)
    if isinstance(value, int | float) and key == "toFixed":
        return partial(_fixed, value)
    if value is None or value is UNDEFINED:
        raise MvuError("MVU_SCHEMA", f"there is no {key!r} of {value!r}")
    return UNDEFINED


def _sequence_member(value: list[Json] | str, key: Json) -> Json:
    if isinstance(key, int) and not isinstance(key, bool):
        return value[key] if 0 <= key < len(value) else UNDEFINED
    methods: dict[str, Json] = {
        "length": len(value),
        "slice": lambda start=0, end=None: value[int(start) : None if end is None else int(end)],
        "includes": lambda item: item in value,
    }
    if isinstance(value, list):
        methods |= {
            "map": lambda change: [change(item, index) for index, item in enumerate(value)],
            "filter": lambda test: [item for index, item in enumerate(value) if truthy(test(item, index))],
            "join": lambda separator=",": _bounded(as_string(separator).join(map(as_string, value))),
        }
    else:
        methods |= {"trim": lambda: trim(value), "startsWith": lambda text: value.startswith(text)}
    return methods.get(as_string(key), UNDEFINED)
