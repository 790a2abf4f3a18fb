"""MVU beyond the vectors: argument forms, refusals, limits, history with rollback and fork."""

from typing import Any

import pytest

from tapster.engine import mvu
from tapster.engine.mvu.arguments import parse_argument
from tapster.engine.mvu.core_yaml import parse_core_yaml

BASE = {"stat_data": {"hp": 10, "bag": ["a", "b", "$__META_EXTENSIBLE__$"], "npc": {"$meta": {"extensible": True}}}}


def after(text: str, variables: Any = BASE) -> Any:
    return mvu.apply_update(variables, text)["stat_data"]


def code(text: str, variables: Any = BASE) -> str:
    with pytest.raises(mvu.MvuError) as caught:
        mvu.apply_update(variables, text)
    return caught.value.code


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("'a, b'", "a, b"), ("`x'y`", "x'y"), ("{a: [1, 'b'],}", {"a": [1, "b"]}),
        ("1 + 2 * (3 - 1)", 5), ("-7/2", -3.5),
        ("'a\nb'", "a b"), ('"a\nb\\tc"', "a b\tc"), ("'it''s'", "it's"), ("two\nlines", "two lines"), ("x # why", "x"),
        ("12:30", "12:30"), ("-x", "-x"), ("a:b", "a:b"), ("what?", "what?"), ("1/2 cup", "1/2 cup"),
        ("50%", "50%"), ("2**3", "2**3"), ("2024-01-01", "2024-01-01"), ("007", 7), ("10-3", 7),
        ("0b11", "0b11"), ("0o17", 15), ("1_000", "1_000"), ("/* why */ 5", 5), ("5 // why", 5), ("1e", "1e"),
        ("0x10", 16), ("plain text", "plain text"), ("null", None), ("true", True), ("'it\\'s'", "it's"), ("+.5", 0.5),
    ],
)  # fmt: skip
def test_argument_forms(text: str, value: object) -> None:
    assert parse_argument(text) == value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("_.set('hp', )", "MVU_JSON"), ("_.set('hp', 'many')", "MVU_JSON"), ("_.set('hp', 1/0)", "MVU_JSON"),
        ("_.set('__proto__', 1)", "MVU_PATH"), ("_.set('bag[9]', 1)", "MVU_PATH"), ("_.set('a' 1", "MVU_PARSE"),
        ("_.move('a', 'b')", "MVU_UNSUPPORTED"), ("_.set('hp', " + "9" * 400 + ")", "MVU_JSON"),
        ("<JSONPatch>[{\"op\":\"add\",\"path\":\"\",\"value\":1}]</JSONPatch>", "MVU_UNSUPPORTED"),
        ("<JSONPatch>[{\"op\":\"move\",\"from\":\"/npc\",\"path\":\"/npc/x\"}]</JSONPatch>", "MVU_PATH"),
        ("_.set('hp', .inf)", "MVU_JSON"), ("_.set('hp', [NaN])", "MVU_JSON"), ("_.set('hp', 1e400)", "MVU_JSON"),
        ("_.set('hp', " + "[" * 3000 + "]" * 3000 + ")", "MVU_LIMIT"), ("_.set('hp', {__proto__: 1})", "MVU_PATH"),
        ("_.set('hp', a: b)", "MVU_PARSE"), ("_.set('hp', [a, b])", "MVU_PARSE"), ("_.set('hp', - x)", "MVU_PARSE"),
        ("_.set('hp', !!str 1)", "MVU_PARSE"), ("_.set('hp', {a})", "MVU_PARSE"),
        ("<JSONPatch>[", "MVU_PARSE"), ("_.add('hp',1);" * 1001, "MVU_LIMIT"),
    ],
)  # fmt: skip
def test_refusals_change_nothing(text: str, expected: str) -> None:
    if text == "_.set('hp', )":
        assert after(text)["hp"] is None
        return
    assert code(text) == expected


def test_commands_run_in_text_order_and_only_their_own_failures_cost_them() -> None:
    patch = '<JSONPatch>[{"op":"delta","path":"/hp","value":-3}]</JSONPatch>'
    text = f"_.insert('bag', 0, 'z')\n_.delete('bag', 'a'); {patch}"
    assert after(text + "_.set('nope', 1); _.delete('hp'); _.insert('npc', 'fox', {n: 1})") == {
        "hp": 7,
        "bag": ["z", "b"],
        "npc": {"fox": {"n": 1}},
    }


