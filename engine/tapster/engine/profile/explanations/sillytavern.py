"""Why each prompt of a SillyTavern request is in or out."""

from collections.abc import Iterator

from tapster.engine.activation.explanations import Language
from tapster.engine.profile.sillytavern import Assembly, Prepared, Prompt

from .explanation import PromptExplanation, explanation

_COLLECTED = ("chatHistory", "dialogueExamples")


def explain_assembly(assembly: Assembly, language: Language = "en") -> Iterator[PromptExplanation]:
    """The explanation of every prompt: those of the order first, then those that it doesn't name."""
    preset = assembly.given.preset
    for entry in preset.order:
        prompt = preset.prompt(entry.identifier)
        if prompt is None:
            yield explanation(entry.identifier, "unknown", language)
        elif not entry.enabled:
            yield explanation(entry.identifier, "off", language)
        else:
            yield _placed(assembly, prompt, language)
    named = {entry.identifier for entry in preset.order}
    for prompt in preset.prompts:
        if prompt.identifier not in named:
            yield explanation(prompt.identifier, "not_in_order", language)


def _placed(assembly: Assembly, prompt: Prompt, language: Language) -> PromptExplanation:
    given, identifier = assembly.given, prompt.identifier
    if prompt.injection_trigger and given.type not in prompt.injection_trigger:
        triggers = ", ".join(prompt.injection_trigger)
        return explanation(identifier, "trigger", language, triggers=triggers, type=given.type)
    if identifier in _COLLECTED:
        used = any(item.collection == identifier and item.message.content for item in assembly.built.items)
        return explanation(identifier, "sent" if used else "empty", language)
    prepared = assembly.built.prompts.get(identifier)
    if prepared is None or not prepared.content:
        return explanation(identifier, "empty", language)
    if not _is_sent(assembly, prepared):
        return explanation(identifier, "no_room", language)
    if identifier in assembly.built.prompts.overridden:
        return explanation(identifier, "overridden", language)
    if prepared.in_chat:
        return explanation(identifier, "in_chat", language, depth=prepared.depth or 0)
    return explanation(identifier, "sent", language)


def _is_sent(assembly: Assembly, prepared: Prepared) -> bool:
    origins = {span.origin for span in prepared.content.spans}
    return any(span.origin in origins for item in assembly.built.items for span in item.message.content.spans)
