"""YAML of the core schema into JSON values: unique keys, no tags, no aliases.

Source: spec/text_and_mvu C2.
"""

import json
import math
import re
from collections.abc import Iterator
from typing import Any, TypeAlias

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    NodeEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from tapster.engine.ecma import parse_json, to_number, utf8
from tapster.engine.errors import FormatError
from tapster.engine.limits import MVU_JSON5_UNITS, MVU_MAX_DEPTH, MVU_YAML_BYTES

from .errors import MvuError

Json: TypeAlias = Any
Events: TypeAlias = Iterator[Any]
_DECIMAL = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_INTEGER = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_NOT_PLAIN = re.compile(r"\A[\[\]{},&*!|>@%\"'`#]|\A[-?:](?:\s|\Z)|:(?:\s|\Z)|\s#|[\r\n]")
"""What a text may hold only if it is more than a plain scalar on one line."""


def parse_core_yaml(text: str) -> Json:
    """One YAML document.

    Raises:
        MvuError: ``MVU_INITIALIZATION_INVALID``.
    """
    if len(utf8(text)) > MVU_YAML_BYTES:
        raise _invalid(f"it is larger than {MVU_YAML_BYTES} bytes")
    try:
        if text.lstrip()[:1] == "{" and _is_json(text):
            return parse_json(text)
        return _document(YAML(typ="safe", pure=True).parse(text))
    except YAMLError as error:
        raise _invalid(str(error).splitlines()[0] if str(error) else "it is no YAML") from None
    except (RecursionError, ValueError) as error:
        # ValueError: the scanner's own answer to an escape like \UFFFFFFFF.
        raise _invalid(f"it is nested too deeply or holds an impossible character ({type(error).__name__})") from None


def parse_scalar(text: str) -> Json:
    """One scalar, plain or quoted, perhaps over several lines.

    Raises:
        MvuError: ``MVU_PARSE`` for text that is no scalar, ``MVU_JSON`` for a number that is not finite.
    """
    if not _NOT_PLAIN.search(text):
        return plain_scalar(text)
    try:
        events = list(YAML(typ="safe", pure=True).parse(text)) if len(text) <= MVU_JSON5_UNITS else []
    except (YAMLError, ValueError, RecursionError):
        events = []
    nodes = [event for event in events if isinstance(event, NodeEvent)]
    only = nodes[0] if len(nodes) == 1 else None
    if not isinstance(only, ScalarEvent) or only.tag is not None:
        raise MvuError("MVU_PARSE", f"{text[:80]!r} is not a value; quote it if it is meant as text")
    return only.value if only.style is not None else plain_scalar(only.value)


def plain_scalar(text: str) -> Json:
    """What a plain scalar of the core schema means.

    Raises:
        MvuError: ``MVU_JSON`` for a number that is not finite.
    """
    if text in ("", "~", "null", "Null", "NULL"):
        return None
    if text in ("true", "True", "TRUE"):
        return True
    if text in ("false", "False", "FALSE"):
        return False
    if not (_INTEGER.fullmatch(text) or _DECIMAL.fullmatch(text) or _NOT_FINITE.fullmatch(text)):
        return text
    number = to_number(text)
    if number is None or not math.isfinite(number):
        raise MvuError("MVU_JSON", f"{text[:80]} is not a finite number")
    return number


def _invalid(reason: str) -> MvuError:
    return MvuError("MVU_INITIALIZATION_INVALID", f"an [initvar] entry can't be read: {reason}")


def _is_json(text: str) -> bool:
    """Whether a text is JSON, which is read a hundred times faster than YAML and means the same."""
    try:
        json.loads(text, object_pairs_hook=_members)
        parse_json(text)
    except (json.JSONDecodeError, FormatError):
        return False
    return True


def _members(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise _invalid("a key occurs twice")
    return members


def _document(events: Events) -> Json:
    value: Json = None
    documents = 0
    for event in events:
        if isinstance(event, NodeEvent):
            value = _value(event, events, 1)
        elif isinstance(event, DocumentStartEvent):
            documents += 1
            if documents > 1:
                raise _invalid("it holds more than one document")
    return value


def _value(event: NodeEvent, events: Events, depth: int) -> Json:
    if isinstance(event, AliasEvent) or getattr(event, "tag", None) is not None:
        raise _invalid("tags and aliases are not allowed")
    if depth > MVU_MAX_DEPTH:
        raise _invalid(f"it is nested over {MVU_MAX_DEPTH} deep")
    if isinstance(event, ScalarEvent):
        return _scalar(event)
    if isinstance(event, SequenceStartEvent):
        return [_value(item, events, depth + 1) for item in _until(events, SequenceEndEvent)]
    members: dict[str, Json] = {}
    for key_event in _until(events, MappingEndEvent):
        key = _key(key_event)
        if key in members:
            raise _invalid(f"the key {key[:40]!r} occurs twice")
        members[key] = _value(next(events), events, depth + 1)
    return members


def _until(events: Events, end: type) -> Events:
    for event in events:
        if isinstance(event, end):
            return
        yield event


def _key(event: Any) -> str:
    if not isinstance(event, ScalarEvent) or event.tag is not None:
        raise _invalid("a key is no plain scalar")
    return str(event.value)


def _scalar(event: ScalarEvent) -> Json:
    if event.style is not None:
        return event.value
    try:
        return plain_scalar(event.value)
    except MvuError:
        raise _invalid("a number is not finite") from None