def test_the_variables_given_are_not_changed() -> None:
    variables = mvu.normalize_variables(BASE)
    mvu.apply_update(variables, "_.insert('bag', 'c'); _.set('hp', 1)")
    assert variables["stat_data"] == {"hp": 10, "bag": ["a", "b"], "npc": {}}


def test_yaml_of_the_core_schema_only() -> None:
    assert parse_core_yaml("a: 012\nb: yes\nc: 2024-01-01\nd: [~, 'x']\ne: |\n  t") == {
        "a": 12, "b": "yes", "c": "2024-01-01", "d": [None, "x"], "e": "t",
    }  # fmt: skip
    assert parse_core_yaml("a: 0b1\nb: 0x1F\nc: 0o17\nd: 1_000\ne: -.5\nf: .5e1\n<<: {g: 1}") == {
        "a": "0b1", "b": 31, "c": 15, "d": "1_000", "e": -0.5, "f": 5, "<<": {"g": 1},
    }  # fmt: skip
    assert parse_core_yaml('{"a": [1, {"b": null}]}') == parse_core_yaml("{a: [1, {b: ~}]}")
    for bad in (
        "a: 1\na: 2", '{"a": 1, "a": 2}', "a: &x 1\nb: *x", "a: !!str 1", "!!map {a: 1}", "{a: 1", "a: [1\nb",
        "a: .inf", "a: 1\n---\nb: 2", "? [a]\n: 1", 'a: "\\U00110000"', "a: " + "[" * 3000 + "]" * 3000, "[" * 3000,
    ):  # fmt: skip
        with pytest.raises(mvu.MvuError):
            parse_core_yaml(bad)


def test_a_code_fence_around_a_patch_may_be_on_its_line() -> None:
    for fence in ("```json\n{}\n```", "```\n{}```", "```json {} ```", "```{}```"):
        patch = fence.replace("{}", '[{"op":"delta","path":"/hp","value":-1}]')
        assert after(f"<JSONPatch>\n{patch}\n</JSONPatch>")["hp"] == 9


def test_two_schemas_of_a_card_conflict() -> None:
    text = "import { registerMvuSchema } from 'https://x/mvu_zod.js'; //"
    scripts = {"TavernHelper_scripts": [{"value": {"content": text + "1"}}, {"value": {"content": text + "1"}}]}
    card: dict[str, Any] = {"data": {"extensions": scripts}}
    assert mvu.initial_from_card(card).schema_source == text + "1"
    card["data"]["character_book"] = {"entries": [{"content": text + "2"}]}
    with pytest.raises(mvu.MvuError, match="two different"):
        mvu.initial_from_card(card)


def test_a_running_chat_keeps_its_values() -> None:
    result = mvu.initialize_running({"stat_data": {"a": {"x": 1}}, "mine": 2}, {"a": {"x": 9, "y": 9}, "b": 3})
    assert (result["stat_data"], result["mine"]) == ({"a": {"x": 1}, "b": 3}, 2)


def reply(seq: int, text: str, **more: bool) -> mvu.Reply:
    return mvu.Reply(f"r{seq}", seq, text, **more)


def test_history_rolls_back_forks_and_counts_each_reply_once() -> None:
    start = mvu.open_history({"stat_data": {"hp": 10}}, seq=1)
    first = reply(5, "_.add('hp', -1)")
    history = mvu.replay(start, [first, reply(9, "_.add('hp', -5)"), reply(12, "_.push(1)"), reply(14, "no update")])
    assert [(v.seq, v.revision, v.variables["stat_data"]["hp"], v.failure) for v in history.versions] == [
        (1, 1, 10, None), (5, 2, 9, None), (9, 3, 4, None), (12, 4, 4, "MVU_UNSUPPORTED"),
    ]  # fmt: skip
    assert history.with_reply(first) is history
    assert history.at(8).variables["stat_data"] == {"hp": 9}
    swiped = history.rolled_back(8).with_reply(reply(15, "_.set('hp', 3)"))
    assert swiped.current.variables["stat_data"] == {"hp": 3}
    assert history.current.variables["stat_data"] == {"hp": 4}
    assert history.forked(8).current.variables["stat_data"] == {"hp": 9}
    with pytest.raises(mvu.MvuError, match="not the counted one"):
        history.with_reply(mvu.Reply("r5", 5, "other"))
    with pytest.raises(mvu.MvuError, match="no variables"):
        history.at(0)


