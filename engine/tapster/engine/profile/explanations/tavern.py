"""Why each prompt of a compiled profile is in or out."""

from collections.abc import Iterator

from tapster.engine.activation.explanations import Language
from tapster.engine.formats.presets import PresetPrompt
from tapster.engine.profile.compile import ProfileSnapshot
from tapster.engine.profile.render import CHARACTER_MARKERS, FIELD_NAMES, LORE_MARKERS, PERSONA_MARKERS

from .explanation import PromptExplanation, explanation

_HISTORY = "chatHistory"


def explain_profile(snapshot: ProfileSnapshot, language: Language = "en") -> Iterator[PromptExplanation]:
    """The explanation of every prompt of the preset, in its order; none without a preset."""
    preset = snapshot.resources.preset
    placed: set[str] = set()
    for index, prompt in enumerate(preset.prompts if preset else ()):
        if not prompt.enabled:
            yield explanation(prompt.identifier, "off", language)
        elif prompt.marker:
            yield _marker(snapshot, prompt, placed, language)
        else:
            yield _content(snapshot, prompt, index, language)


def _content(snapshot: ProfileSnapshot, prompt: PresetPrompt, index: int, language: Language) -> PromptExplanation:
    field = f"prompts/{index}/content"
    for section in snapshot.sections:
        first = section.sources[0]
        if (first["kind"], first["field"]) == ("preset", field):
            replaced = any(_is_override(source["kind"], source["field"]) for source in section.sources)
            return explanation(prompt.identifier, "overridden" if replaced else "sent", language)
    return explanation(prompt.identifier, "empty", language)


def _is_override(kind: str, field: str) -> bool:
    return kind == "character" and field in (FIELD_NAMES["system_prompt"], FIELD_NAMES["post_history"])


def _marker(snapshot: ProfileSnapshot, prompt: PresetPrompt, placed: set[str], language: Language) -> PromptExplanation:
    name = prompt.identifier
    marked = _marked(name)
    if name == _HISTORY:
        return explanation(name, "history", language)
    if marked is None:
        return explanation(name, "no_marker", language)
    if marked in placed:
        return explanation(name, "repeated", language)
    placed.add(marked)
    return explanation(name, "sent" if _is_sent(snapshot, name, marked) else "empty", language)


def _marked(identifier: str) -> str | None:
    if identifier in PERSONA_MARKERS:
        return "persona"
    return CHARACTER_MARKERS.get(identifier) or (identifier if identifier in LORE_MARKERS else None)


def _is_sent(snapshot: ProfileSnapshot, identifier: str, marked: str) -> bool:
    if marked == "persona":
        return snapshot.user_injection.placement == f"preset-marker:{identifier}"
    if identifier in LORE_MARKERS:
        return LORE_MARKERS[identifier] in snapshot.lore_sides
    wanted = ("character", FIELD_NAMES[marked])
    return any((s.sources[0]["kind"], s.sources[0]["field"]) == wanted for s in snapshot.sections)
