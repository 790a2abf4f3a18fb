"""One entry's explanation: in words and as data."""

from collections.abc import Mapping, Sequence

import attrs

from tapster.engine.ecma import Json, number_text

from .words import EXTRAS, PLACES, WORDS, Language


@attrs.frozen
class Explanation:
    """Why one entry is in or out.

    Attributes:
        entry: the entry's id within the explained books.
        name: what the author calls it.
        reason: the word of the rule that decided.
        text: the whole explanation in words; ``needed`` is its last part by itself, empty for an active entry.
        data: the same as data.
    """

    entry: str
    name: str
    active: bool
    reason: str
    text: str
    needed: str = ""
    data: Mapping[str, Json] = attrs.field(factory=dict)


@attrs.frozen
class MatchPlace:
    """A key that matched: ``kind`` says in what, ``label`` in which."""

    key: str
    kind: str
    label: int | str
    start: int
    end: int


def write_explanation(
    language: Language, word: str, values: Mapping[str, Json], places: Sequence[MatchPlace], *, deeper: bool = False
) -> tuple[str, str]:
    """The text of an explanation, and what was needed."""
    words, extras = WORDS[language][word], EXTRAS[language]
    shown = {name: show(value) for name, value in values.items()}
    text = words.said.format_map(shown) + extras["stop"]
    if places:
        listed = "; ".join(PLACES[language][place.kind].format_map(attrs.asdict(place)) for place in places)
        text += " " + extras["matched"].format(places=listed) + extras["stop"]
    if deeper:
        text += " " + extras["deeper"]
    needed = words.needed.format_map(shown)
    return (text + " " + extras["needed"].format(needed=needed) if needed else text), needed


def show(value: Json) -> str:
    """A value of a decision in words."""
    if isinstance(value, list | tuple):
        return ", ".join(map(show, value)) or "-"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return number_text(value)
    return "-" if value is None else str(value)
