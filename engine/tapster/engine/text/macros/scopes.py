"""Scoped macros: which closing tag belongs to which opening one, ``{{else}}``, and the blanks of a scope's content."""

from collections.abc import Callable, Sequence

from tapster.engine.ecma import WHITE_SPACE

from .syntax import Macro, Node

HasRoom = Callable[[Macro], bool]


def pair_scopes(nodes: Sequence[Node], has_room: HasRoom) -> dict[int, int]:
    """Index of each opening tag that has a closing one → index of that.

    Tags of one name nest. An opening tag without room for a further argument does not count for nesting, but the
    first such one takes a closing tag that is left over.
    """
    closers = {node.name.lower() for node in nodes if isinstance(node, Macro) and node.closing}
    if not closers:
        return {}
    open_tags: dict[str, list[int]] = {}
    full_tags: dict[str, int] = {}
    pairs: dict[int, int] = {}
    for index, node in enumerate(nodes):
        if not isinstance(node, Macro) or node.name.lower() not in closers:
            continue
        name = node.name.lower()
        stack = open_tags.setdefault(name, [])
        if node.closing:
            if stack:
                pairs[stack.pop()] = index
            elif name in full_tags:
                pairs[full_tags.pop(name)] = index
        elif has_room(node):
            stack.append(index)
        elif not stack:
            full_tags.setdefault(name, index)
    return pairs


def split_else(nodes: Sequence[Node], has_room: HasRoom) -> tuple[Sequence[Node], Sequence[Node]]:
    """The content of an ``if`` before and after its first ``{{else}}``."""
    pairs = pair_scopes(nodes, has_room)
    index = 0
    while index < len(nodes):
        node = nodes[index]
        if isinstance(node, Macro) and node.name.lower() == "else" and not node.closing and not node.arguments:
            return nodes[:index], nodes[index + 1 :]
        index = pairs.get(index, index) + 1
    return nodes, ()


def dedent(text: str) -> str:
    """The content of a scope without the indentation of its first line and without blanks around it."""
    lines = text.split("\n")
    first = next((line for line in lines if line.strip(WHITE_SPACE)), "")
    indent = len(first) - len(first.lstrip(WHITE_SPACE))
    if indent:
        lines = [line[min(indent, len(line) - len(line.lstrip(WHITE_SPACE))) :] for line in lines]
    return "\n".join(lines).strip(WHITE_SPACE)
