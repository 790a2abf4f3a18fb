"""Reading dates as moment.js does: ISO 8601 first, then the looser forms people and browsers write.

Source: the public format documentation of moment.js; behaviour compared with the library itself.
"""

import re
from collections.abc import Iterator
from datetime import date, datetime, timedelta, timezone, tzinfo

import attrs

from tapster.engine.ecma import WHITE_SPACE

_TIME = (
    r"(?:[T ](?P<h>\d\d)(?::?(?P<m>\d\d)(?::?(?P<s>\d\d)(?:[.,](?P<f>\d+))?)?)?(?P<zone>[+-]\d\d(?::?\d\d)?|\s*Z)?)?"
)
_YEAR = r"(?P<year>[+-]\d{6}|\d{4})"
_EXTENDED = re.compile(
    rf"{_YEAR}-(?:(?P<month>\d\d)(?:-(?P<day>\d\d))?|W(?P<week>\d\d)(?:-(?P<weekday>\d))?|(?P<yearday>\d{{3}}))"
    + _TIME.replace(":?(?P", ":(?P"),
    re.ASCII,
)
_BASIC = re.compile(
    rf"{_YEAR}(?:(?P<month>\d\d)(?P<day>\d\d)|W(?P<week>\d\d)(?P<weekday>\d)?|(?P<yearday>\d{{3}})|(?P<only>\d\d))?"
    + _TIME.replace(":?(?P", "(?P"),
    re.ASCII,
)
_LOOSE = re.compile(
    r"(?P<clock>\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?)|(?P<zone>(?:UTC|GMT|Z)?[+-]\d\d:?\d\d\b|UTC\b|GMT\b|Z\b)"
    r"|(?P<numbers>\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4})|(?P<number>\d{1,4})|(?P<word>[A-Za-z]+)|(?P<skip>[\s,.T]+)",
    re.ASCII | re.IGNORECASE,
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_SHORTEST_NAME = 3
_LARGEST_DAY = 31
_LAST_SHORT_YEAR = 99
_CENTURY_TURN = 50
"""Years of two digits below it are of this century, the others of the last."""
_MICROSECOND_DIGITS = 6


def parse_moment(text: str, zone: tzinfo | None) -> datetime | None:
    """A date or time; without an offset it is in ``zone``. None when it is none."""
    text = text.strip(WHITE_SPACE)
    match = _EXTENDED.fullmatch(text) or _BASIC.fullmatch(text)
    try:
        return _iso(match, zone) if match is not None else _loose(text, zone)
    except (ValueError, OverflowError):
        return None


def _iso(match: re.Match[str], zone: tzinfo | None) -> datetime:
    part = match.groupdict()
    year = int(part["year"])
    if part["week"]:
        day = date.fromisocalendar(year, int(part["week"]), int(part["weekday"] or 1))
    elif part["yearday"]:
        day = date(year, 1, 1) + timedelta(days=int(part["yearday"]) - 1)
        if day.year != year:
            raise ValueError("the year has fewer days")
    else:
        day = date(year, int(part["month"] or part.get("only") or 1), int(part["day"] or 1))
    return _at(day, (part["h"], part["m"], part["s"], part["f"]), (part["zone"] or "").strip(), zone)


def _at(day: date, clock: tuple[str | None, ...], offset: str, zone: tzinfo | None) -> datetime:
    hour, minute, second = (int(value or 0) for value in clock[:3])
    fraction = int((clock[3] or "").ljust(_MICROSECOND_DIGITS, "0")[:_MICROSECOND_DIGITS])
    is_midnight_after = (hour, minute, second, fraction) == (24, 0, 0, 0)
    own = _offset(offset) if offset else zone
    moment = datetime(day.year, day.month, day.day, 0 if is_midnight_after else hour, minute, second, fraction, own)
    return moment + timedelta(days=1) if is_midnight_after else moment


def _offset(text: str) -> tzinfo:
    digits = re.sub(r"[^0-9]", "", text)
    minutes = int(digits[:2] or 0) * 60 + int(digits[2:] or 0)
    return timezone(timedelta(minutes=-minutes if "-" in text else minutes))


@attrs.define
class _Parts:
    """What a loosely written date holds."""

    numbers: list[int] = attrs.field(factory=list)
    year: int | None = None
    month: int | None = None
    day: int | None = None
    clock: tuple[str | None, ...] = ("0", "0", "0", None)
    zone: str = ""
    half: str = ""


def _loose(text: str, zone: tzinfo | None) -> datetime | None:
    parts = _Parts()
    for kind, value in _tokens(text):
        if kind == "clock":
            parts.clock = _clock(value)
        elif kind == "zone":
            parts.zone = value
        elif kind == "numbers":
            _numeric(parts, [int(number) for number in re.split(r"[-/.]", value)])
        elif kind == "number":
            parts.numbers.append(int(value))
        elif not _word(parts, value.lower()):
            return None
    return _assembled(parts, zone)


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    position = 0
    while position < len(text):
        match = _LOOSE.match(text, position)
        if match is None:
            raise ValueError("no date")
        position = match.end()
        if match.lastgroup != "skip":
            yield str(match.lastgroup), match[0]


def _clock(text: str) -> tuple[str | None, ...]:
    hour, minute, *rest = text.split(":")
    second, _, fraction = (rest[0] if rest else "0").partition(".")
    return hour, minute, second, fraction or None


def _numeric(parts: _Parts, numbers: list[int]) -> None:
    first, second, third = numbers
    is_year_first = first > _LARGEST_DAY
    parts.year, parts.month, parts.day = (first, second, third) if is_year_first else (third, first, second)


def _word(parts: _Parts, word: str) -> bool:
    """Take a name of a month, a day or a half of the day; False for any other word."""
    if word in ("am", "pm"):
        parts.half = word
        return True
    if len(word) < _SHORTEST_NAME:
        return False
    if word[:3] in _MONTHS:
        parts.month = _MONTHS.index(word[:3]) + 1
        return True
    return word[:3] in _DAYS


def _assembled(parts: _Parts, zone: tzinfo | None) -> datetime | None:
    if parts.month is None:
        return None
    if parts.day is None:
        numbers = parts.numbers
        is_year_alone = len(numbers) == 1 and numbers[0] > _LARGEST_DAY
        if not numbers or len(numbers) > 2:
            return None
        parts.day = 1 if is_year_alone else numbers[0]
        parts.year = numbers[-1] if is_year_alone or len(numbers) > 1 else None
    if parts.year is None:
        return None
    year = parts.year if parts.year > _LAST_SHORT_YEAR else parts.year + (2000 if parts.year < _CENTURY_TURN else 1900)
    hour = int(parts.clock[0] or 0)
    if parts.half:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if parts.half == "pm" else 0)
    return _at(date(year, parts.month, parts.day), (str(hour), *parts.clock[1:]), parts.zone, zone)
