"""How two requests differ: their common prefix, and the piece that ends it.

A provider's prompt cache keeps the common prefix, so the first difference is what a change costs.
"""

from collections.abc import Sequence
from typing import Literal, TypeAlias

import attrs

from .content import CHAT
from .model import Message

Change: TypeAlias = Literal["added", "removed", "changed", "moved"]


@attrs.frozen
class Difference:
    """The first unequal message, the piece at fault by its label, and what happened to it."""

    message: int
    source: str
    change: Change


@attrs.frozen
class Comparison:
    """Two requests side by side; ``first`` is None when one is the other's beginning or they are equal."""

    common_prefix: int
    first: Difference | None


@attrs.frozen
class _Piece:
    role: str
    label: str
    source: str
    text: str


def compare_requests(earlier: Sequence[Message], later: Sequence[Message]) -> Comparison:
    """Compare two requests message by message, then piece by piece where they part."""
    common = 0
    for left, right in zip(earlier, later, strict=False):
        if left.to_json() != right.to_json():
            break
        common += 1
    if common == len(earlier) == len(later):
        return Comparison(common, None)
    label, change = _fault(_pieces(earlier[common:]), _pieces(later[common:]))
    return Comparison(common, Difference(common, label, change))


def _pieces(messages: Sequence[Message]) -> list[_Piece]:
    """The texts by origin; a separator counts to what it stands before."""
    pieces: list[_Piece] = []
    for message in messages:
        start = len(pieces)
        for span in message.content.spans:
            label = span.origin.label
            if len(pieces) > start and pieces[-1].label == label:
                pieces[-1] = attrs.evolve(pieces[-1], text=pieces[-1].text + span.text)
            else:
                pieces.append(_Piece(message.role, label, span.origin.source, span.text))
    return [attrs.evolve(piece, text=piece.text.strip("\n")) for piece in pieces]


def _fault(earlier: Sequence[_Piece], later: Sequence[_Piece]) -> tuple[str, Change]:
    same = 0
    while same < min(len(earlier), len(later)) and earlier[same] == later[same]:
        same += 1
    old = earlier[same] if same < len(earlier) else None
    new = later[same] if same < len(later) else None
    if old is None or new is None:
        return _end_fault(old, new)
    if old.label == new.label:
        return old.label, "changed"
    old_stays = any(piece.label == old.label for piece in later[same:])
    new_was_there = any(piece.label == new.label for piece in earlier[same:])
    if not old_stays:
        return old.label, "removed"
    if new_was_there or (new.source == CHAT and old.source != CHAT):
        return old.label, "moved"
    return new.label, "added"


def _end_fault(old: _Piece | None, new: _Piece | None) -> tuple[str, Change]:
    if old is not None:
        return old.label, "removed"
    return (new.label, "added") if new is not None else ("layout", "changed")
