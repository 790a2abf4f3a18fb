"""The prompt collection: the preset's prompts in order, with card, lore, persona and extensions in their places."""

import re
from collections.abc import Iterable
from typing import Final, Literal

import attrs

from .content import PERSONA, Content, Origin, card_origin, join, prompt_origin
from .model import AssemblyInput, Injection, Macros, Position, Prompt, PromptPreset, Role

MAIN: Final = "main"
JAILBREAK: Final = "jailbreak"
MARKED: Final = frozenset(
    {"worldInfoBefore", "worldInfoAfter", "charDescription", "charPersonality", "scenario", "personaDescription"}
)
"""Texts that stand where the preset has their marker."""
NOTE_ID: Final = "authorsNote"
SUMMARY_SOURCE: Final = "1_memory"
_SUMMARY_ID: Final = "summary"
_NOT_WORD: Final = re.compile(r"[^A-Za-z0-9_]")
_ORIGINAL_MARK: Final = "\ue0f5"
IN_CHAT: Final = 1


@attrs.frozen
class Prepared:
    """A prompt whose text is final but for its neighbours."""

    identifier: str
    content: Content = attrs.field(factory=Content)
    role: Role = "system"
    system_prompt: bool = True
    in_chat: bool = False
    depth: int | None = None
    order: int | None = None
    forbid_overrides: bool = False
    main_side: Literal["start", "end"] | None = None
    """Set for texts that go beside the main prompt."""


@attrs.define(eq=False)
class PromptCollection:
    """Prepared prompts; the index of a prompt is its place in the request."""

    prompts: list[Prepared] = attrs.field(factory=list)
    overridden: list[str] = attrs.field(factory=list)

    def index(self, identifier: str) -> int:
        """The place of a prompt, -1 when it's not there."""
        return next((i for i, prompt in enumerate(self.prompts) if prompt.identifier == identifier), -1)

    def get(self, identifier: str) -> Prepared | None:
        """The prompt of that identifier."""
        index = self.index(identifier)
        return None if index < 0 else self.prompts[index]

    def put(self, prompt: Prepared) -> None:
        """Put a prompt in the place of the one with its identifier, else at the end."""
        index = self.index(prompt.identifier)
        if index < 0:
            self.prompts.append(prompt)
        else:
            self.prompts[index] = prompt


def collect_prompts(given: AssemblyInput, macros: Macros, note: Content) -> PromptCollection:
    """Everything that has a place of its own in the request.

    Args:
        note: the author's note when it stands beside the main prompt, else empty.
    """
    collection = PromptCollection()
    for prompt in _ordered(given.preset, given.type):
        collection.prompts.append(_prepare(prompt, macros))
    for fixed in _fixed_texts(given, note, macros):
        marker = collection.get(fixed.identifier)
        if marker is None and given.repaired and fixed.identifier in MARKED:
            continue
        collection.put(_placed_as(fixed, marker))
    preferences, card = given.preferences, given.card
    if preferences.prefer_card_main and card.system_prompt:
        _override(collection, given.preset, MAIN, card.system_prompt, "system_prompt", macros)
    if preferences.prefer_card_post_history and card.post_history:
        _override(collection, given.preset, JAILBREAK, card.post_history, "post_history_instructions", macros)
    return collection


def _ordered(preset: PromptPreset, generation: str) -> Iterable[Prompt]:
    """The prompts that are on, and an emptied main prompt when that is off: other texts stand beside it."""
    for entry in preset.order:
        prompt = preset.prompt(entry.identifier)
        if prompt is None:
            continue
        triggered = not prompt.injection_trigger or generation in prompt.injection_trigger
        if entry.enabled and triggered:
            yield prompt
        elif entry.identifier == MAIN:
            yield attrs.evolve(prompt, content="")


def _prepare(prompt: Prompt, macros: Macros) -> Prepared:
    content = Content.of(prompt.content, prompt_origin(prompt.identifier)).expanded(macros.expand)
    return Prepared(
        prompt.identifier,
        content,
        prompt.role or "system",
        system_prompt=prompt.system_prompt,
        in_chat=prompt.injection_position == IN_CHAT,
        depth=prompt.injection_depth,
        order=prompt.injection_order,
        forbid_overrides=prompt.forbid_overrides,
    )


