"""Update commands out of a reply: JSON patches and calls, in text order.

Source: spec/text_and_mvu C4.
"""

import re
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import attrs
import json5

from tapster.engine.ecma import is_record, number_text, parse_json, trim, utf8
from tapster.engine.errors import FormatError
from tapster.engine.limits import MVU_JSON5_UNITS, MVU_MAX_COMMANDS, MVU_REPLY_BYTES
from tapster.engine.text.pairs import closed_part

from .arguments import parse_argument, split_call
from .errors import MvuError
from .paths import parse_path, parse_pointer
from .values import check_value

Json: TypeAlias = Any
Op = Literal["set", "add", "insert", "delete", "move"]
Path: TypeAlias = tuple[str, ...]
_CONTAINS = re.compile(r"(?<![\w$])_\.[A-Za-z]\w*\(|<json_?patch>", re.IGNORECASE)
_PATCH = re.compile(r"<json_?patch>(.*?)</json_?patch>", re.IGNORECASE | re.DOTALL)
_PATCH_END = re.compile(r"</json_?patch>", re.IGNORECASE)
_OPEN_PATCH = re.compile(r"<json_?patch>", re.IGNORECASE)
_FENCE = re.compile(r"\A```[A-Za-z0-9]*\s*(.*?)\s*```\Z", re.DOTALL)
_CALL = re.compile(r"(?<![\w$])_\.([A-Za-z]\w*)\(")
_UPDATE_END = re.compile(r"</UpdateVariable>", re.IGNORECASE)
_HISTORY_CUT = re.compile(r"<UpdateVariable>.*?</UpdateVariable>", re.IGNORECASE | re.DOTALL)
_ARITY: dict[str, tuple[Op, int, int]] = {
    "set": ("set", 2, 3), "add": ("add", 2, 2), "insert": ("insert", 2, 3), "assign": ("insert", 2, 3),
    "remove": ("delete", 1, 2), "unset": ("delete", 1, 2), "delete": ("delete", 1, 2),
}  # fmt: skip


class _Absent:
    """The mark of a part that a command doesn't have (None is a value)."""


ABSENT = _Absent()


@attrs.frozen
class Command:
    """One update.

    ``key`` is the place of an insert, ``target`` the victim of a delete, ``source`` where a move starts.
    """

    op: Op
    path: Path
    value: Json = ABSENT
    key: Json = ABSENT
    target: Json = ABSENT
    source: Path | None = None


def contains_update(text: str) -> bool:
    """Whether a reply holds anything to apply."""
    return _CONTAINS.search(text) is not None


def history_text(text: str) -> str:
    """A reply as later requests carry it: without its update blocks."""
    closed = closed_part(text, _UPDATE_END)
    return trim(_HISTORY_CUT.sub("", closed) + text[len(closed) :])


def parse_update(text: str) -> tuple[Command, ...]:
    """Every command of a reply, in text order.

    Raises:
        MvuError: ``MVU_PARSE``, ``MVU_UNSUPPORTED``, ``MVU_LIMIT`` or ``MVU_PATH``; the whole reply fails.
    """
    if len(utf8(text)) > MVU_REPLY_BYTES:
        raise MvuError("MVU_LIMIT", f"the reply is longer than {MVU_REPLY_BYTES} bytes")
    commands: list[Command] = []
    position = 0
    for patch in _PATCH.finditer(closed_part(text, _PATCH_END)):
        commands += _calls(text[position : patch.start()])
        commands += _patch_commands(patch[1])
        position = patch.end()
    rest = text[position:]
    if _OPEN_PATCH.search(rest):
        raise MvuError("MVU_PARSE", "a JSON patch block is not closed")
    commands += _calls(rest)
    if len(commands) > MVU_MAX_COMMANDS:
        raise MvuError("MVU_LIMIT", f"the reply holds more than {MVU_MAX_COMMANDS} commands")
    return tuple(commands)


def _patch_commands(body: str) -> list[Command]:
    body = trim(body)
    fence = _FENCE.match(body)
    operations = _patch_json(trim(fence[1]) if fence else body)
    if not isinstance(operations, list):
        raise MvuError("MVU_PARSE", "a JSON patch is a list of operations")
    return [_operation(operation) for operation in operations]


def _patch_json(body: str) -> Json:
    try:
        return parse_json(body)
    except FormatError:
        if len(body) > MVU_JSON5_UNITS:
            raise MvuError("MVU_PARSE", "a JSON patch is no strict JSON and too long to be read as JSON5") from None
    try:
        return json5.loads(body)
    except (ValueError, RecursionError) as error:
        raise MvuError("MVU_PARSE", f"a JSON patch can't be read: {error}") from None


def _operation(operation: Json) -> Command:
    if not is_record(operation):
        raise MvuError("MVU_PARSE", "an operation of a JSON patch is not an object")
    op = operation.get("op")
    if op not in ("replace", "delta", "add", "insert", "remove", "move"):
        raise MvuError("MVU_UNSUPPORTED", f"the JSON patch operation {ascii(op)[:40]} is not known")
    if op == "move":
        target = _pointer(operation, "path" if "path" in operation else "to")
        return Command("move", target, source=_pointer(operation, "from"))
    path = _pointer(operation, "path")
    if op == "remove":
        return Command("delete", path)
    if "value" not in operation:
        raise MvuError("MVU_PARSE", f"the JSON patch operation {op!r} has no value")
    value = operation["value"]
    check_value(value)
    if op in ("replace", "delta"):
        return Command("set" if op == "replace" else "add", path, value)
    if not path:
        raise MvuError("MVU_UNSUPPORTED", "nothing can be inserted as the root")
    return Command("insert", path[:-1], value, path[-1])


def _pointer(operation: Json, key: str) -> Path:
    text = operation.get(key)
    if not isinstance(text, str):
        raise MvuError("MVU_PARSE", f"an operation of a JSON patch has no {key!r}")
    return parse_pointer(text)


def _calls(text: str) -> list[Command]:
    commands: list[Command] = []
    position = 0
    while (call := _CALL.search(text, position)) is not None:
        known = _ARITY.get(call[1])
        if known is None:
            raise MvuError("MVU_UNSUPPORTED", f"the update command '_.{call[1][:40]}' is not known")
        arguments, position = split_call(text, call.end())
        op, least, most = known
        if not least <= len(arguments) <= most:
            raise MvuError("MVU_PARSE", f"'_.{call[1]}' takes {least} to {most} arguments, not {len(arguments)}")
        commands.append(_call_command(op, arguments))
    return commands


def _call_command(op: Op, arguments: Sequence[str]) -> Command:
    values = [parse_argument(argument) for argument in arguments[1:]]
    path = parse_path(_path_text(parse_argument(arguments[0])))
    if op == "insert":
        return Command("insert", path, values[-1], values[0] if len(values) == 2 else ABSENT)
    if op == "delete":
        return Command("delete", path, target=values[0] if values else ABSENT)
    return Command(op, path, values[-1])


def _path_text(value: Json) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return number_text(value)
    raise MvuError("MVU_PARSE", "the path of an update command is not text")
