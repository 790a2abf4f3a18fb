"""The SillyTavern renderer with repaired quirks, its record, and reading of presets."""

import attrs
import pytest

from tapster.engine.profile.sillytavern import (
    AuthorsNote,
    CardFields,
    ChatMessage,
    Group,
    Injection,
    MandatoryPromptsExceedContext,
    PersonaSettings,
    Preferences,
    compare_requests,
    join_cards,
    read_prompt_preset,
)
from tests.support.sillytavern import MARKERS, chat, given, prompts, run, sent

PLAIN = ("main", "worldInfoBefore", "chatHistory")


def test_text_without_a_marker_stays_out_and_says_so() -> None:
    assembly = run(given(prompts("main", "chatHistory"), "hi"), {"content": "Lore"})
    assert sent(assembly) == [("system", "Main."), ("user", "hi")]
    assert [fact.to_json() for fact in assembly.facts_about("b.0")] == [
        {"reason": "no_slot", "slot": "worldInfoBefore"}
    ]


def test_exact_quirks_put_it_behind_everything() -> None:
    assembly = run(given(prompts("main", "chatHistory"), "hi", quirks="exact"), {"content": "Lore"})
    assert sent(assembly)[-1] == ("system", "Lore")


def test_lore_at_a_depth_needs_the_history() -> None:
    assembly = run(given(prompts("main", "-chatHistory"), "hi"), {"content": "Deep", "position": 4, "depth": 0})
    assert [fact.reason for fact in assembly.facts_about("b.0")] == ["no_slot"]


def test_a_message_that_does_not_fit_is_recorded() -> None:
    preset = prompts(*PLAIN, openai_max_context=10, openai_max_tokens=4)
    assembly = run(given(preset, "one two three", "four five", "six"))
    assert sent(assembly) == [("system", "Main."), ("assistant", "four five"), ("user", "six")]
    assert [fact.reason for fact in assembly.facts_about("message:0")] == ["context_budget"]


def test_too_large_fixed_prompts_name_the_largest_and_the_context() -> None:
    preset = prompts(*PLAIN, openai_max_context=12, openai_max_tokens=8)
    with pytest.raises(MandatoryPromptsExceedContext) as raised:
        run(given(preset, "hi"), {"content": "a b c d e f"})
    assert "worldInfoBefore" in raised.value.message
    assert "12" in raised.value.message


def test_exact_quirks_keep_what_was_placed() -> None:
    preset = prompts(*PLAIN, openai_max_context=12, openai_max_tokens=8)
    assembly = run(given(preset, "hi", quirks="exact"), {"content": "a b c d e f"})
    assert assembly.built.error is not None
    assert sent(assembly) == []


def test_a_literal_injection_is_never_expanded() -> None:
    injection = Injection("rag", "{{user}} stays", depth=0, literal=True)
    assembly = run(given(prompts(*PLAIN), "hi", injections=(injection, Injection("x", "{{user}} goes", depth=0))))
    assert sent(assembly)[-1] == ("system", "{{user}} stays\nAnn goes")


def test_an_injection_can_be_searched_for_keys() -> None:
    injection = Injection("rag", "the lamp", depth=9, scan=True)
    entry = {"constant": False, "key": ["lamp"], "content": "Lit"}
    assert ("system", "Lit") in sent(run(given(prompts(*PLAIN), "hi", injections=(injection,)), entry))
    quiet = given(prompts(*PLAIN), "hi", injections=(Injection("rag", "the lamp", depth=9),))
    assert ("system", "Lit") not in sent(run(quiet, entry))


def test_roles_change_for_a_target_without_late_system_messages() -> None:
    source = given(prompts(*PLAIN), "hi", injections=(Injection("rag", "note", depth=0),))
    assembly = run(source, {"content": "Deep", "position": 4, "depth": 0}, system_only_first=True)
    assert [role for role, _ in sent(assembly)] == ["system", "user", "user"]
    assert assembly.facts_about("b.0")[0].to_json() == {"reason": "role_changed", "from": "system", "to": "user"}
    assert assembly.facts_about("injection:rag")


def test_sources_split_an_authors_note_from_the_lore_around_it() -> None:
    source = given(prompts(*PLAIN), "hi", note=AuthorsNote("two words", depth=0))
    assembly = run(source, {"content": "top", "position": 2}, {"content": "bottom", "position": 3})
    assert sent(assembly)[-1] == ("system", "top\ntwo words\nbottom")
    assert assembly.itemisation.by_source == {"prompt:main": 1, "chat": 1, "world_info": 2, "authors_note": 2}
    assert assembly.itemisation.covers(assembly.messages)


def test_an_authors_note_waits_for_its_interval() -> None:
    note = AuthorsNote("note", depth=0, interval=2)
    assert len(run(given(prompts(*PLAIN), "a", note=note)).messages) == 2
    assert len(run(given(prompts(*PLAIN), "a", "b", "c", note=note)).messages) == 5


