"""The compatibility renderer and the compilation around it."""

from typing import Any

import pytest

from tapster.engine.ecma import stringify
from tapster.engine.policy import Selection
from tapster.engine.profile import (
    ActivatedLore,
    CompileRequest,
    LoreEntry,
    ProfileCharacter,
    ProfileSnapshot,
    ProfileTooLarge,
    ProfileUser,
    ResolvedResources,
    compile_profile,
    macro_context,
    profile_byte_limit,
)
from tests.support.presets import preset

MARKERS = [{"identifier": name, "marker": True} for name in ("worldInfoBefore", "charDescription", "charDescription")]


def character(**data: Any) -> ProfileCharacter:
    return ProfileCharacter.from_document({"id": "c", "name": "Iris", "data": data})


def compiled(resources: ResolvedResources, *lore: LoreEntry, **more: Any) -> ProfileSnapshot:
    selection = Selection()
    return compile_profile(
        CompileRequest("s", selection, selection, resources, ActivatedLore(lore), **more), lambda: 0.5
    )


def texts(snapshot: ProfileSnapshot) -> list[str]:
    return [section.text for section in snapshot.sections]


def test_a_repeated_marker_emits_once() -> None:
    resources = ResolvedResources(preset(*MARKERS), character(description="Here."))
    assert texts(compiled(resources)) == ["Here."]


def test_a_marker_of_a_disabled_prompt_does_not_count() -> None:
    off = preset(
        {"identifier": "charDescription", "marker": True, "enabled": False}, {"identifier": "m", "content": "M"}
    )
    assert texts(compiled(ResolvedResources(off, character(description="D")))) == ["M", "D"]


def test_a_card_without_data_is_read_flat_and_snake_case_counts() -> None:
    flat = ProfileCharacter.from_document({"id": "c", "name": "Iris", "system_prompt": "S", "mes_example": "E"})
    assert texts(compiled(ResolvedResources(character=flat))) == ["S", "E"]


def test_an_overridden_prompt_only_places_when_the_card_does_not_take_it_in() -> None:
    resources = ResolvedResources(preset({"identifier": "main", "content": "Base"}), character(systemPrompt="Mine"))
    section = compiled(resources).sections[0]
    assert section.name.endswith(":preset:prompts_0_content")
    assert [source["relationship"] for source in section.sources] == ["placement-only", "input"]


def test_original_keeps_the_prompt_as_input() -> None:
    card = character(systemPrompt="Mine + {{original}}")
    resources = ResolvedResources(preset({"identifier": "main", "content": "Base"}), card)
    section = compiled(resources).sections[0]
    assert section.text == "Mine + Base"
    assert [source["relationship"] for source in section.sources] == ["input", "input"]


def test_lore_sources_name_the_entry() -> None:
    lore = LoreEntry("L", "before", id="b:7", uid=7, name="Lamp", resource_id="b")
    source = compiled(ResolvedResources(), lore).sections[0].sources[0]
    assert (source["entryId"], source["qualifiedEntryId"], source["entryName"]) == ("7", "b:7", "Lamp")


def test_the_cut_never_reorders_lore() -> None:
    lore = [LoreEntry("x" * size, id=str(size)) for size in (5, 50, 1)]
    snapshot = compiled(ResolvedResources(), *lore, max_bytes=20)
    assert snapshot.active_lore == ("5",)
    assert snapshot.diagnostics[-1].to_json()["omittedLoreEntries"] == 2


def test_lore_beyond_twice_the_budget_is_not_even_tried() -> None:
    lore = [LoreEntry("{{// " + "x" * 30 + "}}y", id="a"), LoreEntry("{{// " + "x" * 30 + "}}z", id="b")]
    snapshot = compiled(ResolvedResources(), *lore, max_bytes=20)
    assert snapshot.active_lore == ("a",)


def test_random_draws_are_the_same_at_every_attempt() -> None:
    values = iter([0.0, 0.9, 0.0, 0.9, 0.0, 0.9])
    selection = Selection()
    resources = ResolvedResources(preset({"identifier": "m", "content": "{{random::a,bbbbbbbbbbbb}}"}))
    request = CompileRequest(
        "s", selection, selection, resources, ActivatedLore((LoreEntry("l" * 9), LoreEntry("m" * 9))), max_bytes=14
    )
    assert compile_profile(request, lambda: next(values)).system_text == "a\n\nlllllllll"


def test_static_text_is_never_cut() -> None:
    with pytest.raises(ProfileTooLarge) as raised:
        compiled(ResolvedResources(character=character(description="灯" * 10)), max_bytes=29)
    assert raised.value.details == {"actualBytes": 30, "maxBytes": 29}


def test_resolve_only_gives_no_text_but_call_config_and_audit() -> None:
    given = preset({"identifier": "m", "content": "M"}, temperature=0.5, systemPromptMode="replace")
    snapshot = compiled(ResolvedResources(given), resolve_only=True)
    assert (snapshot.system_text, snapshot.sections, snapshot.system_prompt_mode) == ("", (), "append")
    assert snapshot.call_config.to_json() == {"temperature": 0.5}


def test_equal_inputs_have_equal_fingerprints_and_audits_hold_no_text() -> None:
    resources = ResolvedResources(preset({"identifier": "m", "content": "SECRET"}), character(description="SECRET"))
    first = compiled(resources, LoreEntry("SECRET", id="l"))
    assert first.fingerprint == compiled(resources, LoreEntry("SECRET", id="l")).fingerprint
    assert first.fingerprint != compiled(resources).fingerprint
    assert "SECRET" not in stringify(first.audit)


@pytest.mark.parametrize(
    ("host", "data", "expected"),
    [
        ({}, {"nickname": " ", "name": "Data"}, "Data"),
        ({}, {"nickname": "", "name": ""}, "Iris"),
        ({"character": "Host"}, {"nickname": "Nick"}, "Host"),
    ],
)
def test_the_first_name_that_is_not_blank_is_the_characters(host: Any, data: Any, expected: str) -> None:
    assert macro_context(host, character(**data), None).character == expected


def test_names_without_card_and_persona() -> None:
    context = macro_context({}, None, None)
    assert (context.user, context.character) == ("User", "Assistant")
    assert macro_context({"user": "H"}, None, ProfileUser("u", "P", "")).user == "P"


@pytest.mark.parametrize(
    ("value", "limit"), [(None, 524_288), (0, 524_288), (True, 524_288), (100, 100), (9_999_999, 2_097_152)]
)
def test_the_byte_limit_is_bounded(value: Any, limit: int) -> None:
    assert profile_byte_limit(value) == limit
