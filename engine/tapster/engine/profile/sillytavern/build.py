"""A SillyTavern chat-completion request, from its inputs to its messages."""

from typing import Final

import attrs

from tapster.engine.profile.tokens import TokenCounter

from .collection import Prepared, PromptCollection, collect_prompts
from .content import Content, join_filled, prompt_origin
from .examples import ExamplePlan, example_dialogues
from .history import HISTORY, chat_messages, place_history, prefilled
from .injections import inject, injected_texts, note_content
from .model import AssemblyInput, Macros, Message, Position
from .slots import Collection, Item, MandatoryPromptsExceedContext, Slots
from .squash import sent_messages, squash

REPLY_RESERVE: Final = 3
"""Tokens kept free for the start of the reply."""
_EXAMPLES: Final = "dialogueExamples"
_BEFORE_CUSTOM: Final = (
    "worldInfoBefore", "main", "worldInfoAfter", "charDescription", "charPersonality", "scenario",
    "personaDescription",
)  # fmt: skip
_LATER: Final = ("nsfw", "jailbreak")
_FIXED: Final = frozenset({"impersonate", "quietPrompt", "groupNudge"})
_NEVER_CUSTOM: Final = _FIXED | {*_BEFORE_CUSTOM, *_LATER, _EXAMPLES, HISTORY, "enhanceDefinitions"}


@attrs.frozen
class Built:
    """A finished request.

    ``items`` are all messages before squashing. ``error`` is set when fixed prompts didn't fit: then the messages are
    what had been placed until then. ``largest_prompt`` is the fixed prompt that takes most tokens, and how many.
    """

    messages: tuple[Message, ...]
    items: tuple[Item, ...]
    prompts: PromptCollection
    budget_left: int
    largest_prompt: tuple[str, int]
    error: MandatoryPromptsExceedContext | None = None


def build(given: AssemblyInput, macros: Macros, counter: TokenCounter) -> Built:
    """Assemble the messages; never raises for a context that is too small, see ``Built.error``."""
    note = Content() if given.note.position == Position.IN_CHAT else note_content(given)
    prompts = collect_prompts(given, macros, note)
    history = chat_messages(given)
    slots = Slots(counter, given.room)
    builder = _Builder(given, macros, prompts, slots, history)
    error = None
    try:
        builder.run()
    except MandatoryPromptsExceedContext as raised:
        error = raised
    items = slots.items()
    messages = tuple(item.message for item in items)
    sent = squash(messages) if given.preset.squash_system_messages else sent_messages(messages)
    return Built(sent, items, prompts, slots.budget, builder.largest(), error)


class _Builder:
    """Places collections in the order that decides who gets the budget."""

    def __init__(
        self, given: AssemblyInput, macros: Macros, prompts: PromptCollection, slots: Slots, chat: tuple[Message, ...]
    ) -> None:
        self._given = given
        self._macros = macros
        self._prompts = prompts
        self._slots = slots
        self._prefill = prefilled(given, chat[0] if chat else None)
        self._chat = chat[1:] if self._prefill else chat

    def run(self) -> None:
        self._slots.budget -= 0 if self._given.repaired else REPLY_RESERVE
        for identifier in _BEFORE_CUSTOM:
            self._place(identifier)
        controls = self._controls()
        self._slots.reserve(*controls)
        for identifier in (*_LATER, *self._custom(), "enhanceDefinitions"):
            self._place(identifier)
        self._place_beside_main()
        texts = injected_texts(self._given, self._macros.expand)
        history = inject(self._chat, self._prompts.prompts, texts)
        if self._given.preferences.pin_examples:
            self._place_examples()
        place_history(self._slots, self._prompts, self._given, history, self._macros)
        if not self._given.preferences.pin_examples:
            self._place_examples()
        self._slots.free(*controls)
        if controls:
            self._slots.add(Collection("controlPrompts", controls))

    def _place(self, identifier: str) -> None:
        index = self._prompts.index(identifier)
        if index < 0 or (identifier != "main" and self._given.preset.is_off(identifier)):
            return
        prompt = self._prompts.prompts[index]
        if not prompt.in_chat:
            message = Message(prompt.role, prompt.content, identifier)
            self._slots.add(Collection(identifier, [message]), index)

    def _place_beside_main(self) -> None:
        """Texts beside the main prompt: as messages of its place, or within it when it stands among the messages."""
        for prompt in list(self._prompts.prompts):
            if prompt.main_side is None:
                continue
            main = self._prompts.get("main")
            if main is not None and main.in_chat:
                parts = (
                    [prompt.content, main.content] if prompt.main_side == "start" else [main.content, prompt.content]
                )
                self._prompts.put(attrs.evolve(main, content=join_filled("\n", parts)))
            else:
                self._slots.insert(Message(prompt.role, prompt.content, prompt.identifier), "main", prompt.main_side)

    def largest(self) -> tuple[str, int]:
        """The fixed prompt that takes most tokens, and how many."""
        placed = [prompt for prompt in self._prompts.prompts if not self._given.preset.is_off(prompt.identifier)]
        used = placed if self._given.type != "normal" else [p for p in placed if p.identifier not in _FIXED]
        costs = [(prompt.identifier, self._slots.counter.count(prompt.content.text)) for prompt in used]
        return max(costs, key=lambda cost: cost[1], default=("", 0))

    def _custom(self) -> list[str]:
        return [prompt.identifier for prompt in self._prompts.prompts if _is_custom(prompt)]

    def _controls(self) -> list[Message]:
        wanted = {"impersonate": "impersonate", "quiet": "quietPrompt"}.get(self._given.type)
        messages = []
        if wanted is not None and (prompt := self._prompts.get(wanted)) is not None and prompt.content:
            messages.append(Message(prompt.role, prompt.content, wanted))
        return messages if self._prefill is None else [*messages, self._prefill]

    def _place_examples(self) -> None:
        place = self._prompts.index(_EXAMPLES)
        if place < 0:
            return
        self._slots.add(Collection(_EXAMPLES), place)
        text = Content.of(self._given.preset.new_example_chat, prompt_origin("new_example_chat_prompt"))
        announcement = Message("system", text.expanded(self._macros.expand), "newChat")
        plan = ExamplePlan(announcement, example_dialogues(self._given, self._macros.expand))
        for dialogue in plan.dialogues:
            if not self._slots.can_afford(plan.announcement, *dialogue):
                break
            for message in (plan.announcement, *dialogue):
                self._slots.insert(message, _EXAMPLES)


def _is_custom(prompt: Prepared) -> bool:
    return not prompt.system_prompt and not prompt.in_chat and prompt.identifier not in _NEVER_CUSTOM
