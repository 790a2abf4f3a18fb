"""Finding marked fragments in a text.

Offsets are UTF-16 code units, half-open. Source: spec/history_policy §2.
"""

from collections.abc import Iterable, Iterator
from typing import Literal

import attrs

from tapster.engine.ecma import utf16_length, utf16_slice

from .policy import FragmentRule

Warning_ = Literal["AMBIGUOUS_FRAGMENT", "UNCLOSED_FRAGMENT"]


@attrs.frozen
class FragmentRange:
    """One cut [start, end) of one rule."""

    start: int
    end: int
    rule_id: str


@attrs.frozen
class Fragments:
    """What one rule found in one text; a warning voids all of it."""

    ranges: tuple[FragmentRange, ...] = ()
    warning: Warning_ | None = None


@attrs.frozen
class MergedRange:
    """Overlapping cuts of several rules as one; rules in start order."""

    start: int
    end: int
    rule_ids: tuple[str, ...]


@attrs.frozen
class _Token:
    is_start: bool
    start: int
    end: int


def find_fragments(text: str, rule: FragmentRule) -> Fragments:
    """The fragments of one rule, or the reason why none is taken."""
    tokens = _line_tokens(text, rule) if rule.mode == "lines" else _literal_tokens(text, rule)
    ranges: list[FragmentRange] = []
    opened: _Token | None = None
    for token in tokens:
        if token.is_start == (opened is not None) or (opened is not None and token.start < opened.end):
            return Fragments(warning="AMBIGUOUS_FRAGMENT")
        if opened is None:
            opened = token
        else:
            ranges.append(FragmentRange(opened.start, token.end, rule.id))
            opened = None
    if opened is not None:
        return Fragments(warning="UNCLOSED_FRAGMENT")
    return Fragments(tuple(ranges))


def _line_tokens(text: str, rule: FragmentRule) -> Iterator[_Token]:
    position = 0
    is_fenced = False
    lines = text.split("\n")
    for number, line in enumerate(lines, start=1):
        end = position + utf16_length(line)
        content = line.removesuffix("\r")
        if content.startswith(("```", "~~~")):
            is_fenced = not is_fenced
        elif not is_fenced and content in (rule.start, rule.end):
            yield _Token(content == rule.start, position, end + (number < len(lines)))
        position = end + 1


def _literal_tokens(text: str, rule: FragmentRule) -> list[_Token]:
    tokens = [*_occurrences(text, rule.start, True), *_occurrences(text, rule.end, False)]
    return sorted(tokens, key=lambda token: token.start)


def _occurrences(text: str, needle: str, is_start: bool) -> Iterator[_Token]:
    length = utf16_length(needle)
    offset, units = 0, 0
    while needle and (found := text.find(needle, offset)) >= 0:
        units += utf16_length(text[offset:found])
        yield _Token(is_start, units, units + length)
        units += length
        offset = found + len(needle)


def merge_ranges(ranges: Iterable[FragmentRange]) -> tuple[MergedRange, ...]:
    """Ranges of all rules with overlapping ones joined; touching ones stay apart."""
    merged: list[MergedRange] = []
    for found in sorted(ranges, key=lambda item: (item.start, item.end)):
        last = merged[-1] if merged else None
        if last is None or found.start >= last.end:
            merged.append(MergedRange(found.start, found.end, (found.rule_id,)))
            continue
        rule_ids = last.rule_ids if found.rule_id in last.rule_ids else (*last.rule_ids, found.rule_id)
        merged[-1] = MergedRange(last.start, max(last.end, found.end), rule_ids)
    return tuple(merged)


def cut(text: str, ranges: Iterable[MergedRange]) -> str:
    """The text without the ranges."""
    parts, position = [], 0
    for item in ranges:
        parts.append(utf16_slice(text, position, item.start))
        position = item.end
    return "".join([*parts, utf16_slice(text, position)])
