"""Names, card fields, the chat and the request: macros that print what the context holds."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from tapster.engine.ecma import WHITE_SPACE

from .context import CardFields, MacroMessage
from .registry import Call, MacroDefinition, aliases, constant

if TYPE_CHECKING:
    from .evaluate import Run

DEFAULT_SYSTEM_PROMPT = "Write {{char}}'s next reply in a fictional chat between {{char}} and {{user}}."
SEPARATOR = "***"
NO_CARD = CardFields()
START = "<START>"


def _members(run: "Run", *, muted: bool) -> str:
    group = run.context.group
    if run.context.group_override is not None:
        return run.context.group_override
    if group is None:
        return run.context.char
    return ", ".join(name for name in group.members if muted or name not in group.muted)


def _others(run: "Run") -> str:
    group = run.context.group
    if run.context.group_override is not None:
        return run.context.group_override
    if group is None:
        return run.context.user
    return ", ".join(name for name in group.members if name != run.context.char)


def _original(call: Call) -> str:
    if call.run.original_used:
        return ""
    call.run.original_used = True
    return call.run.context.original or ""


def card(run: "Run") -> CardFields:
    return run.context.card or NO_CARD


def field(read: Callable[[CardFields], str]) -> MacroDefinition:
    """A card field: trimmed, without carriage returns, its own macros expanded."""
    return constant(lambda run: run.nested(clean(read(card(run)))))


def clean(text: str) -> str:
    return text.strip(WHITE_SPACE).replace("\r", "")


def _persona(run: "Run") -> str:
    return run.nested(clean(run.context.persona))


def _greeting(call: Call) -> str:
    index = call.integer(0) if call.arguments else 0
    greetings = (card(call.run).first_message, *card(call.run).alternate_greetings)
    return call.run.nested(clean(greetings[index])) if 0 <= index < len(greetings) else ""


def message_examples(text: str) -> str:
    """Example dialogue in the form it has in a chat prompt: each block under a ``<START>`` line."""
    if not text or text == START:
        return ""
    blocks = _split_start(text if text.startswith(START) else f"{START}\n{text.strip(WHITE_SPACE)}")
    return "".join(f"{START}\n{block.strip(WHITE_SPACE)}\n" for block in blocks)


def _split_start(text: str) -> list[str]:
    blocks: list[str] = []
    lower, position = text.lower(), 0
    while (position := lower.find(START.lower(), position)) >= 0:
        position += len(START)
        end = lower.find(START.lower(), position)
        blocks.append(text[position : end if end >= 0 else None])
    return blocks


def last_index(run: "Run", wanted: Callable[[MacroMessage], bool], *, in_progress: bool = False) -> int | None:
    """The newest message that fits, leaving out one that is just being swiped."""
    chat = run.context.chat
    for index in range(len(chat) - 1, -1, -1):
        if (in_progress or not chat[index].swipe_in_progress) and wanted(chat[index]):
            return index
    return None


def _last_text(wanted: Callable[[MacroMessage], bool]) -> MacroDefinition:
    def give(run: "Run") -> str:
        index = last_index(run, wanted)
        return "" if index is None else run.context.chat[index].text

    return constant(give)


def _number(value: int | None, plus: int = 0) -> str:
    return "" if value is None else str(value + plus)


def _swipes(run: "Run") -> str:
    index = last_index(run, _any, in_progress=True)
    return "" if index is None else _number(run.context.chat[index].swipe_count)


def _swipe(run: "Run") -> str:
    index = last_index(run, _any, in_progress=True)
    return "" if index is None else _number(run.context.chat[index].swipe_index, 1)


def _range(run: "Run") -> str:
    return f"0-{len(run.context.chat) - 1}" if run.context.chat else ""


def _any(message: MacroMessage) -> bool:
    return True


def _by_user(message: MacroMessage) -> bool:
    return message.is_user and not message.is_system


def _by_char(message: MacroMessage) -> bool:
    return not message.is_user and not message.is_system


def _system_prompt(run: "Run") -> str:
    own = run.nested(clean(card(run).system_prompt))
    return own or DEFAULT_SYSTEM_PROMPT


INSTRUCT = (
    "instructInput instructUserPrefix instructUserSuffix instructOutput instructAssistantPrefix instructSeparator "
    "instructAssistantSuffix instructSystemPrefix instructSystemSuffix instructFirstInput instructFirstUserPrefix "
    "instructLastInput instructLastUserPrefix instructFirstOutput instructFirstAssistantPrefix "
    "instructFirstOutputPrefix instructLastOutput instructLastAssistantPrefix instructLastOutputPrefix instructStop "
    "instructUserFiller instructSystemInstructionPrefix instructStoryStringPrefix instructStoryStringSuffix"
)
NAMES = {
    "user": constant(lambda run: run.context.user),
    "char": constant(lambda run: run.context.char),
    **aliases("group charIfNotGroup", constant(lambda run: _members(run, muted=True))),
    "groupNotMuted": constant(lambda run: _members(run, muted=False)),
    "notChar": constant(_others),
    "original": MacroDefinition(_original),
}
CARD = {
    "persona": constant(_persona),
    **aliases("description charDescription", field(lambda card: card.description)),
    **aliases("personality charPersonality", field(lambda card: card.personality)),
    **aliases("scenario charScenario", field(lambda card: card.scenario)),
    "charPrompt": field(lambda card: card.system_prompt),
    "charInstruction": field(lambda card: card.post_history_instructions),
    "charDepthPrompt": field(lambda card: card.depth_prompt),
    **aliases("creatorNotes charCreatorNotes", field(lambda card: card.creator_notes)),
    **aliases("charVersion version char_version", field(lambda card: card.version)),
    "mesExamplesRaw": field(lambda card: card.message_examples),
    "mesExamples": constant(lambda run: message_examples(run.nested(clean(card(run).message_examples)))),
    **aliases("greeting charFirstMessage", MacroDefinition(_greeting, 0, 1)),
}
CHAT = {
    "lastMessage": _last_text(_any),
    "lastUserMessage": _last_text(_by_user),
    "lastCharMessage": _last_text(_by_char),
    "lastMessageId": constant(lambda run: _number(last_index(run, _any))),
    "lastSwipeId": constant(_swipes),
    "currentSwipeId": constant(_swipe),
    "firstIncludedMessageId": constant(lambda run: _number(run.context.first_included_message)),
    "firstDisplayedMessageId": constant(lambda run: ""),
    "allChatRange": constant(_range),
    "input": constant(lambda run: run.context.input_text),
    "outlet": MacroDefinition(lambda call: call.run.context.outlets.get(call.arguments[0], ""), 1, 1),
    "lastGenerationType": constant(lambda run: run.context.generation_type),
}
REQUEST = {
    "model": constant(lambda run: run.context.model),
    "isMobile": constant(lambda run: "false"),
    **aliases(
        "maxPrompt maxPromptTokens",
        constant(lambda run: str(run.context.max_context_tokens - run.context.max_response_tokens)),
    ),
    **aliases("maxContext maxContextTokens", constant(lambda run: str(run.context.max_context_tokens))),
    **aliases("maxResponse maxResponseTokens", constant(lambda run: str(run.context.max_response_tokens))),
    **aliases("chatStart chatSeparator exampleSeparator", constant(lambda run: SEPARATOR)),
    "systemPrompt": constant(_system_prompt),
    **aliases("defaultSystemPrompt instructSystemPrompt instructSystem", constant(lambda run: DEFAULT_SYSTEM_PROMPT)),
    **aliases(INSTRUCT, constant(lambda run: "")),
}

__all__ = ["CARD", "CHAT", "NAMES", "REQUEST"]
