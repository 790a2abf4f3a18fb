"""Value rules of world books: what each kind accepts, and the warning when it does not.

Source: spec/resources §6.3 "Value rules".
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from tapster.engine.ecma import Json, is_number, is_safe_integer, quote, to_number, trim

from .model import Diagnostic, Severity
from .table import LOGICS, POSITION_NAMES, POSITIONS, ROLES, Row

ABSENT: Any = object()
"""The value of a member that is not there."""
_PLAIN_KEY = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_INDEX = re.compile(r'\["((?:[^"\\]|\\.)*)"\]|\[(\d+)\]')
_ENUMERATIONS: Mapping[str, tuple[str, Sequence[str], Mapping[str, str]]] = {
    "position": ("unknown-position", POSITIONS, dict(POSITION_NAMES)),
    "role": ("unknown-role", ROLES, {name: name for name in ROLES}),
    "logic": ("unknown-secondary-logic", LOGICS, {name: name for name in LOGICS}),
}


def member_path(path: str, key: str) -> str:
    """The JSON path of a member."""
    return f"{path}.{key}" if _PLAIN_KEY.fullmatch(key) else f"{path}[{quote(key)}]"


def dotted_path(path: str) -> str:
    """A JSON path (``$.entries["a b"].key``) as member names joined by dots."""
    return _INDEX.sub(lambda match: f".{match[1] or match[2]}", path).removeprefix("$").lstrip(".")


@attrs.define(eq=False)
class Findings:
    """The diagnostics of one read, in the order they are found.

    ``repairs``: the reader may go on where the contract refuses, and names places as they are in the file.
    """

    repairs: bool = False
    items: list[Diagnostic] = attrs.field(factory=list)

    def add(self, code: str, path: str, message: str, value: Json = None, severity: Severity = "warning") -> None:
        """Record one diagnostic."""
        self.items.append(Diagnostic(severity, code, path, message, value))

    @property
    def has_errors(self) -> bool:
        """Whether the book cannot be read."""
        return any(item.severity == "error" for item in self.items)


def read_value(row: Row, value: Json, default: Any, path: str, findings: Findings) -> Any:
    """The value of a field by its row of the table."""
    if value is ABSENT:
        return default
    if row.kind == "string":
        return read_string(value, default, path, findings)
    if row.kind == "boolean":
        return read_boolean(value, default, path, findings)
    if row.kind == "number":
        return read_number(value, default, path, findings, row)
    if row.kind == "strings":
        return read_strings(value, default, path, findings)
    if row.kind == "raw":
        return default if value is None else value
    return _enumerated(row.kind, value, default, path, findings)


def read_string(value: Json, default: str, path: str, findings: Findings) -> str:
    """A string; anything else is a warning and the default."""
    if value is ABSENT or isinstance(value, str):
        return default if value is ABSENT else str(value)
    findings.add("invalid-string", path, f"{path} is not a text; {default!a} is used", value)
    return default


def read_boolean(value: Json, default: bool | None, path: str, findings: Findings) -> bool | None:
    """A boolean; null is the default without a word."""
    if value is ABSENT or value is None or isinstance(value, bool):
        return default if value is ABSENT or value is None else value
    findings.add("invalid-boolean", path, f"{path} is not true or false; {default} is used", value)
    return default


def read_number(value: Json, default: Any, path: str, findings: Findings, row: Row) -> Any:
    """A number in the row's range; a numeric text counts with a remark."""
    if value is ABSENT or (value is None and row.nullable):
        return default if value is ABSENT else None
    number: Any = to_number(value) if isinstance(value, str) else value
    if not is_number(number) or not _fits(number, row):
        findings.add("invalid-number", path, f"{path} is not a number in range; {default} is used", value)
        return default
    if isinstance(value, str):
        findings.add("coerced-number", path, f"{path} is a text; read as the number {number}", value)
    return number


def _fits(number: float, row: Row) -> bool:
    if row.integer and not is_safe_integer(number):
        return False
    return (row.low is None or number >= row.low) and (row.high is None or number <= row.high)


def read_strings(value: Json, default: tuple[str, ...], path: str, findings: Findings) -> tuple[str, ...]:
    """A list of strings; other items are dropped with a warning."""
    if value is ABSENT:
        return default
    if not isinstance(value, list):
        findings.add("invalid-string-array", path, f"{path} is not a list of texts", value)
        return _split(value) if findings.repairs and isinstance(value, str) else default
    texts = tuple([item for item in value if isinstance(item, str)])
    if len(texts) != len(value):
        findings.add("invalid-string-array-item", path, f"{path} holds more than texts; the rest is left out", value)
    return texts


def _split(text: str) -> tuple[str, ...]:
    return tuple([key for part in text.split(",") if (key := trim(part))])


def read_record(value: Json, path: str, findings: Findings) -> Mapping[str, Json]:
    """An object; anything else is a warning and an empty one."""
    if value is ABSENT or isinstance(value, dict):
        return {} if value is ABSENT else value
    findings.add("invalid-object", path, f"{path} is not an object; it counts as empty", value)
    return {}


def _enumerated(kind: str, value: Json, default: Any, path: str, findings: Findings) -> Any:
    code, indexed, names = _ENUMERATIONS[kind]
    if is_safe_integer(value) and 0 <= value < len(indexed):
        return indexed[int(value)]
    if isinstance(value, str) and value in names:
        return names[value]
    if value is not None:
        findings.add(code, path, f"{path} is {ascii(value)[:60]}, which is unknown; {default} is used", value)
    return default
