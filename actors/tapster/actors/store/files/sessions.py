"""Session logs as JSON lines: a header line, then one line for each append, so that an append is there whole or not.

The places of the lines are indexed in memory when a log is first used; a read then touches only the lines it needs.
"""

from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import final
from urllib.parse import unquote

import attrs

from tapster.actors.store.checks import check_append, check_copy, last_changed_first
from tapster.actors.store.checks import event_type as kind_of
from tapster.actors.store.codec import decode, encode
from tapster.actors.store.errors import ReadFailed, SessionLogExists, SessionLogMissing
from tapster.actors.store.values import SessionHead, SessionKey
from tapster.engine.ecma import Json
from tapster.engine.errors import FormatError

from .layout import Layout
from .staging import Staging


@attrs.frozen
class Line:
    """Where an append stands: first seq, offset and length in bytes."""

    first_seq: int
    offset: int
    length: int


@attrs.frozen
class LogState:
    """A log's head and the index of its lines; ``end`` is the offset of the next line."""

    head: SessionHead
    lines: list[Line]
    end: int


@final
class FileSessionLogs:
    """The ``SessionLogs`` of a data folder."""

    def __init__(self, staging: Staging, layout: Layout) -> None:
        self._staging = staging
        self._layout = layout
        self._logs: dict[SessionKey, LogState] = {}

    def forget(self) -> None:
        """Index again from the files."""
        self._logs.clear()

    def create(self, key: SessionKey, header: Json, *, now: int) -> SessionHead:
        if self._find(key) is not None:
            raise SessionLogExists(f"session {key} has a log already")
        head = SessionHead(key, header, 0, now, now)
        self._add(key, LogState(head, [], 0), {"header": header, "createdAt": now, "at": now}, head)
        return head

    def copy_events(self, source: SessionKey, target: SessionKey, through_seq: int, *, now: int) -> int:
        theirs, ours = self._need(source), self._need(target)
        check_copy(source, theirs.head.next_seq, target, ours.head.next_seq, through_seq)
        events = self.read(source, 0, through_seq + 1)
        return self.append(target, 0, events, now=now) if events else 0

    def append(self, key: SessionKey, first_seq: int, events: Sequence[Json], *, now: int) -> int:
        log = self._need(key)
        check_append(key, log.head.next_seq, first_seq, events)
        next_seq = first_seq + len(events)
        head = attrs.evolve(log.head, next_seq=next_seq, updated_at=now)
        self._add(key, log, {"seq": first_seq, "at": now, "events": list(events)}, head)
        return next_seq

    def set_header(self, key: SessionKey, header: Json, *, now: int) -> SessionHead:
        log = self._need(key)
        head = attrs.evolve(log.head, header=header, updated_at=now)
        self._add(key, log, {"header": header, "createdAt": head.created_at, "at": now}, head)
        return head

    def head(self, key: SessionKey) -> SessionHead | None:
        found = self._find(key)
        return None if found is None else found.head

    def heads(self, host: str | None = None) -> tuple[SessionHead, ...]:
        folder = self._layout.session_log("x", "x").parent.parent
        for path in sorted(folder.glob("*/*.jsonl")):
            self._find(SessionKey(unquote(path.parent.name), unquote(path.stem)))
        found = [log.head for key, log in self._logs.items() if host in (None, key.host)]
        return last_changed_first(found)

    def read(self, key: SessionKey, since: int = 0, limit: int | None = None) -> tuple[Json, ...]:
        log = self._find(key)
        if log is None:
            return ()
        end = log.head.next_seq if limit is None else min(log.head.next_seq, since + limit)
        first = max(0, bisect_right(log.lines, since, key=lambda line: line.first_seq) - 1)
        events: list[Json] = []
        for line in log.lines[first:]:
            if line.first_seq >= end:
                break
            events += [event for seq, event in enumerate(self._events(key, line), line.first_seq) if since <= seq < end]
        return tuple(events)

    def latest(self, key: SessionKey, event_type: str, before: int | None = None) -> Json | None:
        log = self._find(key)
        for line in reversed(log.lines if log is not None else ()):
            for seq, event in reversed(list(enumerate(self._events(key, line), line.first_seq))):
                if kind_of(event) == event_type and (before is None or seq < before):
                    return event
        return None

    def delete(self, key: SessionKey) -> bool:
        found = self._find(key) is not None
        if found:
            self._staging.undo.remove(self._logs, key)
            self._staging.put(self._layout.session_log(key.host, key.session), None)
        return found

    def _add(self, key: SessionKey, log: LogState, line: Json, head: SessionHead) -> None:
        data = encode(line) + b"\n"
        self._staging.append(self._layout.session_log(key.host, key.session), log.end, data)
        if "events" in line:
            self._staging.undo.extend(log.lines, [Line(line["seq"], log.end, len(data))])
        self._staging.undo.set(self._logs, key, LogState(head, log.lines, log.end + len(data)))

    def _need(self, key: SessionKey) -> LogState:
        found = self._find(key)
        if found is None:
            raise SessionLogMissing(f"session {key} has no log")
        return found

    def _find(self, key: SessionKey) -> LogState | None:
        if key not in self._logs:
            path = self._layout.session_log(key.host, key.session)
            data = self._staging.read(path)
            if data is None:
                return None
            self._logs[key] = _index(key, data, path)
        return self._logs[key]

    def _events(self, key: SessionKey, line: Line) -> list[Json]:
        path = self._layout.session_log(key.host, key.session)
        data = self._staging.read_range(path, line.offset, line.length)
        events: list[Json] = _parse(data, path)["events"]
        return events


def _index(key: SessionKey, data: bytes, path: Path) -> LogState:
    """The head and the lines of a log; bytes after the last line break are a torn append and don't count."""
    header: Json = None
    created = updated = next_seq = offset = 0
    lines: list[Line] = []
    for text in data[: data.rfind(b"\n") + 1].splitlines(keepends=True):
        line = _parse(text, path)
        updated = line["at"]
        if "header" in line:
            header, created = line["header"], line["createdAt"]
        else:
            lines.append(Line(line["seq"], offset, len(text)))
            next_seq = line["seq"] + len(line["events"])
        offset += len(text)
    return LogState(SessionHead(key, header, next_seq, created, updated), lines, offset)


def _parse(text: bytes, path: Path) -> Json:
    try:
        return decode(text)
    except FormatError as error:
        raise ReadFailed(f"{path.name} has a damaged line; it was left as it is: {error}") from error
