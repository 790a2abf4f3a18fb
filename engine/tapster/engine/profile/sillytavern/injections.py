"""Texts that stand among the chat's messages: at a depth from the end, by order and role."""

from collections.abc import Callable, Iterable, Sequence

import attrs

from tapster.engine.activation.sillytavern import note_is_due

from .collection import Prepared
from .content import AUTHORS_NOTE, PERSONA, Content, Origin, card_origin, join, join_filled
from .model import DEFAULT_INJECTION_ORDER, ROLES, AssemblyInput, Injection, Message, PersonaPosition, Position, Role

_NOTE_KEY = "2_floating_prompt"
_DEPTH_PROMPT_KEY = "DEPTH_PROMPT"
_PERSONA_KEY = "PERSONA_DESCRIPTION"


@attrs.frozen
class Injected:
    """A text at a depth; ``key`` decides the order among texts of the same depth and role."""

    key: str
    content: Content
    depth: int
    role: Role


def note_content(given: AssemblyInput) -> Content:
    """The author's note with the world info and persona that stand around it; empty when it's not due."""
    said = sum(1 for message in given.chat if message.role == "user")
    if not note_is_due(said, given.note.interval):
        return Content()
    note = Content.of(given.note.text, Origin(AUTHORS_NOTE))
    persona, lore = Content.of(given.persona.description, Origin(PERSONA)), given.lore
    if persona and given.persona.position == PersonaPosition.TOP_OF_NOTE:
        note = join("\n", [persona, note])
    if persona and given.persona.position == PersonaPosition.BOTTOM_OF_NOTE:
        note = join("\n", [note, persona])
    if lore.note_top or lore.note_bottom:
        note = _stripped_break(join("\n", [join("\n", lore.note_top), note, join("\n", lore.note_bottom)]))
    return note


def _stripped_break(content: Content) -> Content:
    """Without one line break at either end."""
    spans = list(content.spans)
    if spans and spans[0].text.startswith("\n"):
        spans[0] = attrs.evolve(spans[0], text=spans[0].text[1:])
    if spans and spans[-1].text.endswith("\n"):
        spans[-1] = attrs.evolve(spans[-1], text=spans[-1].text[:-1])
    return Content(tuple(span for span in spans if span.text))


def injected_texts(given: AssemblyInput, expand: Callable[[str], str]) -> tuple[Injected, ...]:
    """Every text that goes among the messages and isn't a prompt of the preset, in key order."""
    found = [*_extensions(given.injections), *_own_texts(given), *_lore(given)]
    found.sort(key=lambda item: item.key)
    expanded = (attrs.evolve(item, content=item.content.trimmed().expanded(expand)) for item in found)
    return tuple(item for item in expanded if item.content)


def _extensions(injections: Iterable[Injection]) -> Iterable[Injected]:
    for item in injections:
        if item.position == Position.IN_CHAT:
            origin = Origin(f"injection:{item.source}")
            yield Injected(item.source, Content.of(item.text, origin, literal=item.literal), item.depth, item.role)


def _own_texts(given: AssemblyInput) -> Iterable[Injected]:
    card, persona, note = given.card, given.persona, given.note
    if note.position == Position.IN_CHAT:
        yield Injected(_NOTE_KEY, note_content(given), note.depth, note.role)
    depth_prompt = Content.of(card.depth_prompt, card_origin("depth_prompt"))
    yield Injected(_DEPTH_PROMPT_KEY, depth_prompt, card.depth_prompt_depth, card.depth_prompt_role)
    if persona.position == PersonaPosition.AT_DEPTH:
        content = Content.of(persona.description, Origin(PERSONA))
        yield Injected(_PERSONA_KEY, content, persona.depth, persona.role)


def _lore(given: AssemblyInput) -> Iterable[Injected]:
    by_place: dict[tuple[int, Role], list[Content]] = {}
    for entry in sorted(given.lore.depth, key=lambda entry: entry.order):
        by_place.setdefault((entry.depth, entry.role), []).append(entry.content)
    for (depth, role), contents in by_place.items():
        key = f"customDepthWI-{depth}-{ROLES.index(role)}"
        yield Injected(key, join("\n", contents), depth, role)


def inject(messages: Sequence[Message], prompts: Iterable[Prepared], texts: Sequence[Injected]) -> tuple[Message, ...]:
    """The messages, newest first, with the texts put among them.

    At one depth a lower order reads first; within an order assistant, user, system. Texts that aren't prompts of the
    preset have order 100.
    """
    placed = [prompt for prompt in prompts if prompt.in_chat and prompt.content]
    result = list(messages)
    inserted = 0
    depths = {prompt.depth if prompt.depth is not None else 0 for prompt in placed} | {text.depth for text in texts}
    for depth in sorted(depth for depth in depths if depth >= 0):
        added = _at_depth([p for p in placed if (p.depth or 0) == depth], [t for t in texts if t.depth == depth])
        at = depth + inserted
        result[at:at] = added
        inserted += len(added)
    return tuple(result)


def _at_depth(prompts: Sequence[Prepared], texts: Sequence[Injected]) -> list[Message]:
    """The messages of one depth, last-read first."""
    orders = {_order(prompt) for prompt in prompts} | {DEFAULT_INJECTION_ORDER}
    messages: list[Message] = []
    for order in sorted(orders, reverse=True):
        for role in ROLES:
            own = join("\n", [p.content for p in prompts if _order(p) == order and p.role == role]).trimmed()
            others = [t.content for t in texts if t.role == role] if order == DEFAULT_INJECTION_ORDER else []
            content = join_filled("\n", [own, join("\n", others).trimmed()])
            if content:
                messages.append(Message(role, content, injected=True))
    return messages


def _order(prompt: Prepared) -> int:
    return DEFAULT_INJECTION_ORDER if prompt.order is None else prompt.order
