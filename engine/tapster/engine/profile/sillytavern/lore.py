"""Active world info as the renderer's placed texts, and which of it has no place to go to."""

from collections.abc import Iterable, Mapping
from typing import Final

import attrs

from tapster.engine.activation.sillytavern import PlacedText, Placement, ScanResult, join_texts, place_entries

from .collection import PromptCollection
from .content import WORLD_INFO, Content, Origin
from .model import DEFAULT_DEPTH, ROLES, AssemblyInput, DepthLore, PlacedLore
from .rewriting import Fact, Rewriter

_SLOTS: Final[Mapping[str, str]] = {
    "before": "worldInfoBefore",
    "after": "worldInfoAfter",
    "examples_top": "dialogueExamples",
    "examples_bottom": "dialogueExamples",
}
_HISTORY: Final = "chatHistory"


@attrs.frozen
class ScannedLore:
    """Placed world info and the outlets that macros read."""

    placed: PlacedLore
    outlets: Mapping[str, str]


def place_lore(result: ScanResult, rewriter: Rewriter) -> ScannedLore:
    """The texts of a scan's active entries at their places, after the regex scripts for world info."""
    placement = _rewritten(place_entries(result.active), rewriter)
    examples = placement.examples
    depth = tuple(
        DepthLore(_content(text), DEFAULT_DEPTH if group.depth is None else group.depth, ROLES[group.role])
        for group in placement.depths
        for text in group.texts
    )
    placed = PlacedLore(
        _contents(placement.before),
        _contents(placement.after),
        _contents(placement.note_top),
        _contents(placement.note_bottom),
        _contents(item.text for item in examples if not item.after),
        _contents(item.text for item in examples if item.after),
        depth,
    )
    return ScannedLore(placed, {name: join_texts(texts) for name, texts in placement.outlets})


def _rewritten(placement: Placement, rewriter: Rewriter) -> Placement:
    def run(texts: Iterable[PlacedText], depth: int | None = None) -> tuple[PlacedText, ...]:
        changed = (attrs.evolve(text, text=rewriter.lore(text.text, text.entry, depth)) for text in texts)
        return tuple(text for text in changed if text.text)

    return Placement(
        run(placement.before),
        run(placement.after),
        run(placement.note_top),
        run(placement.note_bottom),
        tuple(attrs.evolve(item, text=text) for item in placement.examples for text in run([item.text])),
        tuple(
            attrs.evolve(group, texts=list(run(group.texts, DEFAULT_DEPTH if group.depth is None else group.depth)))
            for group in placement.depths
        ),
        tuple((name, run(texts)) for name, texts in placement.outlets),
    )


def _contents(texts: Iterable[PlacedText]) -> tuple[Content, ...]:
    return tuple(_content(text) for text in texts)


def _content(text: PlacedText) -> Content:
    return Content.of(text.text, Origin(WORLD_INFO, text.entry))


def lore_without_slot(given: AssemblyInput, prompts: PromptCollection) -> tuple[Fact, ...]:
    """A fact for each active entry whose place is missing from the preset or switched off."""
    facts: list[Fact] = []
    for field, slot in _SLOTS.items():
        if _is_closed(given, prompts, slot):
            facts += _no_slot(getattr(given.lore, field), slot)
    if _is_closed(given, prompts, _HISTORY):
        facts += _no_slot((entry.content for entry in given.lore.depth), _HISTORY)
    return tuple(facts)


def _is_closed(given: AssemblyInput, prompts: PromptCollection, slot: str) -> bool:
    return prompts.index(slot) < 0 or given.preset.is_off(slot)


def _no_slot(contents: Iterable[Content], slot: str) -> list[Fact]:
    items = dict.fromkeys(span.origin.item for content in contents for span in content.spans)
    return [Fact(item, "no_slot", (("slot", slot),)) for item in items if item]
