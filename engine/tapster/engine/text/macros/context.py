"""What a macro expansion may see, and what it gives back. All of it is values; nothing here reads a clock."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypeAlias

import attrs

Json: TypeAlias = Any
Variables: TypeAlias = Mapping[str, Json]


@attrs.frozen
class CardFields:
    """The card of the speaking character, as written (macros unexpanded)."""

    description: str = ""
    personality: str = ""
    scenario: str = ""
    first_message: str = ""
    alternate_greetings: tuple[str, ...] = ()
    message_examples: str = ""
    creator_notes: str = ""
    system_prompt: str = ""
    post_history_instructions: str = ""
    version: str = ""
    depth_prompt: str = ""


@attrs.frozen
class MacroMessage:
    """One message of the chat, as far as macros can see it."""

    text: str
    is_user: bool = False
    is_system: bool = False
    sent_at: datetime | None = None
    swipe_count: int | None = None
    swipe_index: int | None = None

    @property
    def swipe_in_progress(self) -> bool:
        """A reply that is just being generated as a further swipe."""
        return self.swipe_count is not None and self.swipe_index is not None and self.swipe_index >= self.swipe_count


@attrs.frozen
class Group:
    """The members of a group chat, in order."""

    members: tuple[str, ...]
    muted: frozenset[str] = frozenset()


@attrs.frozen
class MacroContext:
    """Everything an expansion depends on.

    ``random`` gives numbers in [0, 1); ``now`` is an aware datetime in the user's time zone. ``dynamic`` macros (name →
    text) win over built-in ones. ``post_process`` is applied to what each resolved macro gives.
    """

    now: datetime
    random: Callable[[], float]
    user: str = "User"
    char: str = "Assistant"
    persona: str = ""
    card: CardFields | None = None
    group: Group | None = None
    group_override: str | None = None
    original: str | None = None
    chat: tuple[MacroMessage, ...] = ()
    chat_id: str = ""
    chat_id_hash: int | None = None
    pick_reroll_seed: str | None = None
    first_included_message: int | None = None
    variables: Variables = attrs.field(factory=dict)
    global_variables: Variables = attrs.field(factory=dict)
    message_variables: Variables = attrs.field(factory=dict)
    outlets: Mapping[str, str] = attrs.field(factory=dict)
    input_text: str = ""
    generation_type: str = ""
    model: str = ""
    max_context_tokens: int = 0
    max_response_tokens: int = 0
    dynamic: Mapping[str, str] = attrs.field(factory=dict)
    post_process: Callable[[str], str] | None = None


@attrs.frozen
class Draw:
    """One random number an expansion took, with the macro that took it and its place (UTF-16 units)."""

    macro: str
    offset: int
    value: float


@attrs.frozen
class Expansion:
    """An expanded text with the variables as they are afterwards."""

    text: str
    variables: Variables
    global_variables: Variables
    draws: tuple[Draw, ...] = ()
