"""Declared schemas: the subset, its refusals, and updates under one."""

from typing import Any

import pytest

from tapster.engine import mvu
from tapster.engine.mvu.declared import declared_schema

IMPORT = "import { registerMvuSchema } from 'https://cdn.example/x/mvu_zod.js';\n"
SCHEMA = (
    IMPORT
    + """
// the fox's state
const 物品 = z.object({ 数量: z.coerce.number().transform(v => _.clamp(v, 0, 99)) });
export const Schema = z.object({
  hp: z.coerce.number().min(0).max(10).int(),
  mood: z.enum(['calm', 'angry']).default('calm'),
  "name": z.string().or(z.literal(0)).describe('who'),
  bag: z.record(z.string(), 物品).transform(all => _.pickBy(all, ({数量}) => 数量 > 0)).prefault({}),
  tags: z.array(z.string()).max(3).optional(),
  near: z.union([z.boolean(), z.number()]).nullable(),
});
$(() => { registerMvuSchema(Schema); })
"""
)


def document(source: str, version: int = 1) -> dict[str, Any]:
    return {"mvuSchema": 1, "interpreterVersion": version, "source": source}


GOOD = {"hp": "7", "name": "Bo", "bag": {"rope": {"数量": 120}, "coin": {"数量": 0}}, "near": None, "extra": 1}


def test_values_are_checked_and_transformed() -> None:
    check = declared_schema(document(SCHEMA))
    assert check(GOOD) == {
        "hp": 7,
        "mood": "calm",
        "name": "Bo",
        "bag": {"rope": {"数量": 99}},
        "near": None,
    }
    assert check({"hp": 1, "name": 0, "near": True})["bag"] == {}


@pytest.mark.parametrize(
    "change",
    [
        {"hp": 11}, {"hp": 1.5}, {"hp": "many"}, {"mood": "sad"}, {"name": 5}, {"bag": []},
        {"tags": ["a", "b", "c", "d"]},
        {"near": "x"}, {"tags": [1]},
    ],
)  # fmt: skip
def test_values_that_do_not_fit(change: dict[str, Any]) -> None:
    with pytest.raises(mvu.MvuError) as caught:
        declared_schema(document(SCHEMA))({**GOOD, **change})
    assert caught.value.code == "MVU_SCHEMA"


def build(expression: str, version: int = 2) -> Any:
    return declared_schema(document(f"{IMPORT}registerMvuSchema({expression})", version))


def test_types_of_version_two() -> None:
    assert build("z.object({a: z.number()})")({"a": 1, "b": 2}) == {"a": 1, "b": 2}
    assert build("z.object({a: z.number()})", 1)({"a": 1, "b": 2}) == {"a": 1}
    assert build("z.looseObject({a: z.object({b: z.any()}).passthrough()})")({"a": {"b": 1, "c": 2}}) == {
        "a": {"b": 1, "c": 2}
    }
    assert build("z.object({id: z.string().regex(/^[a-z]{2,4}$/)})")({"id": "abc"}) == {"id": "abc"}
    for expression, value in [
        ("z.strictObject({a: z.object({}).strict()})", {"a": {"x": 1}}),
        ("z.object({id: z.string().regex(/^[a-z]{2,4}$/)})", {"id": "abcde"}),
        ("z.object({r: z.record(z.enum(['a', 'b']), z.number())})", {"r": {"a": 1}}),
    ]:
        with pytest.raises(mvu.MvuError) as caught:
            build(expression)(value)
        assert caught.value.code == "MVU_SCHEMA"


@pytest.mark.parametrize(
    "source",
    [
        "", "import fs from 'fs'", "import { registerMvuSchema } from 'http://x/mvu_zod.js'", "fetch('x')",
        IMPORT + "registerMvuSchema(z.lazy(() => z.any()))", IMPORT + "registerMvuSchema(z.object({a: z.date()}))",
        IMPORT + "registerMvuSchema(z.string().regex(/^a+$/))", IMPORT + "registerMvuSchema(window)",
        IMPORT + "registerMvuSchema(z.object({a: z.any().transform(x => { while (1) {} })}))",
        IMPORT + "registerMvuSchema(" + "z.object({a: " * 70 + "z.any()" + "})" * 70 + ")",
        IMPORT + "const f = x => f(x); registerMvuSchema(f(1))", "x" * 140_000, IMPORT + "registerMvuSchema(z.object({",
        IMPORT + "registerMvuSchema(''.constructor.constructor('return 1')())",
    ],
)  # fmt: skip
def test_code_outside_the_subset_is_refused(source: str) -> None:
    with pytest.raises(mvu.MvuError) as caught:
        declared_schema(document(source))
    assert caught.value.code in ("MVU_SCHEMA_CODE", "MVU_SCHEMA")


def test_steps_are_bounded() -> None:
    check = build("z.object({a: z.array(z.number().transform(v => v + 1))})")
    assert check({"a": list(range(100))})["a"][0] == 1
    with pytest.raises(mvu.MvuError) as caught:
        check({"a": list(range(9000))})
    assert caught.value.code == "MVU_SCHEMA_CODE"


def test_made_texts_are_bounded() -> None:
    doubling = "".join(f"const s{n + 1} = s{n} + s{n};\n" for n in range(40))
    with pytest.raises(mvu.MvuError) as caught:
        declared_schema(document(f"{IMPORT}const s0 = 'x';\n{doubling}registerMvuSchema(z.any())"))
    assert caught.value.code == "MVU_LIMIT"
    assert build("z.object({a: z.number().transform(v => v * v * v * v)})")({"a": 1e300})["a"] == float("inf")


def test_updates_under_a_declared_schema_may_create_what_it_allows() -> None:
    check = declared_schema(document(SCHEMA))
    variables = {"stat_data": check(GOOD)}
    text = "_.set('bag.lamp.数量', 200); _.set('hp', 99); _.insert('tags', 'x'); _.set('tags', ['a'])"
    after = mvu.apply_update(variables, text, declared=check)
    assert after["stat_data"]["bag"] == {"rope": {"数量": 99}, "lamp": {"数量": 99}}
    assert after["stat_data"]["tags"] == ["a"]
    assert {each["code"] for each in after["update_diagnostics"]} == {"MVU_SCHEMA"}
    assert [each["command"] for each in after["update_diagnostics"]] == [1, 2]


def test_a_card_with_a_declared_schema_starts_and_updates_under_it() -> None:
    entries = [{"comment": "[initvar]", "content": "hp: 3\nname: Bo\nnear: ~"}, {"comment": "", "content": SCHEMA}]
    variables = mvu.initial_variables(mvu.initial_from_card({"data": {"character_book": {"entries": entries}}}))
    assert variables["stat_data"] == {"hp": 3, "mood": "calm", "name": "Bo", "bag": {}, "near": None}
    after = mvu.apply_update(variables, "_.set('mood', 'angry'); _.set('mood', 'odd')")
    assert after["stat_data"]["mood"] == "angry"
    assert after["update_diagnostics"] == [{"command": 1, "code": "MVU_SCHEMA"}]
