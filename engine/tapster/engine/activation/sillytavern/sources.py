"""Which books a chat uses, each once: the same book bound twice counts where SillyTavern keeps it.

Source: the recorded behaviour in st_world_info.jsonl, area books.
"""

from collections.abc import Sequence

import attrs

from .settings import BookPlace


@attrs.frozen
class BookBindings:
    """World books by what binds them, by name."""

    shared: tuple[str, ...] = ()
    character: tuple[str, ...] = ()
    chat: str | None = None
    persona: str | None = None


def bound_books(bindings: BookBindings, known: Sequence[str]) -> list[tuple[BookPlace, str]]:
    """Place and name of each book that is scanned: global before chat, persona and character; unknown ones left out."""
    shared = set(bindings.shared)
    found: list[tuple[BookPlace, str]] = [("global", name) for name in dict.fromkeys(bindings.shared)]
    if bindings.chat and bindings.chat not in shared:
        found.append(("chat", bindings.chat))
    if bindings.persona and bindings.persona not in shared and bindings.persona != bindings.chat:
        found.append(("persona", bindings.persona))
    taken = shared | {bindings.chat, bindings.persona}
    found += [("character", name) for name in dict.fromkeys(bindings.character) if name not in taken]
    return [(place, name) for place, name in found if name in known]


def copied_book(linked_name: str | None, loaded: Sequence[str]) -> str | None:
    """The loaded world file that a card's embedded book is a copy of, by the name the card is linked to, or None."""
    return linked_name if linked_name and linked_name in loaded else None
