"""What the compatibility renderer is given.

Source: spec/loader §6, §8.2.
"""

from collections.abc import Mapping

import attrs

from tapster.engine.ecma import Json, is_safe_integer, sha256_json, trim
from tapster.engine.formats.presets import Preset
from tapster.engine.limits import PROFILE_BYTES_DEFAULT, PROFILE_BYTES_HARD
from tapster.engine.policy import CharacterOptions


@attrs.frozen
class ProfileCharacter:
    """A bound card: its data members as stored (camelCase or snake_case), opaque otherwise."""

    id: str | None
    name: str
    data: Mapping[str, Json]
    revision: str | None = None
    updated_at: str | None = None

    @classmethod
    def from_document(cls, document: Mapping[str, Json]) -> "ProfileCharacter":
        """A card from its stored document; a document without ``data`` is read flat."""
        data = document.get("data")
        return cls(
            id=_text_or_none(document.get("id")),
            name=document["name"] if isinstance(document.get("name"), str) else "",
            data=data if isinstance(data, dict) else document,
            revision=sha256_json(document),
            updated_at=_text_or_none(document.get("updatedAt")),
        )


@attrs.frozen
class ProfileUser:
    """A bound persona."""

    id: str | None
    name: str
    description: str
    revision: str | None = None


@attrs.frozen
class LoreEntry:
    """One active world-book entry, in the order the books give them.

    Attributes:
        expanded: its macros have run; the text goes in as it stands.
        outlet: the outlet it belongs to: it stands where a prompt names that, and nowhere else.
    """

    content: str
    position: str = ""
    id: str | None = None
    uid: Json = None
    name: str | None = None
    resource_id: str | None = None
    resource_revision: str | None = None
    expanded: bool = False
    outlet: str | None = None

    @property
    def before(self) -> bool:
        """Whether it stands before the character; everything else stands after."""
        return self.position in ("before", "before-character")

    @property
    def reported_id(self) -> Json:
        """The id that ``activeLoreEntries`` shows."""
        return self.id if self.id is not None else self.uid


@attrs.frozen
class ProfileInput:
    """Everything a profile is rendered from, except names and random draws."""

    preset: Preset | None = None
    character: ProfileCharacter | None = None
    user: ProfileUser | None = None
    lore: tuple[LoreEntry, ...] = ()
    options: CharacterOptions = attrs.field(factory=CharacterOptions)
    include_greeting: bool = True
    max_bytes: int = PROFILE_BYTES_DEFAULT
    variables: Mapping[str, str] = attrs.field(factory=dict)
    """What ``{{getvar}}`` finds before any prompt has set something."""

    @property
    def preset_only(self) -> bool:
        """Whether the preset stands alone."""
        return self.character is None and self.user is None and not self.lore


def profile_byte_limit(value: Json) -> int:
    """The configured budget in bytes: unusable gives the default, too large the hard bound."""
    return min(int(value), PROFILE_BYTES_HARD) if is_safe_integer(value) and value > 0 else PROFILE_BYTES_DEFAULT


@attrs.frozen
class CharacterFields:
    """A card's trimmed texts, in the order of their fallback."""

    description: str = ""
    personality: str = ""
    scenario: str = ""
    message_example: str = ""
    system_prompt: str = ""
    post_history: str = ""
    greeting: str = ""
    depth_prompt: str = ""


def character_fields(given: ProfileInput) -> CharacterFields:
    """The card's fields as this profile uses them: preferences and the greeting flag applied."""
    if given.character is None:
        return CharacterFields()
    data, options = given.character.data, given.options
    extensions = data.get("extensions")
    depth = extensions.get("depth_prompt") if isinstance(extensions, dict) else None
    system = _field(data, "systemPrompt", "system_prompt")
    post_history = _field(data, "postHistoryInstructions", "post_history_instructions")
    return CharacterFields(
        description=_field(data, "description"),
        personality=_field(data, "personality"),
        scenario=_field(data, "scenario"),
        message_example=_field(data, "messageExample", "mes_example", "message_example"),
        system_prompt=system if options.prefer_system_prompt is not False else "",
        post_history=post_history if options.prefer_post_history is not False else "",
        greeting=_greeting(data, options.greeting_index or 0) if given.include_greeting else "",
        depth_prompt=_field(depth, "prompt") if isinstance(depth, dict) else "",
    )


def _greeting(data: Mapping[str, Json], index: int) -> str:
    if index <= 0:
        return _field(data, "firstMessage", "first_mes", "first_message")
    alternates = data.get("alternateGreetings", data.get("alternate_greetings"))
    if not isinstance(alternates, list | tuple) or index > len(alternates):
        return ""
    chosen = alternates[index - 1]
    return trim(chosen) if isinstance(chosen, str) else ""


def _field(data: Mapping[str, Json], *names: str) -> str:
    for name in names:
        value = data.get(name)
        if isinstance(value, str):
            return trim(value)
    return ""


def _text_or_none(value: Json) -> str | None:
    return value if isinstance(value, str) else None
