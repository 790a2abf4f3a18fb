"""The tokens of a schema script, and the values of its literals."""

import re

import attrs

from tapster.engine.limits import MVU_SCHEMA_SOURCE_UNITS

from .nodes import unsupported

_SKIP = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/)+", re.DOTALL)
_NUMBER = re.compile(r"(?:0x[0-9a-fA-F]+|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)")
_NAME = re.compile(r"[A-Za-z_$\u0080-\uffff][\w$\u0080-\uffff]*")
_STRING = re.compile(r"'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\"|`(?:[^`\\$]|\\.|\$(?!\{))*`", re.DOTALL)
_REGEX = re.compile(r"/((?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+)/([a-z]*)")
_PUNCTUATION = re.compile(r"=>|\.\.\.|\?\.|===|!==|==|!=|<=|>=|&&|\|\||\?\?|[-+*/%<>=!?:;,.(){}\[\]]")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "0": "\0"}


@attrs.frozen
class Token:
    kind: str
    text: str
    offset: int


def tokenize(source: str) -> list[Token]:
    """The tokens of a script.

    Raises:
        MvuError: ``MVU_SCHEMA_CODE``.
    """
    if len(source) > MVU_SCHEMA_SOURCE_UNITS:
        raise unsupported(f"it is longer than {MVU_SCHEMA_SOURCE_UNITS} characters")
    tokens: list[Token] = []
    position = 0
    while position < len(source):
        skip = _SKIP.match(source, position)
        if skip is not None:
            position = skip.end()
            continue
        for kind, pattern in _token_kinds(tokens):
            match = pattern.match(source, position)
            if match is not None:
                tokens.append(Token(kind, match[0], position))
                position = match.end()
                break
        else:
            raise unsupported(f"{source[position : position + 20]!r} is not understood")
    tokens.append(Token("end", "", position))
    return tokens


def _token_kinds(before: list[Token]) -> tuple[tuple[str, re.Pattern[str]], ...]:
    kinds = (("string", _STRING), ("number", _NUMBER), ("name", _NAME), ("punctuation", _PUNCTUATION))
    value_ended = bool(before) and (before[-1].kind in ("name", "number", "string") or before[-1].text in (")", "]"))
    return kinds if value_ended else (("regex", _REGEX), *kinds)


def unquoted(text: str) -> str:
    return re.sub(
        r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))",
        lambda match: chr(int(match[1] or match[2], 16)) if match[1] or match[2] else _ESCAPES.get(match[3], match[3]),
        text[1:-1],
        flags=re.DOTALL,
    )


def number_of(text: str) -> float:
    if text.lower().startswith("0x"):
        return int(text, 16)
    value = float(text)
    return int(value) if value.is_integer() and abs(value) < 2**53 else value
