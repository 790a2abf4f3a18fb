"""The chat's messages as they are sent: roles, names, and the newest ones that fit."""

import re
from collections.abc import Sequence
from typing import Final

import attrs

from tapster.engine.ecma import trim

from .collection import PromptCollection
from .content import CHAT, Content, Origin, prompt_origin
from .model import AssemblyInput, ChatMessage, Macros, Message, Names
from .slots import Collection, Slots

HISTORY: Final = "chatHistory"
_VALID_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_-]")
_NAME_LENGTH: Final = 64


def visible_messages(given: AssemblyInput) -> tuple[ChatMessage, ...]:
    """The messages that are sent: not the hidden ones, and without the reply that a swipe replaces."""
    chat = given.chat[:-1] if given.type == "swipe" else given.chat
    return tuple(message for message in chat if not message.hidden)


def chat_messages(given: AssemblyInput) -> tuple[Message, ...]:
    """The chat as messages, newest first; ``name`` is the speaker's, whether it is sent or not."""
    messages = []
    for message in visible_messages(given):
        text = _with_name(message.text, message, given).replace("\r", "")
        origin = Origin(CHAT, message.label)
        messages.append(Message(message.role, Content.of(text, origin), name=message.name))
    return tuple(reversed(messages))


def _with_name(text: str, message: ChatMessage, given: AssemblyInput) -> str:
    names = given.preset.names
    if message.narrated or names in (Names.NONE, Names.COMPLETION):
        return text
    foreign = message.name != given.user and (given.group is not None or message.forced_avatar)
    return f"{message.name}: {text}" if names == Names.CONTENT or foreign else text


def sent_name(name: str) -> str:
    """A speaker's name in the letters that the API allows."""
    return name if _VALID_NAME.fullmatch(name) else _UNSAFE.sub("_", name)[:_NAME_LENGTH]


def prefilled(given: AssemblyInput, newest: Message | None) -> Message | None:
    """The message that a prefilling ``continue`` takes from the chat to the very end, or None."""
    if given.type != "continue" or not given.preset.continue_prefill or newest is None:
        return None
    return attrs.evolve(newest, identifier="continuePrefill", name=_sent_name(newest, given))


def place_history(
    slots: Slots,
    prompts: PromptCollection,
    given: AssemblyInput,
    messages: Sequence[Message],
    macros: Macros,
) -> None:
    """Put the newest messages that fit into the history's place, oldest first.

    Args:
        messages: newest first, injected texts among them.
    """
    place = prompts.index(HISTORY)
    if place < 0:
        return
    slots.add(Collection(HISTORY), place)
    around = _Around(_announcement(given, macros), _group_nudge(prompts, given), *_continued(given, messages, macros))
    slots.reserve(*around.all())
    listed = [message for message in messages if message is not around.taken]
    _stand_in(slots, given, listed)
    for index, message in enumerate(listed):
        prepared = attrs.evolve(
            message,
            content=message.content.expanded(macros.expand),
            identifier=f"chatHistory-{len(listed) - index}",
            name=_sent_name(message, given),
        )
        if not slots.can_afford(prepared):
            break
        slots.insert(prepared, HISTORY, "start")
    around.place(slots)


@attrs.frozen
class _Around:
    """What stands around the history; room is kept for it before any message goes in."""

    announcement: Message
    group_nudge: Message | None
    taken: Message | None
    tail: tuple[Message, ...]

    def all(self) -> list[Message]:
        return [message for message in (self.announcement, self.group_nudge, *self.tail) if message is not None]

    def place(self, slots: Slots) -> None:
        slots.free(*self.all())
        slots.insert(self.announcement, HISTORY, "start")
        if self.group_nudge is not None:
            slots.insert(self.group_nudge, HISTORY, "end")
        if self.tail:
            slots.add(Collection("continueNudge", list(self.tail)))


def _continued(
    given: AssemblyInput, messages: Sequence[Message], macros: Macros
) -> tuple[Message | None, tuple[Message, ...]]:
    """For a ``continue`` with a nudge: the chat's newest message, and what it becomes behind everything."""
    newest = next((message for message in messages if not message.injected), None)
    if given.type != "continue" or given.preset.continue_prefill or newest is None:
        return None, ()
    content = newest.content.expanded(macros.expand)
    nudge = given.preset.continue_nudge.replace("{{lastChatMessage}}", trim(content.text))
    prepared = Content.of(nudge, prompt_origin("continue_nudge_prompt")).expanded(macros.expand)
    return newest, (attrs.evolve(newest, content=content, name=None), Message("system", prepared, "continueNudge"))


def _sent_name(message: Message, given: AssemblyInput) -> str | None:
    return sent_name(message.name) if given.preset.names == Names.COMPLETION and message.name else None


def _announcement(given: AssemblyInput, macros: Macros) -> Message:
    group = given.group is not None
    text = given.preset.new_group_chat if group else given.preset.new_chat
    origin = prompt_origin("new_group_chat_prompt" if group else "new_chat_prompt")
    return Message("system", Content.of(text, origin).expanded(macros.expand), "newMainChat")


def _group_nudge(prompts: PromptCollection, given: AssemblyInput) -> Message | None:
    prompt = prompts.get("groupNudge")
    if given.group is None or given.type == "impersonate" or prompt is None:
        return None
    return Message(prompt.role, prompt.content, "groupNudge")


def _stand_in(slots: Slots, given: AssemblyInput, messages: Sequence[Message]) -> None:
    """A user message for a chat that ends with the character, when the preset has one."""
    if messages and messages[0].role == "assistant" and given.preset.send_if_empty:
        content = Content.of(given.preset.send_if_empty, prompt_origin("send_if_empty"))
        message = Message("user", content, "emptyUserMessageReplacement")
        if slots.can_afford(message):
            slots.insert(message, HISTORY)
