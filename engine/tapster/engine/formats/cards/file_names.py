"""File names that every system accepts, as SillyTavern derives them from card names.

Source: the vectors of st_cards.
"""

import re

_FORBIDDEN = re.compile(r'[/?<>\\:*|"\x00-\x1f\x80-\x9f]')
_DOTS_ONLY = re.compile(r"\.+")
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\..*)?", re.IGNORECASE)
_TRAILING = re.compile(r"[. ]+$")
_BYTES = 255


def safe_file_name(name: str) -> str:
    """The name without what file systems refuse, at most 255 UTF-8 bytes; empty when nothing is left."""
    text = _FORBIDDEN.sub("", name)
    if _DOTS_ONLY.fullmatch(text) or _RESERVED.fullmatch(text):
        return ""
    return _cut(_TRAILING.sub("", text))


def _cut(text: str) -> str:
    data = text.encode("utf-8", "replace")
    return text if len(data) <= _BYTES else data[:_BYTES].decode("utf-8", "ignore")
