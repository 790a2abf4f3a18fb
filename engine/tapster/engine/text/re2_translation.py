"""JavaScript patterns that mean the same in a linear-time engine, translated; everything else is left alone.

The parser accepts a subset in which leftmost-first RE2 and a backtracking ECMAScript engine provably agree, and gives
None for the rest (look-around, back-references, loops over empty bodies, captures that a later iteration resets ...).
What is not accepted is not an error: the caller takes the exact engine.

Source: style §6 "JS regex"; docs/text.md "The fast path".
"""

import functools

import attrs

from tapster.engine.limits import REGEX_FAST_PATTERN_UNITS, REGEX_FAST_REPEAT

MAX_CODE = 0x10FFFF
FIRST_SURROGATE, LAST_SURROGATE = 0xD800, 0xDFFF
LINE_ENDS = ((0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029))
DIGITS = ((0x30, 0x39),)
WORD = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
SPACE = (
    (0x09, 0x0D), (0x20, 0x20), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029), (0x202F, 0x202F),
    (0x205F, 0x205F), (0x3000, 0x3000), (0xFEFF, 0xFEFF),
)  # fmt: skip
SHORTHANDS = {"d": DIGITS, "w": WORD, "s": SPACE}
CONTROLS = {"n": 0x0A, "r": 0x0D, "t": 0x09, "v": 0x0B, "f": 0x0C}
SYNTAX = frozenset("^$\\.*+?()[]{}|/")
# Blocks without letter case, in which case-insensitive and exact matching are the same.
CASELESS = ((0x2000, 0x2070), (0x3000, 0x303F), (0x3041, 0x30FF), (0x3400, 0x9FFF), (0xAC00, 0xD7A3), (0xFF00, 0xFF20))
FOLDED_BEYOND_ASCII = (((0x4B, 0x4B), (0x6B, 0x6B)), ((0x53, 0x53), (0x73, 0x73)))

Ranges = tuple[tuple[int, int], ...]


class NotTranslatable(Exception):
    """The pattern is outside the subset (or not JavaScript at all)."""


@attrs.frozen
class Translation:
    """A pattern for RE2 with the conditions under which it holds."""

    pattern: str
    group_names: tuple[tuple[str, int], ...]
    group_count: int
    astral_safe: bool
    """May search text with characters above U+FFFF."""
    plain_line_ends: bool
    """Holds only for text whose line ends are all U+000A."""
    nullable: bool
    bounded: bool
    """No unbounded repetition: one search looks ahead a fixed distance."""


@attrs.frozen
class Node:
    """A translated piece with what is needed to judge the pieces around it."""

    source: str
    nullable: bool = False
    bounded: bool = True
    captures: bool = False
    optional_captures: bool = False
    astral_safe: bool = True
    # Glushkov-style: may the piece begin, end with a loop that can eat half of a surrogate pair, and must one of these
    # loops run at least once?
    half_first: bool = False
    half_last: bool = False
    strict_first: bool = False
    strict_last: bool = False
    lazy_last: bool = False
    whole_surrogates: bool = False
    assertion: bool = False


EMPTY = Node("", nullable=True)


