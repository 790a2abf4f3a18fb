"""What the SillyTavern renderer is given.

Names follow SillyTavern's preset fields; absent fields have its defaults.
"""

import math
from collections.abc import Mapping
from enum import IntEnum
from typing import Final, Literal, Protocol, TypeAlias

import attrs

from tapster.engine.activation.sillytavern.settings import Quirks
from tapster.engine.ecma import Json

from .content import Content

Role: TypeAlias = Literal["system", "user", "assistant"]
GenerationType: TypeAlias = Literal["normal", "continue", "impersonate", "swipe", "regenerate", "quiet"]
ROLES: Final[tuple[Role, ...]] = ("system", "user", "assistant")
DEFAULT_INJECTION_ORDER: Final = 100
DEFAULT_DEPTH: Final = 4


class Position(IntEnum):
    """Where an extension's text goes."""

    AFTER_MAIN = 0
    IN_CHAT = 1
    BEFORE_MAIN = 2


class Names(IntEnum):
    """How speakers' names are sent."""

    NONE = -1
    DEFAULT = 0
    COMPLETION = 1
    CONTENT = 2


class PersonaPosition(IntEnum):
    """Where the persona's description goes."""

    IN_PROMPT = 0
    AFTER_CHARACTER = 1
    TOP_OF_NOTE = 2
    BOTTOM_OF_NOTE = 3
    AT_DEPTH = 4
    NONE = 9


class Macros(Protocol):
    """Replaces macros; state such as variables lives behind it."""

    def expand(self, text: str, *, original: str | None = None) -> str:
        """The text with its macros replaced; ``original`` is what ``{{original}}`` stands for, once."""


@attrs.frozen
class Prompt:
    """One prompt of a preset, as its file has it."""

    identifier: str
    content: str = ""
    role: Role | None = None
    system_prompt: bool = False
    marker: bool = False
    injection_position: int | None = None
    injection_depth: int | None = None
    injection_order: int | None = None
    injection_trigger: tuple[str, ...] = ()
    forbid_overrides: bool = False


@attrs.frozen
class OrderEntry:
    """One place of the active prompt order."""

    identifier: str
    enabled: bool


@attrs.frozen
class PromptPreset:
    """The prompts of a preset, their order, and the fixed prompts around the chat."""

    prompts: tuple[Prompt, ...] = ()
    order: tuple[OrderEntry, ...] = ()
    context_tokens: int = 4095
    response_tokens: int = 300
    names: Names = Names.DEFAULT
    squash_system_messages: bool = False
    new_chat: str = "[Start a new Chat]"
    new_group_chat: str = "[Start a new group chat. Group members: {{group}}]"
    new_example_chat: str = "[Example Chat]"
    world_info_format: str = "{0}"
    scenario_format: str = "{{scenario}}"
    personality_format: str = "{{personality}}"
    impersonation: str = ""
    continue_nudge: str = "[Continue your last message without repeating its original content.]"
    group_nudge: str = "[Write the next reply only as {{char}}.]"
    send_if_empty: str = ""
    continue_prefill: bool = False

    def prompt(self, identifier: str) -> Prompt | None:
        """The first prompt of that identifier."""
        return next((prompt for prompt in self.prompts if prompt.identifier == identifier), None)

    def is_off(self, identifier: str) -> bool:
        """Whether the order names the prompt and switches it off; one that it doesn't name is on."""
        return any(entry.identifier == identifier and not entry.enabled for entry in self.order)


@attrs.frozen
class CardFields:
    """The speaking character's texts, macros not yet replaced."""

    name: str
    description: str = ""
    personality: str = ""
    scenario: str = ""
    examples: str = ""
    system_prompt: str = ""
    post_history: str = ""
    depth_prompt: str = ""
    depth_prompt_depth: int = DEFAULT_DEPTH
    depth_prompt_role: Role = "system"


