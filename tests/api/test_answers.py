"""Answers: what is long is written in a thread, and reads the same."""

import threading

import pytest

from tapster.api.answers import LOOP_CHARACTERS, LOOP_VALUES, Answer, Responder, is_long
from tapster.engine.ecma import Json, parse_json, stringify
from tapster.engine.lazy_list import LazyList

SHORT: list[Json] = [
    {},
    None,
    "x" * LOOP_CHARACTERS,
    [0] * LOOP_VALUES,
    {"a": [{"b": ["x" * 1000] * 16}]},
]
LONG: list[Json] = [
    {"text": "海" * (LOOP_CHARACTERS + 1)},
    {"a": {"b": [{"c": [0] * 2}] * LOOP_VALUES}},
    {"entries": [["k"] * 3] * (LOOP_VALUES // 2)},
    {"\ud800": ["\ud800" * (LOOP_CHARACTERS + 1), 1.0, 1e21]},
]


@pytest.mark.parametrize("body", SHORT)
def test_what_is_short_is_written_in_the_loop(body: Json) -> None:
    assert not is_long(body)


@pytest.mark.parametrize("body", LONG)
async def test_what_is_long_is_written_beside_it_and_the_same(body: Json) -> None:
    assert is_long(body)
    response = await Responder().response(Answer(body, 201, {"X-Own": "1"}))
    data = await response.get_data(as_text=True)
    assert data == stringify(body)
    assert parse_json(data) == body
    assert response.status_code == 201
    assert response.headers["X-Own"] == "1"


async def test_a_long_list_that_is_made_on_demand_is_made_in_the_thread() -> None:
    makers = set()

    def member(index: int) -> Json:
        makers.add(threading.current_thread())
        return {"index": index}

    body = {"rows": LazyList(2 * LOOP_VALUES, member)}
    response = await Responder().response(Answer(body))
    assert len(parse_json(await response.get_data(as_text=True))["rows"]) == 2 * LOOP_VALUES
    assert makers
    assert threading.current_thread() not in makers
