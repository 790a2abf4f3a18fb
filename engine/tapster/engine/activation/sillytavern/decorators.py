"""Decorator lines at the head of an entry's content.

Source: the recorded behaviour in st_world_info.jsonl, area decorators.
"""

ACTIVATE, DONT_ACTIVATE = "@@activate", "@@dont_activate"
_KNOWN = (ACTIVATE, DONT_ACTIVATE)


def split_decorators(content: str) -> tuple[tuple[str, ...], str]:
    """The decorator lines at the head of a content, and the content without them.

    A line ``@@@name`` stands in for an unknown decorator on the line before it, else it is ignored.
    """
    if not content.startswith("@@"):
        return (), content
    lines = content.split("\n")
    found: list[str] = []
    after_unknown = False
    for number, line in enumerate(lines):
        if not line.startswith("@@"):
            return tuple(found), "\n".join(lines[number:])
        fallback = line.startswith("@@@")
        if fallback and not after_unknown:
            continue
        plain = line[1:] if fallback else line
        after_unknown = not plain.startswith(_KNOWN)
        if not after_unknown:
            found.append(plain)
    return tuple(found), content
