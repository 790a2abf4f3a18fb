"""How SillyTavern reads a key, made ready for a book's index.

Source: the recorded behaviour in st_world_info.jsonl, areas plain_keys, regex_keys, case_whole_word, macros.
"""

import re
from collections.abc import Callable

import attrs

from tapster.engine.ecma import trim
from tapster.engine.text.keyword_index import Keyword
from tapster.engine.text.ports import InvalidPattern, RegexEngine, ScriptBudgetExceeded

from .macros import may_hold_macros

_REGEX = re.compile(r"/(.+?)/([gimsuy]*)", re.DOTALL)
_BARE_SLASH = re.compile(r"(?:^|[^\\])/")
SEGMENT_MARK = "\x01"


@attrs.frozen
class ScanKey:
    """One key of an entry.

    Attributes:
        key: as written.
        number: its keyword in the index; None for the other kinds.
        pattern: pattern and flags of a regex key.
        dynamic: it holds macros (or the mark between messages), so it is read anew in each scan.
        blank: nothing is left after trimming.
    """

    key: str
    number: int | None = None
    pattern: tuple[str, str] | None = None
    dynamic: bool = False
    blank: bool = False


def read_key(key: str, keyword: Callable[[str], Keyword], number_of: Callable[[Keyword], int]) -> ScanKey:
    """A key made ready; whether a regex compiles is only known when it runs."""
    if may_hold_macros(key) or SEGMENT_MARK in key:
        return ScanKey(key, dynamic=True)
    text = trim(key)
    if not text:
        return ScanKey(key, blank=True)
    pattern = split_pattern(text)
    if pattern is not None:
        return ScanKey(key, pattern=pattern)
    return ScanKey(key, number=number_of(keyword(text)))


def split_pattern(text: str) -> tuple[str, str] | None:
    """Pattern and flags of a key written as ``/pattern/flags``; one with a bare slash inside is plain text."""
    match = _REGEX.fullmatch(text)
    if match is None or _BARE_SLASH.search(match[1]):
        return None
    return match[1].replace("\\/", "/", 1), match[2]


def is_pattern(pattern: tuple[str, str], regex: RegexEngine) -> bool:
    """Whether a pattern compiles; one that doesn't is looked for as plain text."""
    try:
        regex.check(*pattern)
    except InvalidPattern:
        return False
    except ScriptBudgetExceeded:
        return True
    return True
