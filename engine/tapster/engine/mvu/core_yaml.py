"""YAML of the core schema into JSON values: unique keys, no tags, no aliases.

Source: spec/text_and_mvu C2.
"""

import json
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

from tapster.engine.ecma import parse_json, utf8
from tapster.engine.errors import FormatError
from tapster.engine.limits import MVU_MAX_DEPTH, MVU_YAML_BYTES

from .arguments import plain_scalar
from .errors import MvuError

Json: TypeAlias = Any
Events: TypeAlias = Iterator[Any]


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
    except MvuError as error:
        if error.code == "MVU_JSON":
            raise _invalid("a number is not finite") from None
        return event.value