def test_which_reply_counts() -> None:
    replies = [reply(1, "a"), reply(2, "b", has_tool_calls=True), reply(3, "c", interrupted=True)]
    found = mvu.counted_reply(replies, turn_completed=True)
    assert found is not None
    assert found.seq == 1
    assert mvu.counted_reply(replies, turn_completed=False) is None
    history = mvu.open_history({"stat_data": {"hp": 1}})
    assert history.with_reply(reply(3, "_.set('hp', 2)", inherited=True)) is history


def test_templates_lie_under_what_is_inserted() -> None:
    meta = {
        "$meta": {"extensible": True, "template": {"level": 1, "gear": {"hat": "none"}}},
        "fox": {"level": 9, "gear": {"hat": "old"}},
    }
    start = {"stat_data": {"npc": meta}}
    found = mvu.apply_update(start, "_.insert('npc', 'fox', {gear: {hat: 'red'}}); _.insert('npc', {owl: {level: 2}})")
    assert found["stat_data"]["npc"] == {
        "fox": {"level": 1, "gear": {"hat": "red"}},
        "owl": {"level": 2, "gear": {"hat": "none"}},
    }
    listed = {
        "$arrayMeta": True,
        "$meta": {"extensible": True, "template": [{"n": 1}, 2], "concatTemplateArray": False},
    }
    found = mvu.apply_update({"stat_data": {"bag": [listed]}}, "_.insert('bag', [{m: 3}])")
    assert found["stat_data"]["bag"] == [[{"n": 1, "m": 3}, 2]]


def test_a_thousand_commands_on_a_large_state_share_what_they_do_not_touch() -> None:
    rooms = {
        f"room{index}": {"lamps": {f"lamp{lamp}": [lamp, {"lit": False}] for lamp in range(20)}} for index in range(200)
    }
    variables = mvu.normalize_variables({"stat_data": rooms})
    found = mvu.apply_update(
        variables, "".join(f"_.set('room{index}.lamps.lamp3[1].lit', true);" for index in range(50))
    )
    delta = found["delta_data"]["room49.lamps.lamp3.1.lit"]
    assert delta["after"]["room60"] is delta["before"]["room60"]
    assert delta["before"]["room49"]["lamps"]["lamp3"] == [3, {"lit": False}]
    assert sum(room["lamps"]["lamp3"][1]["lit"] for room in found["stat_data"].values()) == 50
    assert not any(room["lamps"]["lamp3"][1]["lit"] for room in variables["stat_data"].values())


def test_what_is_no_object_initialises_nothing() -> None:
    none: list[Any] = [None, [], "card", 5]
    for raw in none:
        with pytest.raises(mvu.MvuError) as caught:
            mvu.initial_from_card(raw)
        assert caught.value.code == "MVU_INITIALIZATION_MISSING"
        with pytest.raises(mvu.MvuError) as caught:
            mvu.initialize_running(raw, {})
        assert caught.value.code == "MVU_SCHEMA"


def test_a_path_is_measured_in_utf16_units() -> None:
    fox = "\U0001f98a"
    assert mvu.parse_path(fox * 1000) == (fox * 1000,)
    for parse in (mvu.parse_path, mvu.parse_pointer):
        with pytest.raises(mvu.MvuError) as caught:
            parse("/" + fox * 1000)
        assert caught.value.code == "MVU_LIMIT"


@pytest.mark.parametrize("value", ["null", "5", '"text"', "[1]"])
def test_the_root_stays_an_object(value: str) -> None:
    patch = f'<JSONPatch>[{{"op":"replace","path":"","value":{value}}}]</JSONPatch>'
    assert after(patch) == after("")
    result = mvu.apply_update(BASE, patch)
    assert [item["code"] for item in result["update_diagnostics"]] == ["MVU_SCHEMA"]
