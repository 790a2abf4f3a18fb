"""YAML of the core schema into JSON values: unique keys, no tags, no aliases.

Source: spec/text_and_mvu C2.
"""

from typing import Any, TypeAlias

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.events import AliasEvent
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from tapster.engine.ecma import utf8
from tapster.engine.limits import MVU_YAML_BYTES

from .arguments import plain_scalar
from .errors import MvuError

Json: TypeAlias = Any


def parse_core_yaml(text: str) -> Json:
    """One YAML document.

    Raises:
        MvuError: ``MVU_INITIALIZATION_INVALID``.
    """
    if len(utf8(text)) > MVU_YAML_BYTES:
        raise _invalid(f"it is larger than {MVU_YAML_BYTES} bytes")
    yaml = YAML(typ="safe", pure=True)
    try:
        for event in yaml.parse(text):
            if isinstance(event, AliasEvent) or getattr(event, "tag", None) is not None:
                raise _invalid("tags and aliases are not allowed")
        node = yaml.compose(text)
        return None if node is None else _value(node)
    except YAMLError as error:
        raise _invalid(str(error).splitlines()[0] if str(error) else "it is no YAML") from None
    except RecursionError:
        raise _invalid("it is nested too deeply") from None


def _invalid(reason: str) -> MvuError:
    return MvuError("MVU_INITIALIZATION_INVALID", f"an [initvar] entry can't be read: {reason}")


def _value(node: Node) -> Json:
    if isinstance(node, ScalarNode):
        return _scalar(node)
    if isinstance(node, SequenceNode):
        return [_value(item) for item in node.value]
    assert isinstance(node, MappingNode)
    members: dict[str, Json] = {}
    for key_node, value_node in node.value:
        if not isinstance(key_node, ScalarNode):
            raise _invalid("a key is no scalar")
        if key_node.value in members:
            raise _invalid(f"the key {key_node.value[:40]!r} occurs twice")
        members[key_node.value] = _value(value_node)
    return members


def _scalar(node: ScalarNode) -> Json:
    if node.style is not None:
        return node.value
    try:
        return plain_scalar(node.value)
    except MvuError as error:
        if error.code == "MVU_JSON":
            raise _invalid("a number is not finite") from None
        return node.value
