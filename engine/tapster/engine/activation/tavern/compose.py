"""Which books a request uses, and in which order.

Source: spec/loader §5.
"""

import re
from collections.abc import Sequence

import attrs

from tapster.engine import limits
from tapster.engine.ecma import Json
from tapster.engine.errors import FormatError

_RESOURCE_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")
ORDER = "session-explicit-then-user-then-preset-then-character"


@attrs.frozen
class BookSelection:
    """The books by what binds them, and the order that follows."""

    explicit_ids: tuple[str, ...]
    user_bound_ids: tuple[str, ...]
    preset_bound_ids: tuple[str, ...]
    character_bound_ids: tuple[str, ...]
    effective_ids: tuple[str, ...]
    duplicate_ids: tuple[str, ...]

    def binding_sources(self, book_id: str) -> tuple[str, ...]:
        """What binds a book, in the order session, user, preset, character; ``session`` when nothing is known."""
        lists = {
            "session": self.explicit_ids,
            "user": self.user_bound_ids,
            "preset": self.preset_bound_ids,
            "character": self.character_bound_ids,
        }
        return tuple(name for name, ids in lists.items() if book_id in ids) or ("session",)

    def to_json(self) -> Json:
        """The selection in the contract's field names."""
        return {
            "explicitIds": list(self.explicit_ids),
            "userBoundIds": list(self.user_bound_ids),
            "presetBoundIds": list(self.preset_bound_ids),
            "characterBoundIds": list(self.character_bound_ids),
            "effectiveIds": list(self.effective_ids),
            "duplicateIds": list(self.duplicate_ids),
            "order": ORDER,
        }


def compose_books(explicit: Json, user: Json, preset: Json, character: Json, *, opening: Json = ()) -> BookSelection:
    """The effective books: first occurrence wins.

    Args:
        explicit: ids bound to the session.
        user: ids bound to the persona.
        preset: ids bound to the preset.
        character: ids bound to the card.
        opening: books that the session's opening owns; they follow the explicit ones.

    Raises:
        FormatError: ``not-array``, ``too-many-world-books`` or ``bad-world-book-id``.
    """
    lists = [read_book_ids(ids) for ids in (explicit, opening, user, preset, character)]
    effective: dict[str, None] = {}
    duplicates: dict[str, None] = {}
    for book_id in (book_id for ids in lists for book_id in ids):
        (duplicates if book_id in effective else effective)[book_id] = None
    return BookSelection(lists[0], lists[2], lists[3], lists[4], tuple(effective), tuple(duplicates))


def read_book_ids(ids: Json) -> tuple[str, ...]:
    """A list of world-book ids, checked.

    Raises:
        FormatError: as ``compose_books``.
    """
    if not isinstance(ids, Sequence) or isinstance(ids, str):
        raise FormatError("not-array", "the world-book ids are not a list")
    if len(ids) > limits.MAX_BOUND_WORLD_BOOKS:
        raise FormatError(
            "too-many-world-books", f"{len(ids)} world books are bound, at most {limits.MAX_BOUND_WORLD_BOOKS} may be"
        )
    for book_id in ids:
        if not isinstance(book_id, str) or not _RESOURCE_ID.fullmatch(book_id):
            raise FormatError("bad-world-book-id", f"{book_id!r} is not a world-book id")
    return tuple(ids)
