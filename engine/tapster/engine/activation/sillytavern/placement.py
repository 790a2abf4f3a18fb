"""Where the active entries go: before and after the character, author's note, examples, depths, outlets.

Source: the recorded behaviour in st_world_info.jsonl, areas positions, authors_note, regex_on_wi.
"""

from collections.abc import Sequence

import attrs

from .entry import DEFAULT_DEPTH
from .ports import PromptTextPort, keep_text
from .ranking import sort_by_order
from .result import ActiveEntry

BEFORE, AFTER, NOTE_TOP, NOTE_BOTTOM, AT_DEPTH, EXAMPLES_TOP, EXAMPLES_BOTTOM, OUTLET = range(8)


@attrs.frozen
class PlacedText:
    """One entry's text in a prompt, and the entry it came from."""

    entry: str
    text: str


@attrs.define
class DepthGroup:
    """The entries of one depth and role; role 0 system, 1 user, 2 assistant."""

    depth: int | None
    role: int
    texts: list[PlacedText]


@attrs.frozen
class ExampleText:
    """An entry placed among the example messages."""

    after: bool
    text: PlacedText


@attrs.frozen
class Placement:
    """Every active entry with content, in final reading order at its place."""

    before: tuple[PlacedText, ...] = ()
    after: tuple[PlacedText, ...] = ()
    note_top: tuple[PlacedText, ...] = ()
    note_bottom: tuple[PlacedText, ...] = ()
    examples: tuple[ExampleText, ...] = ()
    depths: tuple[DepthGroup, ...] = ()
    outlets: tuple[tuple[str, tuple[PlacedText, ...]], ...] = ()


def place_entries(active: Sequence[ActiveEntry], prompt_text: PromptTextPort = keep_text) -> Placement:
    """The placement of a scan's entries: larger order reads later; entries whose text is empty are left out."""
    work = _Work()
    for each in sort_by_order(active, lambda each: each.entry.order):
        entry = each.entry
        at_depth = entry.position == AT_DEPTH
        depth = DEFAULT_DEPTH if entry.depth is None else entry.depth
        text = prompt_text(each.content, depth if at_depth else None)
        if text:
            work.put(each, PlacedText(entry.name, text), depth)
    return work.done()


def join_texts(texts: Sequence[PlacedText]) -> str:
    """The texts of one place as they stand in the prompt."""
    return "\n".join(text.text for text in texts)


def wrap_note(note: str, placement: Placement) -> str:
    """The author's note with the entries above and below it."""
    text = f"{join_texts(placement.note_top)}\n{note}\n{join_texts(placement.note_bottom)}"
    return text.removeprefix("\n").removesuffix("\n")


def note_is_due(user_messages: int, interval: int) -> bool:
    """Whether an author's note with this interval (in the user's messages) is in the prompt now."""
    if interval <= 0:
        return False
    left = user_messages % interval if user_messages >= interval else interval - user_messages
    return interval == 1 or left == 0


class _Work:
    """Lists under construction: the largest order comes first, so each entry goes to the front, save in outlets."""

    def __init__(self) -> None:
        self.lists: dict[int, list[PlacedText]] = {place: [] for place in range(8)}
        self.examples: list[ExampleText] = []
        self.depths: list[DepthGroup] = []
        self.outlets: dict[str, list[PlacedText]] = {}

    def put(self, each: ActiveEntry, text: PlacedText, depth: int) -> None:
        position = each.entry.position
        if position == AT_DEPTH:
            self._at_depth(each, text, depth)
        elif position in (EXAMPLES_TOP, EXAMPLES_BOTTOM):
            self.examples.insert(0, ExampleText(position == EXAMPLES_BOTTOM, text))
        elif position == OUTLET:
            if each.entry.outlet:
                self.outlets.setdefault(each.entry.outlet, []).append(text)
        elif isinstance(position, int) and position in self.lists:
            self.lists[position].insert(0, text)

    def _at_depth(self, each: ActiveEntry, text: PlacedText, depth: int) -> None:
        role = each.entry.role or 0
        for group in self.depths:
            if group.depth == depth and group.role == role:
                group.texts.insert(0, text)
                return
        self.depths.append(DepthGroup(each.entry.depth, role, [text]))

    def done(self) -> Placement:
        return Placement(
            tuple(self.lists[BEFORE]),
            tuple(self.lists[AFTER]),
            tuple(self.lists[NOTE_TOP]),
            tuple(self.lists[NOTE_BOTTOM]),
            tuple(self.examples),
            tuple(self.depths),
            tuple((name, tuple(texts)) for name, texts in self.outlets.items()),
        )
