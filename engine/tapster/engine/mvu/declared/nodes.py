"""The tree of a declared schema, and how a schema outside the subset is refused."""

from collections.abc import Mapping
from typing import Any, TypeAlias

import attrs

from tapster.engine.mvu.errors import MvuError

Json: TypeAlias = Any


@attrs.frozen
class Literal:
    value: Json


@attrs.frozen
class Pattern:
    """A regular expression."""

    source: str
    flags: str


@attrs.frozen
class Name:
    name: str


@attrs.frozen
class Member:
    of: "Expression"
    key: "Expression"


@attrs.frozen
class Called:
    function: "Expression"
    arguments: "tuple[Expression, ...]"


@attrs.frozen
class ObjectLiteral:
    """Pairs of key and value; a None key spreads the value."""

    members: "tuple[tuple[Expression | None, Expression], ...]"


@attrs.frozen
class ListLiteral:
    items: "tuple[Expression, ...]"


@attrs.frozen
class Operation:
    operator: str
    operands: "tuple[Expression, ...]"


@attrs.frozen
class Arrow:
    """``parameters`` are names, or objects of key → name for destructuring."""

    parameters: tuple[str | Mapping[str, str], ...]
    body: "Expression"


Expression: TypeAlias = Literal | Pattern | Name | Member | Called | ObjectLiteral | ListLiteral | Operation | Arrow


@attrs.frozen
class Script:
    """The constants of a schema script, and the expression that is its schema."""

    constants: tuple[tuple[str, Expression], ...]
    schema: Expression


def unsupported(what: str) -> MvuError:
    return MvuError("MVU_SCHEMA_CODE", f"the declared schema can't be read: {what}")
