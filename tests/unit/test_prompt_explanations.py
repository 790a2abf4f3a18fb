"""Every prompt of a preset has an explanation, in both renderers and both languages."""

from typing import Any

import pytest

from tapster.engine.policy import Selection
from tapster.engine.profile import (
    ActivatedLore,
    CompileRequest,
    LoreEntry,
    ProfileCharacter,
    ResolvedResources,
    compile_profile,
)
from tapster.engine.profile.explanations import PromptExplanation, explain_assembly, explain_profile
from tapster.engine.profile.explanations.words import WORDS
from tapster.engine.profile.sillytavern import CardFields
from tests.support.presets import preset
from tests.support.sillytavern import given, prompts, run


def reasons(explanations: Any) -> dict[str, str]:
    return {item.identifier: item.reason for item in explanations}


def test_a_sillytavern_request() -> None:
    extra: list[dict[str, Any]] = [
        {"identifier": "deep", "content": "D", "injection_position": 1, "injection_depth": 1},
        {"identifier": "far", "content": "one two three", "injection_position": 1, "injection_depth": 9},
        {"identifier": "quiet", "content": "Q", "injection_trigger": ["quiet"]},
        {"identifier": "blank", "content": ""},
        {"identifier": "loose", "content": "L"},
    ]
    names = ("main", "deep", "far", "quiet", "blank", "-charDescription", "ghost", "chatHistory", "dialogueExamples")
    preset_in_order = prompts(*names, extra=extra, openai_max_context=6, openai_max_tokens=1)
    assembly = run(given(preset_in_order, "a", "b", card=CardFields("Bo", system_prompt="Card")))
    assert reasons(explain_assembly(assembly)) == {
        "main": "overridden",
        "deep": "in_chat",
        "far": "no_room",
        "quiet": "trigger",
        "blank": "empty",
        "charDescription": "off",
        "ghost": "unknown",
        "chatHistory": "sent",
        "dialogueExamples": "empty",
        "loose": "not_in_order",
    }


def profile(**card: Any) -> list[PromptExplanation]:
    given_preset = preset(
        {"identifier": "main", "content": "M"},
        {"identifier": "worldInfoBefore", "marker": True},
        {"identifier": "worldInfoAfter", "marker": True},
        {"identifier": "charDescription", "marker": True},
        {"identifier": "charDescription", "marker": True},
        {"identifier": "personaDescription", "marker": True},
        {"identifier": "chatHistory", "marker": True},
        {"identifier": "mystery", "marker": True},
        {"identifier": "off", "content": "x", "enabled": False},
        {"identifier": "blank", "content": "{{trim}}"},
    )
    character = ProfileCharacter.from_document({"id": "c", "name": "Iris", "data": card})
    resources, selection = ResolvedResources(given_preset, character), Selection()
    lore = ActivatedLore((LoreEntry("L", "before"),))
    snapshot = compile_profile(CompileRequest("s", selection, selection, resources, lore), lambda: 0.5)
    return list(explain_profile(snapshot))


def test_a_compiled_profile() -> None:
    found = [item.reason for item in profile(description="D", systemPrompt="S")]
    assert found == [
        "overridden", "sent", "empty", "sent", "repeated", "empty", "history", "no_marker", "off", "empty",
    ]  # fmt: skip


def test_a_missing_field_leaves_its_marker_empty() -> None:
    assert [item.reason for item in profile()][:4] == ["sent", "sent", "empty", "empty"]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_reason_has_words(language: Any) -> None:
    assert set(WORDS[language]) == set(WORDS["en"])
    assembly = run(given(prompts("main", "-nsfw", "ghost"), "a"))
    for item in explain_assembly(assembly, language):
        assert item.text
        assert item.sent or item.needed
        assert item.to_json()["reason"] == item.reason
