"""The Zod-like types of declared schemas, and a schema as a check on ``stat_data``.

Source: spec/text_and_mvu C6.
"""

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

import attrs
import re2

from tapster.engine.mvu.errors import MvuError
from tapster.engine.mvu.variables import SchemaCheck
from tapster.engine.text.re2_translation import translate

from .evaluate import GLOBALS, UNDEFINED, Function, Scope, Steps, as_number, as_string, call, evaluate, tidy, truthy
from .nodes import Pattern, Script, unsupported
from .parse import parse_script

Json: TypeAlias = Any
Parse: TypeAlias = Callable[[Json, "Steps"], Json]
STRIP, STRICT, LOOSE = "strip", "strict", "loose"


def refuse(message: str) -> MvuError:
    return MvuError("MVU_SCHEMA", message)


@attrs.frozen
class Zod:
    """A type: how it parses a value, and what its modifiers need to know."""

    parse: Parse
    kind: str = "other"
    shape: Mapping[str, "Zod"] | None = None
    choices: tuple[Json, ...] | None = None

    def schema_member(self, name: str) -> Function:
        """A modifier, as a function that gives the changed type."""
        modifier = _MODIFIERS.get(name)
        if modifier is None:
            raise unsupported(f"the modifier {name!r} is not known")
        return lambda *arguments: modifier(self, *arguments)

    def wrapped(self, parse: Parse) -> "Zod":
        """The same type behind another parse function."""
        return Zod(parse, self.kind, self.shape, self.choices)


def a_type(value: Json) -> Zod:
    if not isinstance(value, Zod):
        raise unsupported("a type is expected")
    return value


def _plain(kind: str, accepts: Callable[[Json], bool]) -> Zod:
    def parse(value: Json, steps: Steps) -> Json:
        steps.take()
        if not accepts(value):
            raise refuse(f"{value!r:.60} is no {kind}")
        return value

    return Zod(parse, kind)


def is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


NUMBER = _plain("number", is_number)
STRING = _plain("string", lambda value: isinstance(value, str))
BOOLEAN = _plain("boolean", lambda value: isinstance(value, bool))
ANY = _plain("value", lambda value: True)


def _coerced(target: Zod, convert: Callable[[Json], Json]) -> Zod:
    return target.wrapped(lambda value, steps: target.parse(convert(value), steps))


def object_type(shape: Json, unknown: str = STRIP) -> Zod:
    if not isinstance(shape, Mapping):
        raise unsupported("an object type needs its members")
    members = {key: a_type(member) for key, member in shape.items()}

    def parse(value: Json, steps: Steps) -> Json:
        steps.take()
        if not isinstance(value, Mapping):
            raise refuse(f"{value!r:.60} is no object")
        result: dict[str, Json] = {}
        for key, member in members.items():
            try:
                found = member.parse(value.get(key, UNDEFINED), steps)
            except MvuError as error:
                raise MvuError(error.code, f"{key}: {error.message}") from None
            if found is not UNDEFINED:
                result[key] = found
        for key in value:
            if key not in members:
                if unknown == STRICT:
                    raise refuse(f"{key!r} is not known")
                if unknown == LOOSE:
                    result[key] = value[key]
        return result

    return Zod(parse, "object", members)


def array_type(item: Json) -> Zod:
    of = a_type(item)

    def parse(value: Json, steps: Steps) -> Json:
        steps.take()
        if not isinstance(value, list):
            raise refuse(f"{value!r:.60} is no list")
        return [of.parse(each, steps) for each in value]

    return Zod(parse, "array")


def record_type(first: Json, second: Json = None) -> Zod:
    key_type, of = (STRING, a_type(first)) if second is None else (a_type(first), a_type(second))
    exact = key_type.choices

    def parse(value: Json, steps: Steps) -> Json:
        steps.take()
        if not isinstance(value, Mapping):
            raise refuse(f"{value!r:.60} is no object")
        if exact is not None and set(value) != set(exact):
            raise refuse(f"exactly the members {', '.join(map(str, exact))} are allowed")
        return {as_string(key_type.parse(key, steps)): of.parse(member, steps) for key, member in value.items()}

    return Zod(parse, "record")


def choice_type(values: Json) -> Zod:
    choices = tuple(
        values.values() if isinstance(values, Mapping) else values if isinstance(values, list) else [values]
    )

    def parse(value: Json, steps: Steps) -> Json:
        steps.take()
        if not any(value == choice and type(value) is type(choice) for choice in choices):
            raise refuse(f"{value!r:.60} is none of {', '.join(map(repr, choices))}")
        return value

    return Zod(parse, "choice", choices=choices)


def union_type(options: Json) -> Zod:
    types = [a_type(option) for option in options]

    def parse(value: Json, steps: Steps) -> Json:
        for each in types:
            try:
                return each.parse(value, steps)
            except MvuError as error:
                if error.code != "MVU_SCHEMA":
                    raise
        raise refuse(f"{value!r:.60} fits none of the types")

    return Zod(parse, "union")


def _given(value: Json) -> Json:
    return call(value, []) if callable(value) else value


def _with_default(of: Zod, value: Json) -> Zod:
    return of.wrapped(lambda given, steps: _given(value) if given is UNDEFINED else of.parse(given, steps))


