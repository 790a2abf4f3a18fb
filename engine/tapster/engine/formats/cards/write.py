"""Cards back into files.

Source: spec/resources §3.4.
"""

from tapster.engine.ecma import stringify, utf8
from tapster.engine.formats.fields import file_name
from tapster.engine.formats.png import PngLimits, embed
from tapster.engine.limits import EXPORT_FILE_NAME_UNITS

from .model import Card
from .read import STRING_MEMBERS, parse_card


def blank_card(*, id: str, now: str, name: str = "Untitled character") -> Card:
    """A new version 2 card, every text empty but its name."""
    texts = dict.fromkeys(STRING_MEMBERS.values(), "")
    texts.pop("nickname")
    data = {**texts, "name": name, "alternate_greetings": [], "tags": [], "extensions": {}}
    return parse_card({"spec": "chara_card_v2", "spec_version": "2.0", "data": data}, id=id, now=now)


def export_card_json(card: Card) -> bytes:
    """The card's JSON file: two spaces and a final newline, members in their order."""
    return utf8(stringify(card.source.raw, indent=2) + "\n")


def export_card_png(
    card: Card,
    cover: bytes,
    limits: PngLimits = PngLimits(),  # noqa: B008 - a frozen value
    *,
    every_form: bool = False,
) -> bytes:
    """The card inside its cover image; a version 3 card is written under both keywords.

    Raises:
        FormatError: the cover is no PNG or the card is too large for one.
    """
    keywords = ("ccv3", "chara") if card.source.format == "character-card-v3" else ("chara",)
    return embed(cover, stringify(card.source.raw), keywords, limits=limits, every_form=every_form)


def card_file_name(card: Card, extension: str = "json") -> str:
    """The file name an exported card gets."""
    return f"{file_name(card.name, EXPORT_FILE_NAME_UNITS, 'character')}.{extension}"
