"""MVU on random replies: only declared errors, the given variables unchanged, the result valid."""

from copy import deepcopy

from hypothesis import given, settings
from hypothesis import strategies as st

from tapster.engine import mvu
from tapster.engine.mvu.schema import derive_schema, validate

BASE = mvu.normalize_variables(
    {"stat_data": {"hp": 10, "bag": ["a", "$__META_EXTENSIBLE__$"], "npc": {"$meta": {"extensible": True}, "m": "x"}}}
)
NESTED = mvu.normalize_variables(
    {
        "stat_data": {
            "hp": 1,
            "bag": [{"n": 1}, ["x"], "$__META_EXTENSIBLE__$"],
            "npc": {"$meta": {"recursiveExtensible": True, "template": {"t": []}}, "m": {"deep": {"a": [1]}}},
        }
    }
)
UNTOUCHED = deepcopy(NESTED)
KNOWN = ("hp", "bag", "bag[0]", "bag[9]", "npc", "npc.m")
paths = st.sampled_from(
    [*KNOWN, "npc.new", "npc.m.deep", "npc.m.deep.a", "bag[1]", "nope.x", "a.", "[0]", "", "npc['a b']"]
)
values = st.sampled_from(
    [
        "1",
        "-2.5",
        "'t'",
        "{a: 1}",
        "{'$meta': {recursiveExtensible: true}, b: {c: 1}}",
        "[1, 'x']",
        "null",
        "`b`",
        "1 + 1",
        "'9'",
        "x",
        "{",
        "1e999",
    ]
)
calls = st.builds(
    lambda name, path, rest: f"_.{name}('{path}'{''.join(f', {value}' for value in rest)});",
    st.sampled_from(["set", "add", "insert", "assign", "remove", "delete", "unset", "push"]),
    paths,
    st.lists(values, max_size=3),
)
pointers = st.sampled_from(
    ["/hp", "/bag/-", "/bag/0", "/npc/m", "/npc/z", "/npc/m/deep/a/-", "/bag/1/0", "", "hp", "/x/y"]
)
patches = st.builds(
    lambda op, path, value, origin: (
        f'<JSONPatch>[{{"op":"{op}","path":"{path}","value":{value},"from":"{origin}"}}]</JSONPatch>'
    ),
    st.sampled_from(["replace", "delta", "add", "insert", "remove", "move", "test"]),
    pointers,
    st.sampled_from(["1", '"t"', "null", "[]", "{}"]),
    pointers,
)
replies = st.lists(st.one_of(calls, patches, st.sampled_from(["prose ", "\n", "_.", "(", "<JSONPatch>"])), max_size=6)


@settings(max_examples=300, deadline=None)
@given(replies.map("".join))
def test_updates_give_valid_variables_or_a_declared_error(reply: str) -> None:
    before = deepcopy(BASE)
    try:
        after = mvu.apply_update(BASE, reply)
    except mvu.MvuError:
        after = BASE
    validate(after["stat_data"], after["schema"])
    assert derive_schema(after["stat_data"], after["schema"]) == (after["stat_data"], after["schema"])
    assert mvu.normalize_variables(after)["stat_data"] == after["stat_data"]
    assert before == BASE


@settings(max_examples=200, deadline=None)
@given(st.lists(st.one_of(calls, patches), min_size=2, max_size=8))
def test_one_reply_with_all_commands_gives_what_a_reply_each_gives(commands: list[str]) -> None:
    try:
        at_once = mvu.apply_update(NESTED, "".join(commands))
    except mvu.MvuError:
        return
    one_by_one = NESTED
    for command in commands:
        one_by_one = mvu.apply_update(one_by_one, command)
    assert at_once["stat_data"] == one_by_one["stat_data"]
    assert at_once["schema"] == one_by_one["schema"]
    assert NESTED == UNTOUCHED