def _with_prefault(of: Zod, value: Json) -> Zod:
    return of.wrapped(lambda given, steps: of.parse(_given(value) if given is UNDEFINED else given, steps))


def _or_absent(of: Zod) -> Zod:
    return of.wrapped(lambda given, steps: UNDEFINED if given is UNDEFINED else of.parse(given, steps))


def _or_null(of: Zod) -> Zod:
    return of.wrapped(lambda given, steps: None if given is None else of.parse(given, steps))


def _checked(of: Zod, holds: Callable[[Json], bool], what: str) -> Zod:
    def parse(given: Json, steps: Steps) -> Json:
        value = of.parse(given, steps)
        if value is not UNDEFINED and value is not None and not holds(value):
            raise refuse(f"{value!r:.60} is not {what}")
        return value

    return of.wrapped(parse)


def _size(value: Json) -> float:
    return len(value) if isinstance(value, str | list) else as_number(value)


def _transformed(of: Zod, change: Function) -> Zod:
    if not callable(change):
        raise unsupported("transform needs a function")

    def parse(given: Json, steps: Steps) -> Json:
        value = call(change, [of.parse(given, steps)])
        return tidy(value) if isinstance(value, float) else value

    return Zod(parse)


def _matching(of: Zod, pattern: Json) -> Zod:
    """A finite pattern anchored at both ends; it runs in linear time."""
    if not isinstance(pattern, Pattern) or not (pattern.source.startswith("^") and pattern.source.endswith("$")):
        raise unsupported("a pattern must be anchored at both ends")
    translation = translate(pattern.source, pattern.flags)
    if translation is None or not translation.bounded:
        raise unsupported("a pattern must be finite and simple")
    compiled = re2.compile(translation.pattern)
    return _checked(of, lambda value: compiled.search(str(value)) is not None, f"like /{pattern.source}/")


def _unknown_members(policy: str) -> Callable[[Zod], Zod]:
    def change(of: Zod) -> Zod:
        if of.shape is None:
            raise unsupported("only an object type decides about unknown members")
        return object_type(of.shape, policy)

    return change


_MODIFIERS: Mapping[str, Callable[..., Zod]] = {
    "default": _with_default,
    "prefault": _with_prefault,
    "optional": _or_absent,
    "nullable": _or_null,
    "min": lambda of, least: _checked(of, lambda value: _size(value) >= least, f"at least {least}"),
    "max": lambda of, most: _checked(of, lambda value: _size(value) <= most, f"at most {most}"),
    "int": lambda of: _checked(of, lambda value: float(value).is_integer(), "whole"),
    "strict": _unknown_members(STRICT),
    "passthrough": _unknown_members(LOOSE),
    "transform": _transformed,
    "describe": lambda of, text="": of,
    "or": lambda of, other: union_type([of, other]),
    "regex": _matching,
}
_COERCE: Mapping[str, Function] = {
    "number": lambda: _coerced(NUMBER, lambda value: tidy(as_number(value))),
    "string": lambda: _coerced(STRING, as_string),
    "boolean": lambda: _coerced(BOOLEAN, truthy),
}
_TYPES: Mapping[str, Json] = {
    "number": lambda: NUMBER,
    "string": lambda: STRING,
    "boolean": lambda: BOOLEAN,
    "any": lambda: ANY,
    "unknown": lambda: ANY,
    "object": object_type,
    "array": array_type,
    "record": record_type,
    "enum": choice_type,
    "literal": choice_type,
    "union": union_type,
    "coerce": _COERCE,
}
_TYPES_2: Mapping[str, Json] = {
    "looseObject": lambda shape: object_type(shape, LOOSE),
    "strictObject": lambda shape: object_type(shape, STRICT),
}


def declared_schema(document: Json) -> SchemaCheck:
    """A stored declaration (``{mvuSchema, interpreterVersion, source}``) as a check that gives the transformed data.

    Raises:
        MvuError: ``MVU_SCHEMA_CODE``; the check itself raises ``MVU_SCHEMA``.
    """
    version = document.get("interpreterVersion") if isinstance(document, Mapping) else None
    source = document.get("source") if isinstance(document, Mapping) else None
    if not isinstance(source, str) or document.get("mvuSchema") != 1 or version not in (1, 2):
        raise unsupported("it is not of a known version")
    script = _parsed(source)
    _build(script, version, Steps())  # a declaration that can't be built is refused before any data reaches it

    def check(stat_data: Json) -> Json:
        steps = Steps()
        result = _build(script, version, steps).parse(stat_data, steps)
        if not isinstance(result, Mapping):
            raise refuse("the declared schema gives no object")
        return dict(result)

    return check


_parsed = lru_cache(maxsize=16)(parse_script)


def _build(script: Script, version: int, steps: Steps) -> Zod:
    types = {**_TYPES, **(_TYPES_2 if version == 2 else {})}
    scope = Scope({**GLOBALS, "z": types}, steps)
    for name, expression in script.constants:
        scope = scope.with_names({name: evaluate(expression, scope)})
    root = evaluate(script.schema, scope)
    if not isinstance(root, Zod):
        raise unsupported("what is registered is no type")
    # Version 2: a plain object registered as the root keeps members that it doesn't name.
    return object_type(root.shape, LOOSE) if version == 2 and root.kind == "object" and root.shape else root
