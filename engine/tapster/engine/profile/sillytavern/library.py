"""A person's library as a request: preset, card, persona, books and chat file in SillyTavern's terms.

What a chat file's header holds counts: author's note, variables, timed effects.
"""

from collections.abc import Callable, Mapping
from datetime import datetime

import attrs

from tapster.engine.activation.sillytavern import (
    BookUse,
    CompiledScanBook,
    MatchSource,
    Quirks,
    ScanInput,
    ScanSettings,
    compile_scan_book,
    copied_book,
    scan_entries,
)
from tapster.engine.ecma import Json, is_record
from tapster.engine.formats.cards import Card
from tapster.engine.formats.chats import Chat
from tapster.engine.formats.chats import ChatMessage as ChatLine
from tapster.engine.formats.personas import Persona
from tapster.engine.formats.presets import Preset
from tapster.engine.formats.regex_scripts import read_regex_scripts
from tapster.engine.formats.world_books import WorldBook, parse_world_book
from tapster.engine.text.macros import CardFields as MacroCard
from tapster.engine.text.macros import MacroContext, MacroMessage, expand
from tapster.engine.text.regex_scripts import RegexScript, parse_regex_script, scripts_in_force

from .assemble import AssemblyRequest
from .chat_header import authors_note, role_of, text_of, timed_effects, whole_of
from .model import (
    DEFAULT_DEPTH,
    AssemblyInput,
    CardFields,
    ChatMessage,
    GenerationType,
    PersonaSettings,
)
from .presets import PresetReading, prompt_preset_of, read_prompt_preset

DEFAULT_USER = "User"
DEFAULT_CHARACTER = "Assistant"


@attrs.frozen(eq=False)
class Library:
    """What a request is made of; None is "not given". ``books`` are the world files in force, by name."""

    preset: Preset | None = None
    card: Card | None = None
    persona: Persona | None = None
    books: Mapping[str, WorldBook] = attrs.field(factory=dict)
    chat: Chat | None = None
    draft: str | None = None
    """A message of the user that isn't in the chat yet."""
    user_name: str | None = None

    @property
    def user(self) -> str:
        """The user's name."""
        return self.persona.name if self.persona else self.user_name or DEFAULT_USER

    @property
    def character(self) -> str:
        """The character's name."""
        return self.card.name if self.card else DEFAULT_CHARACTER


@attrs.frozen
class Choices:
    """A person's settings for the renderer; scripts that a card brings run only with consent."""

    quirks: Quirks = "repaired"
    scan: ScanSettings = attrs.field(factory=ScanSettings)
    type: GenerationType = "normal"
    card_scripts: bool = False
    scripts: tuple[RegexScript, ...] = ()


def library_request(
    library: Library, choices: Choices, *, now: datetime, random: Callable[[], float]
) -> AssemblyRequest:
    """A request for the renderer.

    Args:
        now: an aware datetime in the person's time zone, for macros.
        random: draws of ``{{random}}`` and ``{{roll}}``, in [0, 1).
    """
    reading = read_prompt_preset({}) if library.preset is None else prompt_preset_of(library.preset)
    metadata: Mapping[str, Json] = library.chat.metadata if library.chat else {}
    settings = attrs.evolve(choices.scan, quirks=choices.quirks)
    macros = _macro_context(library, reading, metadata, now, random)
    return AssemblyRequest(
        AssemblyInput(
            reading.preset,
            card_fields(library.card) if library.card else CardFields(DEFAULT_CHARACTER),
            library.user,
            _messages(library),
            PersonaSettings(library.persona.description if library.persona else ""),
            note=authors_note(metadata),
            type=choices.type,
            quirks=choices.quirks,
        ),
        ScanInput(
            library_books(library, settings),
            settings=settings,
            sources={
                name: expand(text, macros).text for name, text in match_sources(library.card, library.persona).items()
            },
            character_file=library.card.source.file_name.rpartition(".")[0] if library.card else "",
            timed=timed_effects(metadata),
        ),
        macros,
        _scripts(library, choices),
        warnings=reading.warnings,
    )


def card_fields(card: Card) -> CardFields:
    """A card's texts for the renderer."""
    data, depth = card.data, card.data.extensions.get("depth_prompt")
    prompt: Mapping[str, Json] = depth if isinstance(depth, dict) else {}
    return CardFields(
        card.name,
        data.description,
        data.personality,
        data.scenario,
        data.message_example,
        data.system_prompt,
        data.post_history_instructions,
        text_of(prompt.get("prompt")),
        whole_of(prompt.get("depth"), DEFAULT_DEPTH),
        role_of(prompt.get("role")),
    )


