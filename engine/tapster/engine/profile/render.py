"""The compatibility renderer: preset, card, persona and lore as one system text.

Source: spec/loader §8.1-§8.4, §9.2.
"""

import re
from collections.abc import Mapping
from typing import Final

import attrs

from tapster.engine.ecma import Json, trim, utf16_length
from tapster.engine.formats.presets import Preset, PresetPrompt
from tapster.engine.text.macro_output import OutputRoom
from tapster.engine.text.pairs import closed_part
from tapster.engine.text.ports import Checkpoint, go_on
from tapster.engine.text.tavern_macros import Draw, MacroContext, expand_macros, settled
from tapster.engine.trace.sections import PartSource

from .inputs import CharacterFields, LoreEntry, ProfileInput, character_fields
from .parts import Diagnostic, Part

CHARACTER_MARKERS: Final[Mapping[str, str]] = {
    "charDescription": "description",
    "charPersonality": "personality",
    "scenario": "scenario",
    "dialogueExamples": "message_example",
}
PERSONA_MARKERS: Final = frozenset({"personaDescription", "userDescription", "userPersona"})
LORE_MARKERS: Final = {"worldInfoBefore": True, "worldInfoAfter": False}
FIELD_NAMES: Final[Mapping[str, str]] = {
    "description": "description",
    "personality": "personality",
    "scenario": "scenario",
    "message_example": "messageExample",
    "system_prompt": "systemPrompt",
    "post_history": "postHistoryInstructions",
    "greeting": "greeting",
    "depth_prompt": "depthPrompt",
}
_FALLBACK_ORDER: Final = (
    "system_prompt", "description", "personality", "scenario", "message_example", "post_history", "greeting",
    "depth_prompt",
)  # fmt: skip
_FIELD_MACROS: Final[Mapping[str, str]] = {
    "description": "description",
    "personality": "personality",
    "scenario": "scenario",
    "mesexamples": "message_example",
}
_PROFILE_MACRO = re.compile(r"\{\{\s*(persona|description|personality|scenario|mesExamples)\s*\}\}", re.IGNORECASE)
_OUTLET = re.compile(r"\{\{\s*outlet\s*::(.*?)\}\}", re.IGNORECASE | re.DOTALL)
_ORIGINAL = re.compile(r"\{\{\s*original\s*\}\}", re.IGNORECASE)
_NOTICES: Final[Mapping[str, tuple[str, str]]] = {
    "post_history": (
        "CHARACTER_PHI_APPROXIMATE",
        "the card's post-history instructions stand in the system text, not after the history",
    ),
    "greeting": (
        "CHARACTER_GREETING_REFERENCE",
        "the card's greeting is shown to the model for reference, it is no message of the history",
    ),
    "depth_prompt": (
        "CHARACTER_DEPTH_APPROXIMATE",
        "the card's depth prompt stands in the system text, not at its depth in the history",
    ),
}


@attrs.frozen
class UserInjection:
    """Where the persona's description went."""

    selected: bool = False
    description_characters: int = 0
    insertions: int = 0
    placement: str = "none"

    def to_json(self) -> Json:
        """The report as API answers hold it; lengths are UTF-16 units."""
        return {
            "selected": self.selected,
            "descriptionAvailable": self.description_characters > 0,
            "descriptionCharacters": self.description_characters,
            "descriptionInsertions": self.insertions,
            "descriptionPlacement": self.placement,
        }


@attrs.frozen
class Rendering:
    """A rendered profile before its byte budget."""

    parts: tuple[Part, ...]
    diagnostics: tuple[Diagnostic, ...] = ()
    user_injection: UserInjection = attrs.field(factory=UserInjection)


def render_preset(
    preset: Preset,
    context: MacroContext,
    draw: Draw,
    checkpoint: Checkpoint = go_on,
    variables: Mapping[str, str] | None = None,
) -> Rendering:
    """A preset that stands alone: one variable store for all its prompts. Source: spec/loader §8.1."""
    parts: list[Part] = []
    variables = variables or {}
    # The macros of many small texts must not fill the memory together.
    growth = OutputRoom()
    for index, prompt in enumerate(preset.prompts):
        if not prompt.enabled or prompt.marker:
            continue
        checkpoint()
        expansion = expand_macros(prompt.content, context, draw=draw, variables=variables)
        variables = expansion.variables
        growth.take(max(0, len(expansion.text) - len(prompt.content)))
        if expansion.text:
            parts.append(Part(expansion.text, (prompt_source(preset, index),)))
    return Rendering(tuple(parts))