@pytest.mark.parametrize(("position", "place"), [(2, "P\nnote"), (3, "note\nP"), (4, "P"), (9, None)])
def test_the_persona_goes_where_it_is_told(position: int, place: str | None) -> None:
    note = AuthorsNote("note" if position < 4 else "", depth=0)
    source = given(prompts(*PLAIN), "hi", note=note, persona=PersonaSettings("P", position, depth=0))
    assert sent(run(source))[2:] == ([] if place is None else [("system", place)])


def test_what_the_card_overrides_keeps_both_sources() -> None:
    card = CardFields("Bo", system_prompt="Card and {{original}}!")
    assembly = run(given(prompts(*PLAIN), "hi", card=card))
    assert sent(assembly)[0] == ("system", "Card and Main.!")
    labels = [span.origin.source for span in assembly.messages[0].content.spans]
    assert labels == ["card:system_prompt", "prompt:main", "card:system_prompt"]


def test_a_forbidden_or_unwanted_override_is_left_out() -> None:
    card = CardFields("Bo", system_prompt="Card")
    unwanted = given(prompts(*PLAIN), "hi", card=card, preferences=Preferences(prefer_card_main=False))
    assert sent(run(unwanted))[0] == ("system", "Main.")


def test_macros_of_prompts_share_variables_in_order() -> None:
    extra = [{"identifier": "set", "role": "system", "content": "{{setvar::x::1}}"}]
    preset = prompts("set", *PLAIN, extra=[*extra, {"identifier": "get", "content": "{{getvar::x}}"}])
    assembly = run(given(preset, "{{getvar::x}}"))
    assert sent(assembly)[-1] == ("user", "1")
    assert assembly.variables == {"x": "1"}


def test_absent_members_of_a_scene_are_not_told() -> None:
    secret = ChatMessage("Cy", "secret", "assistant", present=("Cy",))
    source = given(prompts(*PLAIN), group=Group(("Bo", "Cy")))
    assembly = run(attrs.evolve(source, chat=(secret, *chat("hello"))), present_only=True)
    texts = [text for _, text in sent(assembly)]
    assert "hello" in texts
    assert not any("secret" in text for text in texts)
    assert texts[-1] == "[Write the next reply only as Bo.]"
    assert assembly.facts_about("message:0")[0].to_json() == {"reason": "speaker_absent", "speaker": "Bo"}


def test_joined_cards_speak_of_themselves() -> None:
    cards = [CardFields("Bo", "I am {{char}}"), CardFields("Cy", ""), CardFields("Di", "{{char}} too")]
    joined = join_cards(cards, cards[0], lambda text, card: text.replace("{{char}}", card.name))
    assert joined.description == "I am Bo\nDi too"


@pytest.mark.parametrize(
    ("before", "after", "source", "change", "prefix"),
    [
        (["hi"], ["hi", "yo"], "message:1", "added", 3),
        (["hi"], ["ho"], "message:0", "changed", 2),
    ],
)
def test_comparison_names_the_piece_at_fault(
    before: list[str], after: list[str], source: str, change: str, prefix: int
) -> None:
    entry = {"content": "Lore"}
    first, second = run(given(prompts(*PLAIN), *before), entry), run(given(prompts(*PLAIN), *after), entry)
    comparison = compare_requests(first.messages, second.messages)
    assert comparison.first is not None
    assert (comparison.first.source, comparison.first.change, comparison.common_prefix) == (source, change, prefix)


def test_a_text_at_a_depth_moves_with_the_chat() -> None:
    entry = {"content": "Deep", "position": 4, "depth": 0}
    first, second = run(given(prompts(*PLAIN), "hi"), entry), run(given(prompts(*PLAIN), "hi", "yo"), entry)
    difference = compare_requests(first.messages, second.messages).first
    assert difference is not None
    assert (difference.source, difference.change) == ("b.0", "moved")


def test_equal_requests_have_no_difference() -> None:
    once = run(given(prompts(*PLAIN), "hi"))
    assert compare_requests(once.messages, once.messages).first is None


def test_a_preset_without_order_gets_the_default_one_and_a_warning() -> None:
    reading = read_prompt_preset({"main_prompt": "Old", "prompts": [{"identifier": "nsfw", "content": "N"}]})
    assert [entry.identifier for entry in reading.preset.order][:2] == ["main", "worldInfoBefore"]
    main, nsfw = reading.preset.prompt("main"), reading.preset.prompt("nsfw")
    assert main is not None
    assert nsfw is not None
    assert (main.content, nsfw.content) == ("Old", "N")
    assert [warning.code for warning in reading.warnings] == ["PRESET_WITHOUT_PROMPT_ORDER"]


def test_an_order_of_another_character_is_taken_when_there_is_no_global_one() -> None:
    raw = {"prompts": [], "prompt_order": [{"character_id": 7, "order": [{"identifier": "main", "enabled": True}]}]}
    assert [entry.identifier for entry in read_prompt_preset(raw).preset.order] == ["main"]


def test_markers_need_no_prompt_of_their_own() -> None:
    preset = prompts("main", *MARKERS)
    card = CardFields("Bo", "Described.", examples="<START>\nAnn: q\nBo: r")
    texts = [text for _, text in sent(run(given(preset, "hi", card=card), {"content": "L"}))]
    assert texts == ["Main.", "L", "Described.", "q", "r", "hi"]
