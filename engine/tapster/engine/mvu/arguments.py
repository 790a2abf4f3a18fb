"""Arguments of update calls: split on top-level commas, each a JSON5 value, a back-tick text, arithmetic or a scalar.

Source: spec/text_and_mvu C4 "Calls".
"""

import math
import re
from typing import Any, TypeAlias

import json5

from tapster.engine.ecma import parse_json, trim
from tapster.engine.errors import FormatError
from tapster.engine.limits import MVU_ARITHMETIC_UNITS, MVU_JSON5_UNITS

from .core_yaml import parse_scalar
from .errors import MvuError
from .values import check_value

Json: TypeAlias = Any
_QUOTES = "'\"`"
_CLOSERS = {"(": ")", "[": "]", "{": "}"}
_SIMPLE_TEXT = re.compile(r"'([^'\\\n]*)'|\"([^\"\\\n]*)\"")
_ARITHMETIC = re.compile(r"[0-9.eE+\-*/%()\s]+")
_TOKEN = re.compile(r"\s*(?:((?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)|(.))")
_LEADING_ZERO = re.compile(r"(?<![0-9.])0[0-9]")


def split_call(text: str, position: int) -> tuple[list[str], int]:
    """The arguments from behind an opening parenthesis, and the offset behind the closing one.

    Raises:
        MvuError: ``MVU_PARSE`` when the call never ends.
    """
    arguments: list[str] = []
    start = position
    expected: list[str] = []
    while position < len(text):
        character = text[position]
        if character in _QUOTES:
            position = _end_of_quote(text, position)
            continue
        if character in _CLOSERS:
            expected.append(_CLOSERS[character])
        elif expected and character == expected[-1]:
            expected.pop()
        elif not expected and character in ",)":
            arguments.append(trim(text[start:position]))
            start = position + 1
            if character == ")":
                return ([] if arguments == [""] else arguments), position + 1
        position += 1
    raise MvuError("MVU_PARSE", "an update command is not closed; a ')' is missing")


def _end_of_quote(text: str, position: int) -> int:
    quote = text[position]
    position += 1
    while position < len(text):
        if text[position] == "\\":
            position += 1
        elif text[position] == quote:
            return position + 1
        position += 1
    raise MvuError("MVU_PARSE", f"a text in {quote} is not closed")


def parse_argument(text: str) -> Json:
    """One argument as a value.

    Raises:
        MvuError: ``MVU_PARSE`` when it is none of the forms; as ``check_value`` for what is no plain JSON.
    """
    value = _parsed(text)
    check_value(value)
    return value


def _parsed(text: str) -> Json:
    if text.startswith("`") and text.endswith("`") and len(text) > 1:
        return text[1:-1]
    simple = _SIMPLE_TEXT.fullmatch(text)
    if simple is not None:
        return simple[1] if simple[1] is not None else simple[2]
    try:
        return parse_json(text)
    except FormatError:
        pass
    found, value = _parse_json5(text)
    if found:
        return value
    if len(text) <= MVU_ARITHMETIC_UNITS and _ARITHMETIC.fullmatch(text) and not _LEADING_ZERO.search(text):
        result = _Arithmetic(text).value()
        if result is not None:
            return result
    return parse_scalar(text)


def _parse_json5(text: str) -> tuple[bool, Json]:
    if text[:1] not in _QUOTES + "{[+-./" and not text[:1].isdigit() and text not in ("Infinity", "NaN"):
        return False, None
    if len(text) > MVU_JSON5_UNITS:
        raise MvuError("MVU_LIMIT", f"a value that is no strict JSON is longer than {MVU_JSON5_UNITS} characters")
    try:
        return True, json5.loads(text, allow_duplicate_keys=True)
    except (ValueError, RecursionError):
        return False, None


class _Malformed(Exception):
    """A text out of the characters of arithmetic that is none, like ``50%``."""


class _Arithmetic:
    """Sums, products and parentheses over numbers; the length of the text bounds the work."""

    def __init__(self, text: str) -> None:
        self.tokens = [match[1] or match[2] for match in _TOKEN.finditer(text) if match[1] or trim(match[2])]
        self.position = 0

    def value(self) -> float | None:
        """The result, or None for a text that is no arithmetic after all."""
        try:
            result = self.sum()
        except (ZeroDivisionError, OverflowError, RecursionError):
            raise MvuError("MVU_JSON", "an arithmetic value is not a finite number") from None
        except _Malformed:
            return None
        if self.position < len(self.tokens):
            return None
        if not math.isfinite(result):
            raise MvuError("MVU_JSON", "an arithmetic value is not a finite number")
        return int(result) if float(result).is_integer() and abs(result) < 2**53 else result

    def take(self, symbols: str) -> str | None:
        if self.position < len(self.tokens) and self.tokens[self.position] in tuple(symbols):
            self.position += 1
            return self.tokens[self.position - 1]
        return None

    def sum(self) -> float:
        total = self.product()
        while (sign := self.take("+-")) is not None:
            term = self.product()
            total = total + term if sign == "+" else total - term
        return total

    def product(self) -> float:
        total = self.factor()
        while (sign := self.take("*/%")) is not None:
            other = self.factor()
            total = total * other if sign == "*" else total / other if sign == "/" else math.fmod(total, other)
        return total

    def factor(self) -> float:
        sign = self.take("+-")
        if sign is not None:
            return -self.factor() if sign == "-" else self.factor()
        if self.take("("):
            inner = self.sum()
            if not self.take(")"):
                raise _Malformed
            return inner
        token = self.tokens[self.position] if self.position < len(self.tokens) else ""
        if not token[:1].isdigit() and not token.startswith("."):
            raise _Malformed
        self.position += 1
        return float(token)