def library_books(library: Library, settings: ScanSettings) -> tuple[BookUse, ...]:
    """The world files in force and the card's own book, which is skipped when its world file is loaded too."""
    exact = settings.quirks == "exact"
    uses = [BookUse("global", _compiled(name, book, settings, exact=exact)) for name, book in library.books.items()]
    card = library.card
    if card is not None and card.data.character_book is not None:
        embedded = parse_world_book(card.data.character_book)
        linked = card.data.extensions.get("world")
        copy_of = copied_book(linked if isinstance(linked, str) else None, list(library.books))
        name = embedded.name or f"{card.name}'s Lorebook"
        uses.append(BookUse("character", _compiled(name, embedded, settings, exact=exact), copy_of))
    return tuple(uses)


def _compiled(name: str, book: WorldBook, settings: ScanSettings, *, exact: bool) -> CompiledScanBook:
    return compile_scan_book(
        name,
        scan_entries(name, book, exact=exact),
        case_sensitive=settings.case_sensitive,
        match_whole_words=settings.match_whole_words,
    )


def _lines(library: Library) -> tuple[ChatLine, ...]:
    return library.chat.messages if library.chat else ()


def _messages(library: Library) -> tuple[ChatMessage, ...]:
    said = tuple(_message(line) for line in _lines(library))
    return said if library.draft is None else (*said, ChatMessage(library.user, library.draft, "user"))


def _message(line: ChatLine) -> ChatMessage:
    extra = line.raw.get("extra")
    narrated = isinstance(extra, dict) and extra.get("type") == "narrator"
    return ChatMessage(
        line.name,
        line.text,
        "system" if narrated else "user" if line.is_user else "assistant",
        hidden=line.is_hidden,
        forced_avatar=bool(line.raw.get("force_avatar")),
    )


def _macro_context(
    library: Library,
    reading: PresetReading,
    metadata: Mapping[str, Json],
    now: datetime,
    random: Callable[[], float],
) -> MacroContext:
    said = [MacroMessage(line.text, line.is_user, line.is_hidden) for line in _lines(library)]
    if library.draft is not None:
        said.append(MacroMessage(library.draft, is_user=True))
    variables = metadata.get("variables")
    return MacroContext(
        now=now,
        random=random,
        user=library.user,
        char=library.character,
        persona=library.persona.description if library.persona else "",
        card=macro_card(library.card),
        chat=tuple(said),
        variables=variables if isinstance(variables, dict) else {},
        max_context_tokens=reading.preset.context_tokens,
        max_response_tokens=reading.preset.response_tokens,
    )


def macro_card(card: Card | None) -> MacroCard | None:
    """A card's texts for macros."""
    if card is None:
        return None
    data, fields = card.data, card_fields(card)
    return MacroCard(
        data.description,
        data.personality,
        data.scenario,
        data.first_message,
        data.alternate_greetings,
        data.message_example,
        data.creator_notes,
        data.system_prompt,
        data.post_history_instructions,
        data.character_version,
        fields.depth_prompt,
    )


def match_sources(card: Card | None, persona: Persona | None) -> dict[MatchSource, str]:
    """The extra texts that entries may be matched against, macros not yet replaced."""
    texts: dict[MatchSource, str] = {"persona_description": persona.description if persona else ""}
    if card is not None:
        texts["character_description"] = card.data.description
        texts["character_personality"] = card.data.personality
        texts["character_depth_prompt"] = card_fields(card).depth_prompt
        texts["scenario"] = card.data.scenario
        texts["creator_notes"] = card.data.creator_notes
    return texts


def _scripts(library: Library, choices: Choices) -> tuple[RegexScript, ...]:
    return scripts_in_force(
        choices.scripts,
        own_scripts(library.card.source.raw if library.card else None),
        own_scripts(library.preset.source.raw if library.preset else None),
        character_allowed=choices.card_scripts,
    )


def own_scripts(raw: Mapping[str, Json] | None) -> tuple[RegexScript, ...]:
    """The regex scripts that a raw preset or card brings."""
    return tuple(parse_regex_script(script) for script in read_regex_scripts(raw or {}) if is_record(script))
