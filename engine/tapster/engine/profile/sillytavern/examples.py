"""Example dialogue: blocks of a card and of world info, as pairs of named system messages."""

import re
from collections.abc import Callable, Sequence

import attrs

from tapster.engine.ecma import trim

from .content import WORLD_INFO, Content, Origin, card_origin
from .model import AssemblyInput, Message

_START = "<START>"
_SPLIT = re.compile(_START, re.IGNORECASE)


def example_dialogues(given: AssemblyInput, expand: Callable[[str], str]) -> tuple[tuple[Message, ...], ...]:
    """The example dialogues in sending order; one without recognised speech is empty but still announced."""
    if given.preferences.strip_examples:
        return ()
    texts: list[tuple[str, Origin]] = [(given.card.examples, card_origin("mes_example"))]
    before = [_lore(content) for content in given.lore.examples_top]
    after = [_lore(content) for content in given.lore.examples_bottom]
    dialogues: list[tuple[Message, ...]] = []
    for text, origin in (*before, *texts, *after):
        for block in example_blocks(expand(text)):
            dialogues.append(_speeches(block, origin, given, len(dialogues)))
    return tuple(dialogues)


def _lore(content: Content) -> tuple[str, Origin]:
    return content.text, content.spans[0].origin if content.spans else Origin(WORLD_INFO)


def example_blocks(text: str) -> Sequence[str]:
    """The blocks of an examples field, one per ``<START>``; a field that starts without one gets it."""
    if not text or text == _START:
        return ()
    if not text.startswith(_START):
        text = f"{_START}\n{trim(text)}"
    return [trim(block) for block in _SPLIT.split(text)[1:]]


def _speeches(block: str, origin: Origin, given: AssemblyInput, dialogue: int) -> tuple[Message, ...]:
    """The speeches of a block: lines up to the next speaker's prefix belong together."""
    names = {"example_user": given.user, "example_assistant": given.card.name}
    speeches: list[tuple[str, list[str]]] = []
    lines: list[str] = []
    speaking: str | None = None
    for line in block.replace("\r", "").split("\n"):
        speaker = next((role for role, name in names.items() if line.startswith(f"{name}:")), None)
        if speaker is not None and speaker != speaking:
            if speaking is not None:
                speeches.append((speaking, lines))
                lines = []
            speaking = speaker
        lines.append(line)
    if speaking is not None:
        speeches.append((speaking, lines))
    return tuple(
        Message(
            "system",
            Content.of(_speech_text(spoken, names[role], grouped=given.group is not None), origin, literal=True),
            f"dialogueExamples {dialogue}-{index}",
            role,
        )
        for index, (role, spoken) in enumerate(speeches)
    )


def _speech_text(lines: Sequence[str], name: str, *, grouped: bool) -> str:
    text = trim("\n".join(lines).replace(f"{name}:", "", 1))
    return f"{name}: {text}" if grouped else text


@attrs.frozen
class ExamplePlan:
    """The dialogues to insert and the message that announces each."""

    announcement: Message
    dialogues: tuple[tuple[Message, ...], ...]
