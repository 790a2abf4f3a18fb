"""What a template or another session's selection would bind on a clean session, and what stands against it.

Source: spec/loader §13.
"""

from collections.abc import Mapping
from typing import Literal, TypeAlias

import attrs

from tapster.engine.errors import RequestError

from .selection import Selection

ConfigurationField: TypeAlias = Literal["presetId", "characterCardId", "userId", "worldBookIds"]


class ConfigurationUnavailable(RequestError):
    """A template or configuration names something that is gone; ``details`` holds the diagnostics."""

    code = "SESSION_CONFIGURATION_UNAVAILABLE"
    kind = "Error"
    status = 409


@attrs.frozen
class ConfigurationDiagnostic:
    """A resource that a configuration names and that can't be used."""

    code: str
    field: ConfigurationField
    resource_id: str


@attrs.frozen
class ConfigurationContent:
    """One resource of a configuration, for display; ``name`` None when it's missing."""

    field: ConfigurationField
    resource_id: str
    name: str | None

    @property
    def missing(self) -> bool:
        """Whether the resource is gone."""
        return self.name is None


@attrs.frozen
class Library:
    """The names by id of what a library has; ``greetings`` counts those of each card."""

    presets: Mapping[str, str] = attrs.field(factory=dict)
    characters: Mapping[str, str] = attrs.field(factory=dict)
    users: Mapping[str, str] = attrs.field(factory=dict)
    world_books: Mapping[str, str] = attrs.field(factory=dict)
    greetings: Mapping[str, int] = attrs.field(factory=dict)


@attrs.frozen
class ConfigurationPreview:
    """What applying a configuration would bind, and what stands against it."""

    selection: Selection
    contents: tuple[ConfigurationContent, ...]
    diagnostics: tuple[ConfigurationDiagnostic, ...]

    @property
    def available(self) -> bool:
        """Whether it can be applied."""
        return not self.diagnostics


def preview_configuration(selection: Selection, library: Library) -> ConfigurationPreview:
    """What applying a selection to a clean session would do. Source: spec/loader §13 "preview", "diagnostics"."""
    named: list[tuple[ConfigurationField, str, Mapping[str, str], str]] = []
    if selection.preset_id is not None:
        named.append(("presetId", selection.preset_id, library.presets, "PRESET_MISSING"))
    if selection.character_card_id is not None:
        named.append(
            ("characterCardId", selection.character_card_id, library.characters, "CHARACTER_MISSING_OR_INVALID")
        )
    if selection.user_id is not None:
        named.append(("userId", selection.user_id, library.users, "USER_MISSING"))
    named += [("worldBookIds", book, library.world_books, "WORLD_BOOK_MISSING") for book in selection.world_book_ids]
    contents = tuple(ConfigurationContent(field, key, names.get(key)) for field, key, names, _ in named)
    diagnostics = tuple(
        ConfigurationDiagnostic(f"SESSION_CONFIGURATION_{word}", field, key)
        for field, key, names, word in named
        if key not in names or (field == "characterCardId" and not _greeting_exists(selection, key, library))
    )
    return ConfigurationPreview(selection, contents, diagnostics)


def _greeting_exists(selection: Selection, card: str, library: Library) -> bool:
    index = selection.character.greeting_index
    return index is None or index == 0 or index < library.greetings.get(card, 0)


def apply_configuration(preview: ConfigurationPreview) -> Selection:
    """The whole selection to write.

    Raises:
        ConfigurationUnavailable: the preview has a diagnostic; nothing may be written.
    """
    if not preview.available:
        missing = ", ".join(f"{item.field} {item.resource_id}" for item in preview.diagnostics)
        raise ConfigurationUnavailable(f"the configuration can't be applied, unusable: {missing}")
    return preview.selection
