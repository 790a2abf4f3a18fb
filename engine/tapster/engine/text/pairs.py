"""Where pairs of marks can be complete.

A pattern such as ``{{(.*?)}}`` looks through the rest of a text once for every opening that nothing closes, so a
hostile file costs the square of its length. Behind the last closing mark there is no pair: it isn't searched.
"""

import re


def closed_part(text: str, close: str | re.Pattern[str]) -> str:
    """The text up to the end of its last closing mark; empty when there is none."""
    if isinstance(close, str):
        end = text.rfind(close)
        return "" if end < 0 else text[: end + len(close)]
    return text[: max((match.end() for match in close.finditer(text)), default=0)]
