"""The macro engine where the vectors don't look: purity, limits, recorded draws, time zones."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from tapster.engine.limits import ST_MACRO_MAX_NESTING
from tapster.engine.text.macro_output import MacroOutputTooLarge
from tapster.engine.text.macros import Draw, MacroContext, MacroMessage, expand
from tapster.engine.text.macros.dates import parse_moment
from tapster.engine.text.macros.moment import format_moment, humanize, ordinal
from tapster.engine.text.string_hash import seeded_random, string_hash

NOW = datetime(2024, 3, 9, 14, 5, 9, tzinfo=UTC)


def context(random: Callable[[], float] = lambda: 0.5, **more: object) -> MacroContext:
    return MacroContext(now=NOW, random=random, user="Ann", char="Ben", **more)  # type: ignore[arg-type]


def test_the_context_is_not_changed_and_new_variables_are_given_back() -> None:
    before = {"n": 1}
    result = expand("{{incvar::n}}{{setglobalvar::g::x}}", context(variables=before))
    assert (result.text, result.variables, result.global_variables) == ("2", {"n": 2}, {"g": "x"})
    assert before == {"n": 1}


def test_draws_are_recorded_with_their_place() -> None:
    values = iter([0.1, 0.9])
    result = expand("é😀{{random::a::b}} {{roll::1d6}}", context(lambda: next(values)))
    assert result.text == "é😀a 6"
    assert result.draws == (Draw("random", 3, 0.1), Draw("roll", 20, 0.9))


def test_the_same_input_gives_the_same_output() -> None:
    text = "{{pick::a::b::c}}{{random::x::y}}{{time}}{{roll::2d6}}"
    assert expand(text, context()) == expand(text, context())


@pytest.mark.parametrize("text", ["{{if 1}}" * 2000 + "x" + "{{/if}}" * 2000, "{{reverse::" * 500 + "x" + "}}" * 500])
def test_nesting_beyond_the_limit_stays_text(text: str) -> None:
    assert ST_MACRO_MAX_NESTING < 500
    assert "x" in expand(text, context()).text


def test_inserted_text_is_not_expanded_again() -> None:
    chat = (MacroMessage("{{user}} {{setvar::a::b}}", is_user=True),)
    result = expand("{{lastMessage}}", context(chat=chat))
    assert (result.text, result.variables) == ("{{user}} {{setvar::a::b}}", {})


def test_dice_beyond_the_limit_give_nothing() -> None:
    assert expand("{{roll::99999999d6}}", context()).text == ""


def test_message_variables() -> None:
    variables = {"stat_data": {"a b": [1, {"c": True}]}}
    text = '{{get_message_variable::stat_data["a b"][1]}} {{get_message_variable::stat_data.none}}'
    assert expand(text, context(message_variables=variables)).text == '{"c":true} '


def test_time_is_in_the_zone_of_the_clock() -> None:
    there = NOW.astimezone(ZoneInfo("Asia/Shanghai"))
    result = expand("{{time}} {{date}} {{time::UTC-3}}", MacroContext(now=there, random=lambda: 0.0))
    assert result.text == "10:05 PM March 9, 2024 11:05 AM"


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        ("Do MMM YY, ddd", "9th Mar 24, Sat"),
        ("[at] HH:mm:ss.SSS Z", "at 14:05:09.000 +00:00"),
        ("Q Qo DDD W w gggg GG E e k A", "1 1st 69 10 10 2024 24 6 6 14 PM"),
        ("hmm Hmmss lll \\Y", "205 140509 Mar 9, 2024 2:05 PM Y"),
    ],
)
def test_layouts(layout: str, expected: str) -> None:
    assert format_moment(NOW, layout) == expected


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (44, "a few seconds"), (45, "a minute"), (89, "a minute"), (90, "2 minutes"), (45 * 60, "an hour"),
        (22 * 3600, "a day"), (26 * 86400, "a month"), (320 * 86400, "a year"), (548 * 86400, "2 years"),
    ],
)  # fmt: skip
def test_durations_in_words(seconds: int, words: str) -> None:
    assert humanize(timedelta(seconds=seconds)) == words
    assert humanize(timedelta(seconds=seconds), suffix=True) == f"in {words}"
    assert humanize(timedelta(seconds=-seconds), suffix=True) == f"{words} ago"


def test_timestamps() -> None:
    assert parse_moment("2024-03-09T14:05:09Z", None) == NOW
    assert parse_moment("2024-03-09 16:05:09+02:00", None) == NOW
    assert parse_moment("2024-13-09", UTC) is None
    assert parse_moment("yesterday", UTC) is None
    assert [ordinal(number) for number in (1, 2, 3, 11, 12, 13, 21, 101, 111)] == [
        "1st", "2nd", "3rd", "11th", "12th", "13th", "21st", "101st", "111th",
    ]  # fmt: skip


def test_published_values_of_the_generator_and_the_hash() -> None:
    assert seeded_random("hello.") == 0.9282578795792454
    assert string_hash("a") == 7929297801672961


@pytest.mark.parametrize(
    "text",
    [
        "{{setvar::a::xxxxxxxx}}" + "{{setvar::a::{{getvar::a}}{{getvar::a}}}}" * 60,
        "{{setvar::a::xxxxxxxx}}" + "{{addvar::a::{{getvar::a}}}}" * 60,
        "{{setglobalvar::a::xxxxxxxx}}" + "{{setglobalvar::a::{{getglobalvar::a}}{{getglobalvar::a}}}}" * 60,
        "{{setvar::a::" + "x" * 100_000 + "}}" + "{{getvar::a}}" * 20_000,
        "{{newline::10000}}" * 10_000,
    ],
    ids=lambda text: text[:30],
)
def test_a_few_macros_cant_fill_the_memory(text: str) -> None:
    with pytest.raises(MacroOutputTooLarge):
        expand(text, context())


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        # What moment.js gives for the same layouts at this moment.
        ("ddLLLL", "SaturdaySa, March 9, 2024 2:05 PM"), ("yy-\\Ml", "2024-MM/9/2024"), ("[z] z|zz Z", "z | +00:00"),
        ("[0 D", "[0 9"), ("[a]b]", "a]b"), ("\\LT", "LT"), ("SSSSS x", "00000 1709993109000"),
    ],
)  # fmt: skip
def test_long_forms_are_spelled_out_before_their_neighbours_are_read(layout: str, expected: str) -> None:
    assert format_moment(NOW, layout) == expected


def test_moments_before_1970_count_backwards() -> None:
    assert format_moment(datetime(1969, 12, 31, 23, 59, 58, 750000, tzinfo=UTC), "x X") == "-1250 -2"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Milliseconds since 1970, or None for "Invalid date", as moment.js reads the same texts.
        ("2023-1-1", 1672531200000), ("2023", 1672531200000), ("20230101", 1672531200000), ("2023-001", 1672531200000),
        ("2023-W05", 1675036800000), ("2023-W05-3", 1675209600000), ("2023-01-01T1230", None),
        ("2023-01-01T12:30+05", 1672558200000), ("2023-01-01T24:00", 1672617600000), ("2023-01-01T25:00", None),
        ("January 5, 2023", 1672876800000), ("5 January 2023", 1672876800000), ("01/05/2023", 1672876800000),
        ("1/5/2023 3:00 PM", 1672930800000), ("Thu, 05 Jan 2023 10:00:00 GMT", 1672912800000), ("x", None),
        ("Sat, 1 Jan 2022 00:00:00 +0200", 1640988000000), ("+002023-01-01", 1672531200000), ("2023-02-30", None),
        ("20230101T123015", 1672576215000), ("202301", 1672531200000), ("2023-01-01 1:30", 1672536600000),
        ("January 2023", 1672531200000),
        ("March 3, 2022 4:05 PM", 1646323500000), ("12:30", None), ("2023-13-01", None), ("1672531200000", None),
    ],
)  # fmt: skip
def test_dates_as_people_write_them(text: str, expected: int | None) -> None:
    moment = parse_moment(text, UTC)
    assert (None if moment is None else int(moment.timestamp() * 1000)) == expected


def test_an_absurd_offset_of_a_time_changes_nothing() -> None:
    absurd = "{{time::UTC+99999999999999999999}}"
    assert expand(absurd, context()).text == expand("{{time}}", context()).text
