"""What a key of an entry is: nothing, a plain text, or a JavaScript regular expression.

Source: spec/activation §5.2.
"""

from typing import Literal, TypeAlias

import attrs

from tapster.engine import limits
from tapster.engine.ecma import trim, utf16_length
from tapster.engine.text.keyword_index import Keyword, Span, find_keyword
from tapster.engine.text.ports import InvalidPattern, RegexEngine, ScriptBudgetExceeded

KeyKind = Literal["plain", "regex"]
KeySet = Literal["primary", "secondary"]
UNSAFE_DISABLED = "unsafe-regex-disabled"
TOO_LONG = "regex-too-long"
UNSUPPORTED_FLAGS = "unsupported-regex-flags"
INVALID = "invalid-regex"
OVER_BUDGET = "regex-budget-exceeded"
_FLAGS = frozenset("imsuv")


@attrs.frozen
class KeyRules:
    """How keys are read: regex keys are off unless allowed; lengths are UTF-16 code units."""

    allow_unsafe_regex: bool = False
    max_regex_length: int = limits.MAX_KEY_REGEX_CHARACTERS


@attrs.frozen
class BlankKey:
    """A key that is blank after trimming; it never matches."""

    key: str


@attrs.frozen
class PlainKey:
    """A key that is looked for as it stands."""

    key: str


@attrs.frozen
class RegexKey:
    """A key that is a pattern between slashes."""

    key: str
    pattern: str
    flags: str


@attrs.frozen
class RefusedKey:
    """A regex key that is not run; ``code`` says why."""

    key: str
    code: str


ParsedKey: TypeAlias = BlankKey | PlainKey | RegexKey | RefusedKey


@attrs.frozen
class InvalidKey:
    """A key of an entry that could not be used, as the audit reports it."""

    key: str
    key_set: KeySet
    code: str


@attrs.frozen
class KeyHit:
    """A key that matched, and where: code points of the text that was searched."""

    key: str
    start: int
    end: int


@attrs.frozen
class KeyMatch:
    """The outcome for one key; ``code`` names why a regex key was not usable."""

    matched: bool
    kind: KeyKind
    code: str | None = None
    span: Span | None = None


def split_regex(key: str) -> tuple[str, str] | None:
    """Pattern and flags of a key in regex form, or None: the last unescaped slash ends the pattern."""
    text = trim(key)
    if not text.startswith("/"):
        return None
    end = text.rfind("/")
    while end > 0:
        before = text[:end]
        if (len(before) - len(before.rstrip("\\"))) % 2 == 0:
            return text[1:end], text[end + 1 :]
        end = text.rfind("/", 0, end)
    return None


def parse_key(key: str, rules: KeyRules) -> ParsedKey:
    """What a key is under the rules; whether its pattern compiles is only known when it runs."""
    if not trim(key):
        return BlankKey(key)
    parts = split_regex(key)
    if parts is None:
        return PlainKey(key)
    pattern, flags = parts
    if not rules.allow_unsafe_regex:
        return RefusedKey(key, UNSAFE_DISABLED)
    if utf16_length(pattern) > rules.max_regex_length:
        return RefusedKey(key, TOO_LONG)
    if len(set(flags)) < len(flags) or not _FLAGS.issuperset(flags):
        return RefusedKey(key, UNSUPPORTED_FLAGS)
    return RegexKey(key, pattern, flags)


def match_regex(key: RegexKey, text: str, regex: RegexEngine | None) -> KeyMatch:
    """One search with a regex key; a pattern that fails or runs away is no match, with its code."""
    if regex is None:
        return KeyMatch(False, "regex", UNSAFE_DISABLED)
    try:
        found = regex.find(key.pattern, key.flags, text)
    except InvalidPattern:
        return KeyMatch(False, "regex", INVALID)
    except ScriptBudgetExceeded:
        return KeyMatch(False, "regex", OVER_BUDGET)
    if found is None:
        return KeyMatch(False, "regex")
    return KeyMatch(True, "regex", None, (code_point(text, found.start), code_point(text, found.end)))


def match_key(
    key: str,
    text: str,
    *,
    case_sensitive: bool = False,
    whole_word: bool = False,
    rules: KeyRules | None = None,
    regex: RegexEngine | None = None,
) -> KeyMatch:
    """Whether one key is in a text."""
    parsed = parse_key(key, rules or KeyRules())
    if isinstance(parsed, RefusedKey):
        return KeyMatch(False, "regex", parsed.code)
    if isinstance(parsed, RegexKey):
        return match_regex(parsed, text, regex)
    if isinstance(parsed, BlankKey):
        return KeyMatch(False, "plain")
    span = find_keyword(Keyword(key, case_sensitive, whole_word), text)
    return KeyMatch(span is not None, "plain", None, span)


def code_point(text: str, units: int) -> int:
    """The code point index of a UTF-16 offset; an offset inside a pair counts as before it."""
    if text.isascii():
        return units
    return len(text.encode("utf-16-le", "surrogatepass")[: 2 * units].decode("utf-16-le", "ignore"))
