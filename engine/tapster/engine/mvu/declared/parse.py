"""The JavaScript of declared schemas into a bounded tree: constants, calls, literals, arrow functions.

Source: spec/text_and_mvu C6.
"""

import re
from collections.abc import Mapping
from typing import Any, TypeAlias

from tapster.engine.limits import MVU_SCHEMA_DEPTH

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
    Script,
    unsupported,
)
from .tokens import Token, number_of, tokenize, unquoted

Json: TypeAlias = Any
_LEVELS: tuple[tuple[str, ...], ...] = (
    ("??", "||"), ("&&",), ("===", "!==", "==", "!="), ("<", ">", "<=", ">="), ("+", "-"), ("*", "/", "%"),
)  # fmt: skip
_WORDS: Mapping[str, Json] = {"true": True, "false": False, "null": None, "undefined": None}


class _Reader:
    def __init__(self, source: str) -> None:
        self.tokens = tokenize(source)
        self.position = 0
        self.depth = 0

    @property
    def token(self) -> Token:
        return self.tokens[self.position]

    def at(self, *texts: str) -> bool:
        return self.token.kind in ("punctuation", "name") and self.token.text in texts

    def take(self, *texts: str) -> str | None:
        if not self.at(*texts):
            return None
        self.position += 1
        return self.tokens[self.position - 1].text

    def need(self, text: str) -> None:
        if self.take(text) is None:
            raise unsupported(f"{text!r} is expected at character {self.token.offset}, not {self.token.text[:20]!r}")

    def name(self) -> str:
        if self.token.kind != "name":
            raise unsupported(f"a name is expected at character {self.token.offset}")
        self.position += 1
        return self.tokens[self.position - 1].text

    # Statements

    def script(self) -> Script:
        constants: list[tuple[str, Expression]] = []
        registered: Expression | None = None
        while self.token.kind != "end":
            if self.take(";"):
                continue
            if self.at("import"):
                self.skip_import()
            elif self.at("export", "const", "let", "var"):
                self.take("export")
                constants.append(self.constant())
            elif self.at("$", "jQuery"):
                registered = self.registration(constants)
            elif self.at("registerMvuSchema"):
                registered = self.registered()
            else:
                raise unsupported(f"the statement at {self.token.text[:20]!r} is not one of a schema")
        if registered is None:
            found = [value for name, value in constants if name in ("Schema", "schema")]
            if not found:
                raise unsupported("it registers no schema")
            registered = found[-1]
        return Script(tuple(constants), registered)

    def skip_import(self) -> None:
        start = self.position
        while self.token.kind not in ("string", "end"):
            self.position += 1
        names = [token.text for token in self.tokens[start : self.position] if token.kind == "name"]
        address = self.token.text[1:-1]
        if set(names) - {"import", "registerMvuSchema", "from"} or not re.fullmatch(
            r"https://\S+/mvu_zod\.js", address
        ):
            raise unsupported("only registerMvuSchema may be imported, from an https address of mvu_zod.js")
        self.position += 1

    def constant(self) -> tuple[str, Expression]:
        if self.take("const", "let", "var") is None:
            raise unsupported("only constants can be exported")
        name = self.name()
        self.need("=")
        return name, self.expression()

    def registration(self, constants: list[tuple[str, Expression]]) -> Expression:
        """``$(() => { registerMvuSchema(S) })``."""
        self.position += 1
        self.need("(")
        self.need("(")
        self.need(")")
        self.need("=>")
        if not self.take("{"):
            found = self.registered()
        else:
            while self.at("const", "let", "var"):
                constants.append(self.constant())
                self.take(";")
            found = self.registered()
            self.take(";")
            self.need("}")
        self.need(")")
        return found

    def registered(self) -> Expression:
        self.need("registerMvuSchema")
        self.need("(")
        found = self.expression()
        self.need(")")
        return found

    # Expressions

    def expression(self) -> Expression:
        self.depth += 1
        if self.depth > MVU_SCHEMA_DEPTH:
            raise unsupported(f"it is nested over {MVU_SCHEMA_DEPTH} deep")
        try:
            return self.arrow() or self.conditional()
        finally:
            self.depth -= 1

    def arrow(self) -> Expression | None:
        start = self.position
        parameters = self.parameters()
        if parameters is None or not self.take("=>"):
            self.position = start
            return None
        if self.take("{"):
            self.need("return")
            body = self.expression()
            self.take(";")
            self.need("}")
            return Arrow(parameters, body)
        return Arrow(parameters, self.expression())

    def parameters(self) -> tuple[str | Mapping[str, str], ...] | None:
        if self.token.kind == "name":
            return (self.name(),)
        if not self.take("("):
            return None
        found: list[str | Mapping[str, str]] = []
        while not self.take(")"):
            if self.token.kind == "name":
                found.append(self.name())
            elif self.at("{"):
                names = self.destructured()
                if names is None:
                    return None
                found.append(names)
            else:
                return None
            if not self.at(")") and not self.take(","):
                return None
        return tuple(found)

    def destructured(self) -> Mapping[str, str] | None:
        self.need("{")
        names: dict[str, str] = {}
        while not self.take("}"):
            if self.token.kind != "name":
                return None
            key = self.name()
            names[key] = self.name() if self.take(":") else key
            if not self.at("}") and not self.take(","):
                return None
        return names

    def conditional(self) -> Expression:
        condition = self.binary(0)
        if not self.take("?"):
            return condition
        first = self.expression()
        self.need(":")
        return Operation("?", (condition, first, self.expression()))

    def binary(self, level: int) -> Expression:
        if level == len(_LEVELS):
            return self.unary()
        left = self.binary(level + 1)
        while (operator := self.take(*_LEVELS[level])) is not None:
            left = Operation(operator, (left, self.binary(level + 1)))
        return left

    def unary(self) -> Expression:
        operator = self.take("!", "-", "+", "typeof")
        if operator is None:
            return self.postfix()
        self.depth += 1
        if self.depth > MVU_SCHEMA_DEPTH:
            raise unsupported(f"it is nested over {MVU_SCHEMA_DEPTH} deep")
        operand = self.unary()
        self.depth -= 1
        return Operation(f"unary {operator}", (operand,))

    def postfix(self) -> Expression:
        found = self.primary()
        while True:
            if self.take(".", "?."):
                found = Member(found, Literal(self.name()))
            elif self.take("["):
                found = Member(found, self.expression())
                self.need("]")
            elif self.at("("):
                found = Called(found, self.list("(", ")"))
            else:
                return found

    def list(self, opening: str, closing: str) -> tuple[Expression, ...]:
        self.need(opening)
        items: list[Expression] = []
        while not self.take(closing):
            items.append(self.expression())
            if not self.at(closing):
                self.need(",")
        return tuple(items)

    def primary(self) -> Expression:
        token = self.token
        if token.kind == "string":
            self.position += 1
            return Literal(unquoted(token.text))
        if token.kind == "number":
            self.position += 1
            return Literal(number_of(token.text))
        if token.kind == "regex":
            self.position += 1
            end = token.text.rindex("/")
            return Pattern(token.text[1:end], token.text[end + 1 :])
        if token.kind == "name":
            self.position += 1
            return Literal(_WORDS[token.text]) if token.text in _WORDS else Name(token.text)
        if self.at("{"):
            return self.object()
        if self.at("["):
            return ListLiteral(self.list("[", "]"))
        if self.take("("):
            inner = self.expression()
            self.need(")")
            return inner
        raise unsupported(f"{token.text[:20]!r} is not expected at character {token.offset}")

    def object(self) -> Expression:
        self.need("{")
        members: list[tuple[Expression | None, Expression]] = []
        while not self.take("}"):
            if self.take("..."):
                members.append((None, self.expression()))
            elif self.take("["):
                key = self.expression()
                self.need("]")
                self.need(":")
                members.append((key, self.expression()))
            else:
                members.append(self.member())
            if not self.at("}"):
                self.need(",")
        return ObjectLiteral(tuple(members))

    def member(self) -> tuple[Expression, Expression]:
        token = self.token
        if token.kind not in ("string", "number", "name"):
            raise unsupported(f"a key is expected at character {token.offset}")
        self.position += 1
        key = unquoted(token.text) if token.kind == "string" else token.text
        if token.kind == "name" and not self.at(":"):
            return Literal(key), Name(key)
        self.need(":")
        return Literal(key), self.expression()


def parse_script(source: str) -> Script:
    """A schema script as a tree.

    Raises:
        MvuError: ``MVU_SCHEMA_CODE`` for anything outside the subset.
    """
    try:
        return _Reader(source).script()
    except RecursionError:
        raise unsupported("it is nested too deeply") from None