def render_combined(
    given: ProfileInput, context: MacroContext, draw: Draw, checkpoint: Checkpoint = go_on
) -> Rendering:
    """A preset with card, persona and lore; no preset counts as one without prompts. Source: spec/loader §8.2."""
    renderer = _Renderer(given, context, draw)
    for index, prompt in enumerate(given.preset.prompts if given.preset else ()):
        if prompt.enabled:
            checkpoint()
            renderer.place_prompt(index, prompt)
    renderer.place_rest()
    return renderer.finish()


def named_outlets(preset: Preset | None) -> frozenset[str]:
    """The outlets that a preset's enabled prompts name."""
    prompts = preset.prompts if preset is not None else ()
    return frozenset(
        trim(name)
        for prompt in prompts
        if prompt.enabled
        for name in _OUTLET.findall(closed_part(prompt.content, "}}"))
    )


def prompt_source(preset: Preset, index: int) -> PartSource:
    """The source that stands for a preset's prompt."""
    prompt = preset.prompts[index]
    return PartSource(
        "preset",
        f"prompts/{index}/content",
        prompt.content,
        resource_id=preset.id,
        identifier=prompt.identifier,
        role=prompt.role,
    )


class _Renderer:
    """One pass over the prompts; remembers what has been placed."""

    def __init__(self, given: ProfileInput, context: MacroContext, draw: Draw) -> None:
        self._given = given
        self._context = context
        self._draw = draw
        self._fields: CharacterFields = character_fields(given)
        self._persona = trim(given.user.description) if given.user else ""
        self._consumed: set[str] = set()
        self._lore_placed: set[bool] = set()
        self._placement = "none"
        self._parts: list[Part] = []
        self._growth = OutputRoom()
        self._diagnostics: list[Diagnostic] = []

    def place_prompt(self, index: int, prompt: PresetPrompt) -> None:
        if prompt.marker:
            self._place_marker(prompt.identifier)
        elif prompt.identifier == "main" and self._fields.system_prompt:
            self._place_override(index, prompt, "system_prompt")
        elif prompt.identifier == "jailbreak" and self._fields.post_history:
            self._place_override(index, prompt, "post_history")
        else:
            self._place_content(index, prompt)

    def _place_marker(self, identifier: str) -> None:
        field = CHARACTER_MARKERS.get(identifier)
        if field is not None and field not in self._consumed:
            self._consumed.add(field)
            self._emit_field(field)
        elif identifier in PERSONA_MARKERS:
            self._emit_persona(f"preset-marker:{identifier}")
        elif identifier in LORE_MARKERS:
            self._emit_lore(before=LORE_MARKERS[identifier])

    def _place_content(self, index: int, prompt: PresetPrompt) -> None:
        text, inserted = self._with_profile_macros(prompt.content, prompt.identifier)
        self._emit(text, (self._prompt_source(index), *inserted))

    def _place_override(self, index: int, prompt: PresetPrompt, field: str) -> None:
        if prompt.st.get("forbid_overrides"):
            if field == "system_prompt":
                self._diagnostics.append(
                    Diagnostic(
                        "CHARACTER_SYSTEM_OVERRIDE_FORBIDDEN",
                        "info",
                        f"the preset's prompt {prompt.identifier!r} may not be replaced by the card's system prompt",
                    )
                )
            self._place_content(index, prompt)
            return
        self._consumed.add(field)
        self._notice(field)
        text = getattr(self._fields, field)
        keeps = _ORIGINAL.search(text) is not None
        replaced, inserted = self._with_profile_macros(_ORIGINAL.sub(lambda _: prompt.content, text), prompt.identifier)
        source = self._prompt_source(index)
        placing = source if keeps else attrs.evolve(source, relationship="placement-only")
        self._emit(replaced, (placing, self._field_source(field), *inserted))

    def _with_profile_macros(self, content: str, identifier: str) -> tuple[str, tuple[PartSource, ...]]:
        inserted: list[PartSource] = []

        def value(match: re.Match[str]) -> str:
            name = match[1].lower()
            if name == "persona":
                return self._persona_macro(identifier, inserted)
            field = _FIELD_MACROS[name]
            if text := str(getattr(self._fields, field)):
                inserted.append(self._field_source(field))
            return text

        def outlet(match: re.Match[str]) -> str:
            entries = [entry for entry in self._given.lore if entry.outlet == trim(match[1])]
            inserted.extend(map(lore_source, entries))
            return "\n".join(entry.content for entry in entries)

        filled = _PROFILE_MACRO.sub(value, content)
        closed = closed_part(filled, "}}")
        return _OUTLET.sub(outlet, closed) + filled[len(closed) :], tuple(inserted)

    def _persona_macro(self, identifier: str, inserted: list[PartSource]) -> str:
        if not self._persona or "persona" in self._consumed:
            return ""
        self._consumed.add("persona")
        self._placement = f"preset-macro:{identifier}"
        inserted.append(self._persona_source())
        return self._persona

    def place_rest(self) -> None:
        """What no prompt has placed, in the fixed order of spec/loader §8.2."""
        if self._persona and "persona" not in self._consumed:
            self._diagnostics.append(
                Diagnostic(
                    "USER_PERSONA_MARKER_FALLBACK",
                    "warning",
                    "the preset has no enabled place for the persona's description: it stands behind the prompts",
                )
            )
            self._emit_persona("fallback")
        for field in _FALLBACK_ORDER:
            if field not in self._consumed:
                self._emit_field(field)
        self._emit_lore(before=True)
        self._emit_lore(before=False)

    def finish(self) -> Rendering:
        injection = UserInjection(
            selected=self._given.user is not None,
            description_characters=utf16_length(self._persona),
            insertions=0 if self._placement == "none" else 1,
            placement=self._placement,
        )
        return Rendering(tuple(self._parts), tuple(self._diagnostics), injection)

    def _emit_field(self, field: str) -> None:
        text = getattr(self._fields, field)
        if text and self._emit(text, (self._field_source(field),)):
            self._notice(field)

    def _emit_persona(self, placement: str) -> None:
        if self._persona and "persona" not in self._consumed:
            self._consumed.add("persona")
            self._placement = placement
            self._emit(self._persona, (self._persona_source(),))

    def _emit_lore(self, *, before: bool) -> None:
        if before in self._lore_placed:
            return
        self._lore_placed.add(before)
        for entry in self._given.lore:
            if entry.before is before and entry.outlet is None:
                self._emit(entry.content, (lore_source(entry),), is_expanded=entry.expanded)

    def _emit(self, text: str, sources: tuple[PartSource, ...], *, is_expanded: bool = False) -> bool:
        # A fresh variable store for each part: setvar and getvar don't cross prompts in this mode.
        variables = self._given.variables
        expanded = (
            settled(text)
            if is_expanded
            else expand_macros(text, self._context, draw=self._draw, variables=variables).text
        )
        self._growth.take(max(0, len(expanded) - len(text)))
        if expanded:
            self._parts.append(Part(expanded, sources))
        return bool(expanded)

    def _notice(self, field: str) -> None:
        if field in _NOTICES:
            code, message = _NOTICES[field]
            self._diagnostics.append(Diagnostic(code, "warning", message))

    def _prompt_source(self, index: int) -> PartSource:
        assert self._given.preset is not None
        return prompt_source(self._given.preset, index)

    def _field_source(self, field: str) -> PartSource:
        character = self._given.character
        assert character is not None
        return PartSource(
            "character",
            FIELD_NAMES[field],
            getattr(self._fields, field),
            resource_id=character.id,
            resource_revision=character.revision,
        )

    def _persona_source(self) -> PartSource:
        user = self._given.user
        assert user is not None
        return PartSource("user", "description", self._persona, resource_id=user.id, resource_revision=user.revision)


def lore_source(entry: LoreEntry) -> PartSource:
    """The source that stands for a world-book entry."""
    return PartSource(
        "worldbook",
        "content",
        entry.content,
        is_entry=True,
        resource_id=entry.resource_id,
        resource_revision=entry.resource_revision,
        entry_id=None if entry.uid is None else str(entry.uid),
        qualified_entry_id=entry.id,
        entry_name=entry.name,
    )
