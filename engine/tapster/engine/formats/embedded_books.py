"""The world book inside a card.

Source: spec/resources §3.2, §6.
"""

from .cards.model import Card
from .profiles import Profile
from .world_books import WorldBook, parse_world_book


def embedded_book(card: Card, profile: Profile = "contract") -> WorldBook | None:
    """The card's own world book, or None.

    Raises:
        WorldBookValidationError: it cannot be read.
    """
    book = card.data.character_book
    if book is None:
        return None
    return parse_world_book(dict(book), format="auto", profile=profile)
