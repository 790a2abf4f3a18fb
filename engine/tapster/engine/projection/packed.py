"""Packed chunk rows: one line of a log for many streamed chunks, spread out again.

Source: spec/dsh_host §5 "Packed rows".
"""

from collections.abc import Callable, Iterator
from typing import Final

from tapster.engine.ecma import Json, is_safe_integer
from tapster.engine.errors import FormatError

from .events import Event, is_seq


def _text(kind: str) -> Callable[[Json, str], Json]:
    return lambda data, text: {"type": kind, "index": data["index"], "text": text}


def _tool_call(data: Json, arguments: str) -> Json:
    names = {member: data[member] for member in ("id", "name") if member in data}
    return {"type": "tool-call-delta", "index": data["index"], **names, "argumentsDelta": arguments}


_ROWS: Final[dict[str, tuple[str, Callable[[Json, str], Json]]]] = {
    "text-chunks": ("texts", _text("text-delta")),
    "reasoning-chunks": ("texts", _text("reasoning-delta")),
    "tool-call-chunks": ("args", _tool_call),
}


def is_packed(value: Json) -> bool:
    """Whether a line is a packed chunk row."""
    return isinstance(value, dict) and value.get("type") in _ROWS


def expand(row: Json) -> Iterator[Event]:
    """The chunk events of a packed row, in order.

    Raises:
        FormatError: slug ``bad-packed-row``.
    """
    member, make = _ROWS[row["type"]]
    data: Json = row.get("data")
    if not isinstance(data, dict) or not is_seq(row.get("seq0")) or not is_safe_integer(row.get("time0")):
        raise FormatError("bad-packed-row", f"a {row['type']} row has no usable seq0, time0 or data")
    texts: Json = data.get(member)
    gaps: Json = data.get("dt")
    if not _fits(texts, gaps) or "index" not in data:
        raise FormatError("bad-packed-row", f"the {row['type']} row at {row['seq0']} doesn't hold together")
    time = int(row["time0"])
    for offset, text in enumerate(texts):
        time += int(gaps[offset - 1]) if offset else 0
        chunk = {"turn": data.get("turn"), "step": data.get("step"), "chunk": make(data, text)}
        yield Event("assistant/chunk", int(row["seq0"]) + offset, time, chunk)


def _fits(texts: Json, gaps: Json) -> bool:
    return (
        isinstance(texts, list)
        and isinstance(gaps, list)
        and len(gaps) == len(texts) - 1
        and all(isinstance(text, str) for text in texts)
        and all(is_safe_integer(gap) for gap in gaps)
    )
