"""Dates in words and in layouts, with the tokens and roundings of moment.js (English)."""

import math
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta

_TOKENS = re.compile(
    r"\[[^\[]*\]|\\?(?:[Hh]mm(?:ss)?|Mo|MM?M?M?|Do|DDDo|DD?D?D?|ddd?d?|do?|w[o|w]?|W[o|W]?|Qo?|N{1,5}|YYYYYY|YYYYY|YYYY"
    r"|YY|y{2,4}|yo?|gg(?:ggg?)?|GG(?:GGG?)?|e|E|a|A|hh?|HH?|kk?|mm?|ss?|S{1,9}|x|X|zz?|ZZ?|Y|.)",
    re.DOTALL,
)
_LONG_TOKENS = re.compile(r"\[[^\[]*\]|\\?(?:LTS|LT|LL?L?L?|l{1,4})")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LONG = {
    "LTS": "h:mm:ss A", "LT": "h:mm A", "L": "MM/DD/YYYY", "LL": "MMMM D, YYYY", "LLL": "MMMM D, YYYY h:mm A",
    "LLLL": "dddd, MMMM D, YYYY h:mm A", "l": "M/D/YYYY", "ll": "MMM D, YYYY", "lll": "MMM D, YYYY h:mm A",
    "llll": "ddd, MMM D, YYYY h:mm A",
}  # fmt: skip
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_ONE_MONTH_DAYS = 146097 / 4800


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 4th …"""
    if number % 100 // 10 == 1:
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"


def _weekday(moment: datetime) -> int:
    """0 = Sunday."""
    return moment.isoweekday() % 7


def _week(moment: datetime) -> tuple[int, int]:
    """(week year, week) with weeks from Sunday, the first holding 1 January."""
    day = moment.date()
    for year in (day.year + 1, day.year, day.year - 1):
        first = date(year, 1, 1)
        start = first - timedelta(days=first.isoweekday() % 7)
        if day >= start:
            return year, (day - start).days // 7 + 1
    raise AssertionError("a day is in some year")


def _offset(moment: datetime, separator: str) -> str:
    minutes = round((moment.utcoffset() or timedelta()).total_seconds() / 60)
    sign = "-" if minutes < 0 else "+"
    return f"{sign}{abs(minutes) // 60:02}{separator}{abs(minutes) % 60:02}"


def _hour12(moment: datetime) -> int:
    return moment.hour % 12 or 12


def _year_day(moment: datetime) -> int:
    return moment.timetuple().tm_yday


def _milliseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(milliseconds=1)


_FORMATS: dict[str, Callable[[datetime], object]] = {
    "M": lambda m: m.month, "Mo": lambda m: ordinal(m.month), "MM": lambda m: f"{m.month:02}",
    "MMM": lambda m: _MONTHS[m.month - 1][:3], "MMMM": lambda m: _MONTHS[m.month - 1],
    "Q": lambda m: (m.month + 2) // 3, "Qo": lambda m: ordinal((m.month + 2) // 3),
    "D": lambda m: m.day, "Do": lambda m: ordinal(m.day), "DD": lambda m: f"{m.day:02}",
    "DDD": _year_day, "DDDo": lambda m: ordinal(_year_day(m)), "DDDD": lambda m: f"{_year_day(m):03}",
    "d": _weekday, "do": lambda m: ordinal(_weekday(m)), "dd": lambda m: _DAYS[_weekday(m)][:2],
    "ddd": lambda m: _DAYS[_weekday(m)][:3], "dddd": lambda m: _DAYS[_weekday(m)],
    "e": _weekday, "E": lambda m: m.isoweekday(),
    "w": lambda m: _week(m)[1], "wo": lambda m: ordinal(_week(m)[1]), "ww": lambda m: f"{_week(m)[1]:02}",
    "W": lambda m: m.isocalendar()[1], "Wo": lambda m: ordinal(m.isocalendar()[1]),
    "WW": lambda m: f"{m.isocalendar()[1]:02}",
    "Y": lambda m: m.year, "YY": lambda m: f"{m.year % 100:02}", "YYYY": lambda m: f"{m.year:04}",
    "YYYYY": lambda m: f"{m.year:05}", "YYYYYY": lambda m: f"+{m.year:06}",
    "y": lambda m: m.year, "yo": lambda m: ordinal(m.year), "yy": lambda m: f"{m.year:02}",
    "yyy": lambda m: f"{m.year:03}", "yyyy": lambda m: f"{m.year:04}",
    "N": lambda m: "AD", "NN": lambda m: "AD", "NNN": lambda m: "AD", "NNNN": lambda m: "Anno Domini",
    "NNNNN": lambda m: "AD",
    "gg": lambda m: f"{_week(m)[0] % 100:02}", "gggg": lambda m: f"{_week(m)[0]:04}",
    "ggggg": lambda m: f"{_week(m)[0]:05}",
    "GG": lambda m: f"{m.isocalendar()[0] % 100:02}", "GGGG": lambda m: f"{m.isocalendar()[0]:04}",
    "GGGGG": lambda m: f"{m.isocalendar()[0]:05}",
    "A": lambda m: "PM" if m.hour >= 12 else "AM", "a": lambda m: "pm" if m.hour >= 12 else "am",
    "H": lambda m: m.hour, "HH": lambda m: f"{m.hour:02}", "h": _hour12, "hh": lambda m: f"{_hour12(m):02}",
    "k": lambda m: m.hour or 24, "kk": lambda m: f"{m.hour or 24:02}",
    "m": lambda m: m.minute, "mm": lambda m: f"{m.minute:02}",
    "s": lambda m: m.second, "ss": lambda m: f"{m.second:02}",
    "hmm": lambda m: f"{_hour12(m)}{m.minute:02}", "hmmss": lambda m: f"{_hour12(m)}{m.minute:02}{m.second:02}",
    "Hmm": lambda m: f"{m.hour}{m.minute:02}", "Hmmss": lambda m: f"{m.hour}{m.minute:02}{m.second:02}",
    "x": _milliseconds, "X": lambda m: _milliseconds(m) // 1000,
    # A local date has no name for its zone.
    "z": lambda m: "", "zz": lambda m: "",
    "Z": lambda m: _offset(m, ":"), "ZZ": lambda m: _offset(m, ""),
}  # fmt: skip


def format_moment(moment: datetime, layout: str) -> str:
    """A date in a moment.js layout; ``[…]`` is literal."""

    def token(match: re.Match[str]) -> str:
        text = match[0]
        if text.startswith("[") and text != "[":
            return text[1:-1]
        if text.startswith("\\"):
            return text[1:]
        if text[0] == "S":
            return f"{moment.microsecond // 1000:03}"[: len(text)].ljust(len(text), "0")
        known = _FORMATS.get(text)
        return text if known is None else str(known(moment))

    # The long forms are written out first, so that what stands beside them may join their tokens.
    spelled = _LONG_TOKENS.sub(lambda match: _LONG.get(match[0], match[0]), layout)
    return _TOKENS.sub(token, spelled)


def _round(number: float) -> int:
    return math.floor(number + 0.5)


def humanize(duration: timedelta, *, suffix: bool = False) -> str:
    """A duration in words: "3 hours", "in 4 days", "2 months ago"."""
    seconds = abs(duration.total_seconds())
    words = _words(seconds)
    if not suffix:
        return words
    return f"in {words}" if duration > timedelta() else f"{words} ago"


def _words(seconds: float) -> str:
    days = seconds / 86400
    months = days / _ONE_MONTH_DAYS
    steps = (
        (seconds, 45, "a few seconds", ""), (seconds / 60, 45, "a minute", "minutes"),
        (seconds / 3600, 22, "an hour", "hours"), (days, 26, "a day", "days"), (months, 11, "a month", "months"),
    )  # fmt: skip
    for amount, limit, one, many in steps:
        count = _round(amount)
        if not many:
            if count < limit:
                return one
        elif count <= 1:
            return one
        elif count < limit:
            return f"{count} {many}"
    years = _round(months / 12)
    return "a year" if years <= 1 else f"{years} years"