def merge(ranges: Ranges) -> Ranges:
    """The same set as sorted, disjoint ranges."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return tuple(merged)


def complement(ranges: Ranges) -> Ranges:
    """Every code point that is in none of the ranges."""
    found: list[tuple[int, int]] = []
    start = 0
    for low, high in merge(ranges):
        if start < low:
            found.append((start, low - 1))
        start = high + 1
    if start <= MAX_CODE:
        found.append((start, MAX_CODE))
    return tuple(found)


def touches_surrogates(ranges: Ranges) -> bool:
    return any(low <= LAST_SURROGATE and high >= FIRST_SURROGATE for low, high in ranges)


def holds_all_surrogates(ranges: Ranges) -> bool:
    return any(low <= FIRST_SURROGATE and high >= LAST_SURROGATE for low, high in merge(ranges))


def class_node(ranges: Ranges, *, code_points: bool) -> Node:
    """One character out of a set."""
    merged = merge(ranges)
    if not merged:
        raise NotTranslatable
    if len(merged) == 1 and merged[0][0] == merged[0][1]:
        source = literal(merged[0][0])
    else:
        # RE2 takes [Ss] for a case-folded letter and then adds U+017F (U+212A to [Kk]); a surrogate, which UTF-8 can't
        # hold, keeps it a plain set.
        guard = "\\x{d800}" if merged in FOLDED_BEYOND_ASCII else ""
        source = "[" + "".join(span(low, high) for low, high in merged) + guard + "]"
    touches = not code_points and touches_surrogates(merged)
    whole = touches and holds_all_surrogates(merged)
    return Node(source, astral_safe=not touches, whole_surrogates=whole)


def literal(code: int) -> str:
    character = chr(code)
    return character if character.isascii() and character.isalnum() else f"\\x{{{code:x}}}"


def span(low: int, high: int) -> str:
    return f"\\x{{{low:x}}}" if low == high else f"\\x{{{low:x}}}-\\x{{{high:x}}}"


def concatenate(left: Node, right: Node) -> Node:
    """``left`` followed by ``right``."""
    # Neighbouring `*` loops never part a pair; with a `+` among them, one may be left with half of it.
    clash = left.half_last and right.half_first and (left.strict_last or right.strict_first)
    return Node(
        left.source + right.source,
        nullable=left.nullable and right.nullable,
        bounded=left.bounded and right.bounded,
        captures=left.captures or right.captures,
        optional_captures=left.optional_captures or right.optional_captures,
        astral_safe=left.astral_safe and right.astral_safe and not clash,
        half_first=left.half_first or (left.nullable and right.half_first),
        half_last=right.half_last or (right.nullable and left.half_last),
        strict_first=left.strict_first or (left.nullable and right.strict_first),
        strict_last=right.strict_last or (right.nullable and left.strict_last),
        lazy_last=right.lazy_last or (right.nullable and left.lazy_last),
    )


def alternate(branches: list[Node]) -> Node:
    """One of several branches, the first that fits."""
    if len(branches) == 1:
        return branches[0]
    return Node(
        "|".join(branch.source for branch in branches),
        nullable=any(branch.nullable for branch in branches),
        bounded=all(branch.bounded for branch in branches),
        captures=any(branch.captures for branch in branches),
        optional_captures=any(branch.captures for branch in branches),
        astral_safe=all(branch.astral_safe for branch in branches),
        half_first=any(branch.half_first for branch in branches),
        half_last=any(branch.half_last for branch in branches),
        strict_first=any(branch.strict_first for branch in branches),
        strict_last=any(branch.strict_last for branch in branches),
        lazy_last=any(branch.lazy_last for branch in branches),
    )


def repeat(body: Node, least: int, most: int | None, *, lazy: bool) -> Node:
    """``body`` taken ``least`` to ``most`` (None: any number of) times.

    Raises:
        NotTranslatable: for loops in which the two engines differ: over an empty body, over a capture that an
            iteration may leave out, or of more rounds than RE2 unrolls.
    """
    if body.nullable or body.assertion or most == 0 or max(least, most or 0) > REGEX_FAST_REPEAT:
        raise NotTranslatable
    if body.optional_captures and most != 1:
        raise NotTranslatable
    symbol = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get((least, most))
    if symbol is None:
        symbol = f"{{{least}}}" if least == most else f"{{{least},{'' if most is None else most}}}"
    half_loop = body.whole_surrogates and most is None and least <= 1
    strict = half_loop and least == 1
    return Node(
        f"{body.source}{symbol}{'?' if lazy else ''}",
        nullable=least == 0,
        bounded=body.bounded and most is not None,
        captures=body.captures,
        optional_captures=body.optional_captures or (body.captures and least == 0),
        astral_safe=half_loop or (body.astral_safe and not (body.half_last and body.half_first)),
        half_first=half_loop or body.half_first,
        half_last=half_loop or body.half_last,
        strict_first=strict or body.strict_first,
        strict_last=strict or body.strict_last,
        lazy_last=(strict and lazy) or body.lazy_last,
    )


def in_caseless(low: int, high: int) -> bool:
    return any(first <= low and high <= last for first, last in CASELESS)


def fold(ranges: Ranges) -> Ranges:
    """The set with both cases of its ASCII letters.

    Raises:
        NotTranslatable: for a set with other letters that have case.
    """
    found = list(ranges)
    for low, high in ranges:
        if high > 0x7F and not in_caseless(max(low, 0x80), high):
            raise NotTranslatable
        for first, shift in ((0x41, 0x20), (0x61, -0x20)):
            start, end = max(low, first), min(high, first + 25)
            if start <= end:
                found.append((start + shift, end + shift))
    return tuple(found)


@functools.lru_cache(maxsize=8192)
def translate(pattern: str, flags: str) -> Translation | None:
    """The pattern for RE2, or None when only the exact engine will do."""
    from .re2_parser import PatternParser

    if len(pattern) > REGEX_FAST_PATTERN_UNITS or len(set(flags)) != len(flags) or set(flags) - set("dgimsu"):
        return None
    try:
        return PatternParser(pattern, flags).translation()
    except NotTranslatable:
        return None
