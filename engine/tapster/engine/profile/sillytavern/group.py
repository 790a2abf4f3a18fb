"""Group chats: whose card is sent, and which messages a member has witnessed."""

from collections.abc import Callable, Sequence

import attrs

from tapster.engine.ecma import trim

from .model import CardFields, ChatMessage
from .rewriting import Fact, message_label


def join_cards(
    cards: Sequence[CardFields], speaker: CardFields, expand: Callable[[str, CardFields], str]
) -> CardFields:
    """The speaker's card with the fields of all members joined, each with its own name in it.

    Args:
        expand: replaces a member's macros; gets the text and the member.
    """

    def joined(field: str) -> str:
        return "\n".join(text for card in cards if (text := trim(expand(getattr(card, field), card))))

    return attrs.evolve(
        speaker,
        description=joined("description"),
        personality=joined("personality"),
        scenario=joined("scenario"),
        examples=joined("examples"),
        depth_prompt=joined("depth_prompt"),
    )


def witnessed(chat: Sequence[ChatMessage], speaker: str) -> tuple[tuple[ChatMessage, ...], tuple[Fact, ...]]:
    """The messages whose ``present`` list has the speaker or is not known, and a fact for each of the others."""
    kept: list[ChatMessage] = []
    facts: list[Fact] = []
    for index, message in enumerate(chat):
        if message.present is None or speaker in message.present:
            kept.append(message)
        else:
            facts.append(Fact(message_label(message, index), "speaker_absent", (("speaker", speaker),)))
    return tuple(kept), tuple(facts)