def _placed_as(fixed: Prepared, marker: Prepared | None) -> Prepared:
    """A fixed text with the place and role that the preset's marker gives it."""
    if marker is None:
        return fixed
    return attrs.evolve(
        fixed, role=marker.role, in_chat=marker.in_chat, depth=marker.depth, order=marker.order, main_side=None
    )


def _fixed_texts(given: AssemblyInput, note: Content, macros: Macros) -> Iterable[Prepared]:
    preset, card = given.preset, given.card
    texts = {
        "worldInfoBefore": _formatted_lore(given.lore.before, preset.world_info_format),
        "worldInfoAfter": _formatted_lore(given.lore.after, preset.world_info_format),
        "charDescription": Content.of(card.description, card_origin("description")),
        "charPersonality": _formatted(card.personality, preset.personality_format, "personality"),
        "scenario": _formatted(card.scenario, preset.scenario_format, "scenario"),
        "impersonate": Content.of(preset.impersonation, prompt_origin("impersonation_prompt")),
        "quietPrompt": Content.of(given.quiet_prompt, Origin("injection:quiet_prompt")),
        "groupNudge": Content.of(preset.group_nudge, prompt_origin("group_nudge_prompt")),
    }
    for identifier, content in texts.items():
        yield Prepared(identifier, content.expanded(macros.expand))
    for beside in _beside_main(given, note):
        yield attrs.evolve(beside, content=beside.content.expanded(macros.expand))
    if given.persona.description and given.persona.position == 0:
        content = Content.of(given.persona.description, Origin(PERSONA)).expanded(macros.expand)
        yield Prepared("personaDescription", content)


def _beside_main(given: AssemblyInput, note: Content) -> Iterable[Prepared]:
    """The texts beside the main prompt: the summary, the author's note, then the other extensions."""
    relative = [item for item in given.injections if item.position != Position.IN_CHAT and item.text]
    for item in relative:
        if item.source == SUMMARY_SOURCE:
            yield _extension(_SUMMARY_ID, item)
    if note:
        yield Prepared(NOTE_ID, note, given.note.role, main_side=_side(given.note.position))
    for item in relative:
        if item.source != SUMMARY_SOURCE:
            yield _extension(_NOT_WORD.sub("_", item.source), item)


def _extension(identifier: str, item: Injection) -> Prepared:
    content = Content.of(item.text, Origin(f"injection:{item.source}"), literal=item.literal)
    return Prepared(identifier, content, item.role, main_side=_side(item.position))


def _side(position: int) -> Literal["start", "end"]:
    return "start" if position == Position.BEFORE_MAIN else "end"


def _formatted(value: str, form: str, field: str) -> Content:
    """A card field in the preset's format; the format reads the field through its macro."""
    return Content.of(form if value and form else value, card_origin(field))


def _formatted_lore(entries: tuple[Content, ...], form: str) -> Content:
    lore = join("\n", entries)
    if not lore or not form.strip():
        return lore
    pieces = [Content.of(piece, prompt_origin("wi_format")) for piece in form.split("{0}")]
    formatted = pieces[0]
    for piece in pieces[1:]:
        formatted = formatted + lore + piece
    return formatted


def _override(
    collection: PromptCollection, preset: PromptPreset, identifier: str, text: str, field: str, macros: Macros
) -> None:
    """Put the card's own text in a preset prompt's place; ``{{original}}`` stands for what it replaces."""
    prompt = collection.get(identifier)
    if prompt is None or prompt.forbid_overrides or preset.is_off(identifier):
        return
    marked = macros.expand(text, original=_ORIGINAL_MARK if prompt.content else "")
    content = Content.of(marked, card_origin(field))
    if (parts := content.split_at(_ORIGINAL_MARK)) is not None:
        content = parts[0] + prompt.content + parts[1].without(_ORIGINAL_MARK)
    collection.put(attrs.evolve(prompt, content=content))
    collection.overridden.append(identifier)
