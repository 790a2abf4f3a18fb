"""Time and date macros; the clock is the context's."""

import re
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

from .dates import parse_moment
from .moment import format_moment, humanize
from .registry import Call, MacroDefinition, aliases, constant

if TYPE_CHECKING:
    from .evaluate import Run

_UTC = re.compile(r"UTC([+-][0-9]{1,6})[0-9]*")
HOURS_LIMIT = 16
"""An offset of this many hours or more is taken as minutes."""


def _time(call: Call) -> str:
    now = call.run.context.now
    offset = _UTC.fullmatch(call.arguments[0]) if call.arguments else None
    if offset is not None:
        number = int(offset[1])
        shift = timedelta(hours=number) if abs(number) < HOURS_LIMIT else timedelta(minutes=number)
        if abs(shift) < timedelta(days=1):
            now = now.astimezone(timezone(shift))
    return format_moment(now, "LT")


def _formatted(layout: str) -> MacroDefinition:
    return constant(lambda run: format_moment(run.context.now, layout))


def _idle(run: "Run") -> str:
    """The time since the user's last message before the newest one, in words."""
    last: datetime | None = None
    newest_seen = False
    for message in reversed(run.context.chat):
        if message.is_system:
            continue
        if message.is_user and newest_seen:
            last = message.sent_at
            break
        newest_seen = True
    return "just now" if last is None else humanize(run.context.now - last)


def _difference(call: Call) -> str:
    zone = call.run.context.now.tzinfo
    first, second = (parse_moment(argument, zone) for argument in call.arguments)
    return "Invalid date" if first is None or second is None else humanize(first - second, suffix=True)


MACROS = {
    "time": MacroDefinition(_time, 0, 1),
    "date": _formatted("LL"),
    "weekday": _formatted("dddd"),
    "isotime": _formatted("HH:mm"),
    "isodate": _formatted("YYYY-MM-DD"),
    "datetimeformat": MacroDefinition(lambda call: format_moment(call.run.context.now, call.arguments[0]), 1, 1),
    **aliases("idle_duration idleDuration", constant(_idle)),
    "timeDiff": MacroDefinition(_difference, 2, 2),
}