@attrs.frozen
class PersonaSettings:
    """The persona's description and where it goes."""

    description: str = ""
    position: int = PersonaPosition.IN_PROMPT
    depth: int = 2
    role: Role = "system"


@attrs.frozen
class ChatMessage:
    """One message of the chat, oldest first.

    ``label`` names it in records; ``present`` lists the group members who were there, None when nobody noted it.
    """

    name: str
    text: str
    role: Role
    hidden: bool = False
    forced_avatar: bool = False
    label: str | None = None
    present: tuple[str, ...] | None = None

    @property
    def narrated(self) -> bool:
        """Whether a narrator speaks."""
        return self.role == "system"


@attrs.frozen
class DepthLore:
    """A world-info text that stands among the messages."""

    content: Content
    depth: int
    role: Role = "system"
    order: int = DEFAULT_INJECTION_ORDER


@attrs.frozen
class PlacedLore:
    """Active world info by its place, each list in reading order."""

    before: tuple[Content, ...] = ()
    after: tuple[Content, ...] = ()
    note_top: tuple[Content, ...] = ()
    note_bottom: tuple[Content, ...] = ()
    examples_top: tuple[Content, ...] = ()
    examples_bottom: tuple[Content, ...] = ()
    depth: tuple[DepthLore, ...] = ()


@attrs.frozen
class AuthorsNote:
    """The author's note of a chat."""

    text: str = ""
    position: int = Position.IN_CHAT
    depth: int = DEFAULT_DEPTH
    role: Role = "system"
    interval: int = 1


@attrs.frozen
class Injection:
    """A text that an extension or client adds; ``literal`` text has no macros, ``scan`` looks for keys in it."""

    source: str
    text: str
    position: int = Position.IN_CHAT
    depth: int = DEFAULT_DEPTH
    role: Role = "system"
    literal: bool = False
    scan: bool = False


@attrs.frozen
class Group:
    """The members of a group chat, by name."""

    members: tuple[str, ...]


@attrs.frozen
class Preferences:
    """The person's own settings that bear on the prompt."""

    pin_examples: bool = False
    strip_examples: bool = False
    prefer_card_main: bool = True
    prefer_card_post_history: bool = True


@attrs.frozen
class AssemblyInput:
    """Everything a SillyTavern request is assembled from.

    ``safety_margin`` is the share of the room that stays free because the counter may be off. With ``repaired`` quirks
    no tokens are kept for a reply's start, and texts whose marker the order doesn't name stay out.
    """

    preset: PromptPreset
    card: CardFields
    user: str
    chat: tuple[ChatMessage, ...] = ()
    persona: PersonaSettings = attrs.field(factory=PersonaSettings)
    lore: PlacedLore = attrs.field(factory=PlacedLore)
    note: AuthorsNote = attrs.field(factory=AuthorsNote)
    injections: tuple[Injection, ...] = ()
    group: Group | None = None
    preferences: Preferences = attrs.field(factory=Preferences)
    type: GenerationType = "normal"
    quiet_prompt: str = ""
    safety_margin: float = 0
    quirks: Quirks = "exact"

    @property
    def repaired(self) -> bool:
        """Whether SillyTavern's plain defects are repaired."""
        return self.quirks == "repaired"

    @property
    def room(self) -> int:
        """Tokens that prompts and history may take together."""
        share = (self.preset.context_tokens - self.preset.response_tokens) * (1 - self.safety_margin)
        return math.floor(round(share, 6))


@attrs.frozen
class Message:
    """One message on its way into the request; ``injected`` ones stand among the chat's but aren't of it."""

    role: Role
    content: Content
    identifier: str | None = None
    name: str | None = None
    injected: bool = False

    def to_json(self) -> Json:
        """The message as a chat-completion API takes it."""
        value: dict[str, Json] = {"role": self.role, "content": self.content.text}
        return {**value, "name": self.name} if self.name else value


Facts: TypeAlias = Mapping[str, tuple[Json, ...]]
